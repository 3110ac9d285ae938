/* The tile cache: what was kept is found, byte for byte, and nothing else ever is: not after any
 * damage to its file, nor any change of the model. Its failures are warnings. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/engine/tile_cache.h"
#include "tests/core/engine/tile_cache_rig.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/folder.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/random_tensor.h"

TestSuite(tile_cache, .init = start, .fini = folder_leave);

Test(tile_cache, what_was_kept_is_found) {
    struct rig rig;
    open_rig(&rig);
    cr_expect(!found(&rig));
    keep(&rig);
    cr_expect_eq(rig.warnings, 0, "%s", rig.said);
    cr_expect(found(&rig));
    cr_expect_eq(rig.warnings, 0);
    close_rig(&rig);
    cr_expect(found_by_next("model.gguf"));
    char path[FOLDER_PATH_MAX];
    cr_expect_eq(cache_files(path), 1);
}

Test(tile_cache, what_was_found_is_not_written_again) {
    keep_model("model.gguf", PLENTY);
    char path[FOLDER_PATH_MAX];
    struct stat before, after;
    cache_files(path);
    stat(path, &before);
    keep_model("model.gguf", PLENTY);
    stat(path, &after);
    cr_expect_eq(before.st_ino, after.st_ino);
}

/* Each damage is found, said once, and mended by the next keeping. */
static void expect_damage(const char *what, size_t where) {
    struct rig rig;
    open_rig(&rig);
    cr_assert(!found(&rig), "%s at %zu passed", what, where);
    cr_assert_eq(rig.warnings, 1, "%s at %zu: %s", what, where, rig.said);
    cr_assert(strstr(rig.said, "weights are packed anew") != NULL, "%s", rig.said);
    keep(&rig);
    cr_assert(found(&rig), "%s at %zu is not mended: %s", what, where, rig.said);
    close_rig(&rig);
}

Test(tile_cache, a_file_cut_anywhere_is_not_used) {
    static const size_t lengths[] = {0,
                                     1,
                                     31,
                                     32,
                                     40,
                                     56,
                                     100,
                                     HEAD_BYTES - 1,
                                     HEAD_BYTES,
                                     HEAD_BYTES + 1,
                                     HEAD_BYTES + (1 << 20),
                                     HEAD_BYTES + TILE_BYTES - 4096,
                                     HEAD_BYTES + TILE_BYTES - 1,
                                     HEAD_BYTES + TILE_BYTES + 1};
    keep_model("model.gguf", PLENTY);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char path[FOLDER_PATH_MAX];
        struct stat info;
        cr_assert_eq(cache_files(path), 1);
        stat(path, &info);
        cr_assert_eq(info.st_size, HEAD_BYTES + TILE_BYTES);
        cr_assert_eq(truncate(path, (off_t)lengths[i]), 0);
        expect_damage("cut", lengths[i]);
    }
}

static void flip(const char *path, size_t at) {
    int descriptor = open(path, O_RDWR);
    uint8_t byte;
    cr_assert_eq(pread(descriptor, &byte, 1, (off_t)at), 1);
    byte ^= 0x10;
    cr_assert_eq(pwrite(descriptor, &byte, 1, (off_t)at), 1);
    close(descriptor);
}

Test(tile_cache, a_flipped_byte_of_the_tiles_is_noticed) {
    static const size_t places[] = {0,       1,         12345,          (1 << 20) - 1,
                                    1 << 20, (2 << 20), TILE_BYTES - 1, TILE_BYTES - 64};
    keep_model("model.gguf", PLENTY);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[FOLDER_PATH_MAX];
        cache_files(path);
        flip(path, HEAD_BYTES + places[i]);
        expect_damage("a flipped byte", places[i]);
    }
}

/* Version, lengths, checksums, key, padding: a head with any other byte is another one. */
Test(tile_cache, a_flipped_byte_of_the_head_is_noticed) {
    struct rig rig;
    char path[FOLDER_PATH_MAX];
    open_rig(&rig);
    found(&rig);
    keep(&rig);
    cache_files(path);
    for (size_t at = 0; at < HEAD_BYTES; at++) {
        flip(path, at);
        cr_assert(!found(&rig), "byte %zu", at);
        flip(path, at);
    }
    cr_expect(found(&rig));
    close_rig(&rig);
}

Test(tile_cache, a_file_of_zeros_is_not_used) {
    char path[FOLDER_PATH_MAX];
    keep_model("model.gguf", PLENTY);
    cache_files(path);
    cr_assert_eq(truncate(path, 0), 0);
    cr_assert_eq(truncate(path, HEAD_BYTES + TILE_BYTES), 0);
    expect_damage("zeros", 0);
}

Test(tile_cache, a_touched_model_is_packed_anew) {
    keep_model("model.gguf", PLENTY);
    cr_assert_eq(utimensat(AT_FDCWD, "model.gguf", NULL, 0), 0);
    cr_expect(!found_by_next("model.gguf"));
}

Test(tile_cache, a_model_replaced_by_one_of_equal_size_and_time_is_packed_anew) {
    struct stat info;
    keep_model("model.gguf", PLENTY);
    stat("model.gguf", &info);
    write_model("other.gguf", 2, 0, 1);
    struct timespec times[] = {info.st_atim, info.st_mtim};
    cr_assert_eq(utimensat(AT_FDCWD, "other.gguf", times, 0), 0);
    cr_assert_eq(rename("other.gguf", "model.gguf"), 0);
    cr_expect(!found_by_next("model.gguf"));
}

/* The byte is none of the sampled ones: the time of the last change of status tells. */
Test(tile_cache, a_model_edited_in_place_with_its_time_set_back_is_packed_anew) {
    struct stat info;
    keep_model("model.gguf", PLENTY);
    stat("model.gguf", &info);
    flip("model.gguf", (size_t)info.st_size - 5000);
    struct timespec times[] = {info.st_atim, info.st_mtim};
    cr_assert_eq(utimensat(AT_FDCWD, "model.gguf", times, 0), 0);
    cr_expect(!found_by_next("model.gguf"));
}

/* The tiles are of the file that was opened, not of the one that has its name when they are kept.
 */
Test(tile_cache, a_model_replaced_while_it_is_used_is_not_taken_for_the_new_one) {
    struct rig rig;
    write_model("other.gguf", 2, 0, 1);
    settle();
    open_rig(&rig);
    cr_assert_eq(rename("other.gguf", "model.gguf"), 0);
    cr_expect(!found(&rig));
    keep(&rig);
    close_rig(&rig);
    cr_expect(!found_by_next("model.gguf"));
}

/* File systems keep times in ticks: what changed just now may change again without a trace. */
Test(tile_cache, a_model_that_just_changed_is_not_kept) {
    char path[FOLDER_PATH_MAX];
    write_model("fresh.gguf", 1, 0, 1);
    keep_model("fresh.gguf", PLENTY);
    cr_expect_eq(cache_files(path), 0);
    settle();
    keep_model("fresh.gguf", PLENTY);
    cr_expect_eq(cache_files(path), 1);
}

Test(tile_cache, a_changed_models_tiles_replace_the_old_ones) {
    char path[FOLDER_PATH_MAX];
    keep_model("model.gguf", PLENTY);
    flip("model.gguf", 5000);
    settle();
    cr_expect(!found_by_next("model.gguf"));
    keep_model("model.gguf", PLENTY);
    cr_expect(found_by_next("model.gguf"));
    cr_expect_eq(cache_files(path), 1);
}

Test(tile_cache, the_same_file_packed_otherwise_is_another_entry) {
    struct rig rig;
    keep_model("model.gguf", PLENTY);
    open_rig(&rig);
    rig.list[0] = &rig.linears[1];
    rig.list[1] = &rig.linears[0];
    cr_expect(!found(&rig));
    close_rig(&rig);
    cr_expect(found_by_next("model.gguf"));
}

Test(tile_cache, every_part_of_a_split_model_counts) {
    write_model("m-00001-of-00002.gguf", 1, 0, 2);
    write_model("m-00002-of-00002.gguf", 1, 1, 2);
    settle();
    keep_model("m-00001-of-00002.gguf", PLENTY);
    cr_expect(found_by_next("m-00002-of-00002.gguf"));
    cr_assert_eq(utimensat(AT_FDCWD, "m-00002-of-00002.gguf", NULL, 0), 0);
    cr_expect(!found_by_next("m-00001-of-00002.gguf"));
}

Test(tile_cache, a_folder_that_cannot_be_made_is_one_warning) {
    struct rig rig;
    folder_write_text("file", "");
    open_at(&rig, "model.gguf", "file/cache", PLENTY);
    cr_expect(!found(&rig));
    cr_expect_eq(rig.warnings, 0, "%s", rig.said);
    keep(&rig);
    cr_expect_eq(rig.warnings, 1);
    cr_expect(strstr(rig.said, "packed weights are not kept") != NULL, "%s", rig.said);
    close_rig(&rig);
}

Test(tile_cache, a_full_disk_is_one_warning_and_leaves_nothing) {
    struct rig rig;
    char path[FOLDER_PATH_MAX];
    signal(SIGXFSZ, SIG_IGN);
    for (int limit = 0; limit < 4; limit++) {
        struct rlimit rlimit = {(rlim_t)limit << 20, RLIM_INFINITY};
        open_rig(&rig);
        found(&rig);
        setrlimit(RLIMIT_FSIZE, &rlimit);
        keep(&rig);
        rlimit.rlim_cur = RLIM_INFINITY;
        setrlimit(RLIMIT_FSIZE, &rlimit);
        cr_expect_eq(rig.warnings, limit < 3, "%s", rig.said);
        cr_expect_eq(cache_files(path), limit == 3);
        close_rig(&rig);
    }
    cr_expect(found_by_next("model.gguf"));
}

Test(tile_cache, more_than_the_limit_is_not_kept) {
    char path[FOLDER_PATH_MAX];
    keep_model("model.gguf", HEAD_BYTES + TILE_BYTES - 1);
    cr_expect_eq(cache_files(path), 0);
    keep_model("model.gguf", HEAD_BYTES + TILE_BYTES);
    cr_expect_eq(cache_files(path), 1);
}

Test(tile_cache, what_was_used_longest_ago_goes_first) {
    uint64_t limit = 2 * (HEAD_BYTES + TILE_BYTES);
    write_model("b.gguf", 2, 0, 1);
    write_model("c.gguf", 3, 0, 1);
    folder_write_text("cache/sheaf/id-0123456789abcdef", "not of the tile cache");
    settle();
    keep_model("model.gguf", limit);
    keep_model("b.gguf", limit);
    usleep(20000);
    cr_expect(found_by_next("model.gguf"));
    keep_model("c.gguf", limit);
    cr_expect(found_by_next("model.gguf"));
    cr_expect(!found_by_next("b.gguf"));
    cr_expect(found_by_next("c.gguf"));
    cr_expect_eq(access("cache/sheaf/id-0123456789abcdef", F_OK), 0);
}

/* A killed writer leaves its draft; a living one holds a lock on it. */
Test(tile_cache, abandoned_drafts_are_removed) {
    static const char old[] = "cache/sheaf/tiles-0123456789abcdef.new-aaaaaa";
    static const char held[] = "cache/sheaf/tiles-0123456789abcdef.new-bbbbbb";
    static const char fresh[] = "cache/sheaf/tiles-0123456789abcdef.new-cccccc";
    struct timespec times[] = {{1000000000, 0}, {1000000000, 0}};
    folder_write_text(old, "x");
    folder_write_text(held, "x");
    folder_write_text(fresh, "x");
    cr_assert_eq(utimensat(AT_FDCWD, old, times, 0), 0);
    cr_assert_eq(utimensat(AT_FDCWD, held, times, 0), 0);
    int descriptor = open(held, O_RDONLY);
    cr_assert_eq(flock(descriptor, LOCK_EX), 0);
    keep_model("model.gguf", PLENTY);
    cr_expect_neq(access(old, F_OK), 0);
    cr_expect_eq(access(held, F_OK), 0);
    cr_expect_eq(access(fresh, F_OK), 0);
    close(descriptor);
}

Test(tile_cache, a_stop_gives_up_and_leaves_nothing) {
    struct rig rig;
    atomic_int stop = 1;
    char path[FOLDER_PATH_MAX];
    open_rig(&rig);
    found(&rig);
    tile_cache_keep(rig.cache, rig.pool, rig.tiles, TILE_BYTES, &stop);
    cr_expect_eq(rig.warnings, 0);
    cr_expect_eq(cache_files(path), 0);
    close_rig(&rig);
}

static void *raise_stop(void *stop) {
    usleep(300);
    atomic_store((atomic_int *)stop, 1);
    return NULL;
}

Test(tile_cache, a_stop_in_between_leaves_all_or_nothing) {
    for (int i = 0; i < 30; i++) {
        struct rig rig;
        pthread_t thread;
        atomic_int stop = 0;
        char path[FOLDER_PATH_MAX];
        open_rig(&rig);
        found(&rig);
        pthread_create(&thread, NULL, raise_stop, &stop);
        tile_cache_keep(rig.cache, rig.pool, rig.tiles, TILE_BYTES, &stop);
        pthread_join(thread, NULL);
        int count = cache_files(path);
        cr_assert_eq(count, found(&rig));
        if (count > 0)
            unlink(path);
        close_rig(&rig);
    }
}

/* Looks, keeps what it does not find, and sometimes removes what it finds. */
static void use_in_child(int round) {
    struct rig rig;
    for (int i = 0; i < 5; i++) {
        open_rig(&rig);
        if (!found(&rig)) {
            keep(&rig);
            if (rig.warnings > 0)
                _exit(1);
        } else if ((i + round) % 2 == 0) {
            remove_tiles();
        }
        close_rig(&rig);
    }
    _exit(0);
}

Test(tile_cache, processes_use_it_at_once) {
    pid_t children[4];
    char path[FOLDER_PATH_MAX];
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        if (children[i] == 0)
            use_in_child(i);
    }
    for (int i = 0; i < 4; i++) {
        int status = -1;
        cr_assert_eq(waitpid(children[i], &status, 0), children[i]);
        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "child %d: %d", i, status);
    }
    keep_model("model.gguf", PLENTY);
    cr_expect(found_by_next("model.gguf"));
    cr_expect_eq(cache_files(path), 1);
}

/* kill -9 at any moment of the writing: the next start finds all of it or nothing. */
Test(tile_cache, a_killed_writer_leaves_nothing_to_be_used) {
    for (int i = 0; i < 12; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct rig rig;
            open_rig(&rig);
            for (;;) {
                found(&rig);
                keep(&rig);
                remove_tiles();
            }
        }
        usleep((useconds_t)(3000 + 700 * i));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        struct rig rig;
        open_rig(&rig);
        if (!found(&rig)) {
            cr_expect_eq(rig.warnings, 0, "%s", rig.said);
            keep(&rig);
        }
        cr_assert(found(&rig), "%s", rig.said);
        close_rig(&rig);
    }
}

Test(tile_cache, every_failed_allocation_is_as_if_there_were_no_cache) {
    struct rig rig;
    bool reached = true;
    int failed = 0;
    char path[FOLDER_PATH_MAX];
    open_rig(&rig);
    for (int n = 1; reached; n++) {
        failing_malloc_arm(n);
        found(&rig);
        keep(&rig);
        reached = failing_malloc_disarm();
        failed += reached;
        cr_assert_leq(rig.warnings, 1);
        if (cache_files(path) > 0)
            unlink(path);
    }
    cr_expect_gt(failed, 2);
    close_rig(&rig);
    struct tile_cache_options options = {"cache", PLENTY, NULL};
    struct error error;
    failing_malloc_arm(1);
    cr_expect_eq(tile_cache_create(&options, &rig.cache, &error), STATUS_NO_MEMORY);
    cr_expect(failing_malloc_disarm());
    cr_expect_eq(rig.cache, NULL);
}
