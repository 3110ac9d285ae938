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
#include "tests/support/failing_malloc.h"
#include "tests/support/folder.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/random_tensor.h"

enum {
    IN = 64,
    OUT = 1024,                          /* a file much larger than its samples */
    TILE_BYTES = (2 << 20) + 4096 + 192, /* two whole chunks and a part of one */
    HEAD_BYTES = 4096,
    TICK_US = 150000, /* after which a change of the model has another time for sure */
};
static const uint64_t PLENTY = UINT64_C(1) << 30;

/* A model's two linears, a cache, and what it said last. */
struct rig {
    struct gguf *gguf;
    struct linear linears[2];
    const struct linear *list[2];
    struct thread_pool *pool;
    struct tile_cache *cache;
    struct log log;
    int warnings;
    char said[2048];
    uint8_t *tiles;
};

static void listen(void *context, enum log_level level, const char *message) {
    struct rig *rig = context;
    rig->warnings += level == LOG_WARNING;
    snprintf(rig->said, sizeof rig->said, "%s", message);
}

static void write_model(const char *path, uint8_t content, int shard, int shard_count) {
    struct gguf_builder builder;
    uint64_t dims[] = {IN, OUT};
    uint8_t *bytes = malloc(IN * OUT * 4);
    uint16_t number = (uint16_t)shard, count = (uint16_t)shard_count;
    char name[2][8];
    memset(bytes, content, IN * OUT * 4);
    gguf_builder_init(&builder);
    if (shard_count > 1) {
        gguf_builder_value(&builder, "split.no", GGUF_U16, &number, 2);
        gguf_builder_value(&builder, "split.count", GGUF_U16, &count, 2);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(name[i], sizeof name[i], "%c%d", 'a' + i, shard);
        gguf_builder_tensor(&builder, name[i], 2, dims, 0, bytes, IN * OUT * 4);
    }
    gguf_builder_write(&builder, path);
    gguf_builder_deinit(&builder);
    free(bytes);
}

static void settle(void) {
    usleep(TICK_US);
}

static void open_at(struct rig *rig, const char *model, const char *folder, uint64_t bytes_max) {
    struct error error;
    *rig = (struct rig){.log = {LOG_DEBUG, listen, rig}};
    struct tile_cache_options options = {folder, bytes_max, &rig->log};
    cr_assert_eq(gguf_open(model, &rig->gguf, &error), STATUS_OK, "%s", error.text);
    cr_assert_eq(thread_pool_create(2, false, &rig->pool, &error), STATUS_OK);
    cr_assert_eq(tile_cache_create(&options, &rig->cache, &error), STATUS_OK);
    for (int i = 0; i < 2; i++) {
        rig->linears[i] = (struct linear){.id = i, .in = IN, .out = OUT, .part_count = 1};
        rig->linears[i].parts[0] = gguf_tensor_at(rig->gguf, (size_t)i);
        rig->list[i] = &rig->linears[i];
    }
    rig->tiles = malloc(TILE_BYTES);
    uint64_t state = gguf_tensor_at(rig->gguf, 0)->bytes[0];
    for (size_t i = 0; i < TILE_BYTES; i++)
        rig->tiles[i] = (uint8_t)random_tensor_next(&state);
}

static void open_rig(struct rig *rig) {
    open_at(rig, "model.gguf", "cache/sheaf", PLENTY);
}

static void close_rig(struct rig *rig) {
    tile_cache_destroy(rig->cache);
    thread_pool_destroy(rig->pool);
    gguf_close(rig->gguf);
    free(rig->tiles);
}

/* Whether the cache has the tiles; if so, they must be the rig's. */
static bool found(struct rig *rig) {
    struct tile_cache_linears linears = {rig->gguf, rig->list, 2};
    struct tile_cache_tiles tiles;
    rig->warnings = 0;
    if (!tile_cache_load(rig->cache, &linears, TILE_BYTES, rig->pool, &tiles))
        return false;
    cr_assert_eq((uintptr_t)tiles.bytes % 64, 0);
    cr_assert_eq(memcmp(tiles.bytes, rig->tiles, TILE_BYTES), 0, "other tiles were found");
    file_map_close(&tiles.map);
    return true;
}

static void keep(struct rig *rig) {
    rig->warnings = 0;
    tile_cache_keep(rig->cache, rig->pool, rig->tiles, TILE_BYTES, NULL);
}

/* Whether a new start on the model finds its tiles. */
static bool found_by_next(const char *model) {
    struct rig rig;
    open_at(&rig, model, "cache/sheaf", PLENTY);
    bool is_found = found(&rig);
    close_rig(&rig);
    return is_found;
}

static void keep_model(const char *model, uint64_t bytes_max) {
    struct rig rig;
    open_at(&rig, model, "cache/sheaf", bytes_max);
    found(&rig);
    keep(&rig);
    cr_assert_eq(rig.warnings, 0, "%s", rig.said);
    close_rig(&rig);
}

/* Files in the cache; the last one's path. */
static int cache_files(char path[FOLDER_PATH_MAX]) {
    DIR *stream = opendir("cache/sheaf");
    int count = 0;
    for (struct dirent *entry; stream != NULL && (entry = readdir(stream)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, FOLDER_PATH_MAX, "cache/sheaf/%s", entry->d_name);
        count++;
    }
    if (stream != NULL)
        closedir(stream);
    return count;
}

/* Drafts are their writers'. */
static void remove_tiles(void) {
    DIR *stream = opendir("cache/sheaf");
    for (struct dirent *entry; stream != NULL && (entry = readdir(stream)) != NULL;)
        if (strncmp(entry->d_name, "tiles-", 6) == 0 && strchr(entry->d_name, '.') == NULL)
            unlinkat(dirfd(stream), entry->d_name, 0);
    if (stream != NULL)
        closedir(stream);
}

static void start(void) {
    folder_enter();
    write_model("model.gguf", 1, 0, 1);
    settle();
}

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

/* In pieces of odd sizes, some longer than a chunk of the file. */
static enum status build(struct rig *rig, struct error *error) {
    static const size_t sizes[] = {64, 4096, 1 << 20, 64 * 7, (1 << 20) - 64, TILE_BYTES};
    size_t done = 0;
    TRY(tile_cache_build_begin(rig->cache, TILE_BYTES, error));
    for (int i = 0; done < TILE_BYTES; i++) {
        size_t count = sizes[i] < TILE_BYTES - done ? sizes[i] : TILE_BYTES - done;
        TRY(tile_cache_build_append(rig->cache, rig->tiles + done, count, error));
        done += count;
    }
    return tile_cache_build_end(rig->cache, error);
}

Test(tile_cache, built_in_pieces_it_is_the_same_file) {
    struct rig rig;
    char path[FOLDER_PATH_MAX];
    struct error error;
    struct file_map kept, built;
    keep_model("model.gguf", PLENTY);
    cr_assert_eq(cache_files(path), 1);
    cr_assert_eq(rename(path, "kept"), 0);
    open_rig(&rig);
    cr_assert(!found(&rig));
    cr_assert_eq(build(&rig, &error), STATUS_OK, "%s", error.text);
    cr_expect(found(&rig));
    cr_assert_eq(cache_files(path), 1);
    cr_assert_eq(file_map_open(&kept, "kept", &error), STATUS_OK);
    cr_assert_eq(file_map_open(&built, path, &error), STATUS_OK);
    cr_assert_eq(kept.length, built.length);
    cr_expect_eq(memcmp(kept.bytes, built.bytes, kept.length), 0);
    file_map_close(&kept);
    file_map_close(&built);
    close_rig(&rig);
}

Test(tile_cache, what_cannot_be_built_is_an_error_and_leaves_nothing) {
    struct rig rig;
    char path[FOLDER_PATH_MAX];
    struct error error;
    signal(SIGXFSZ, SIG_IGN);
    for (int limit = 0; limit < 3; limit++) {
        struct rlimit rlimit = {(rlim_t)limit << 20, RLIM_INFINITY};
        open_rig(&rig);
        found(&rig);
        setrlimit(RLIMIT_FSIZE, &rlimit);
        cr_expect_eq(build(&rig, &error), STATUS_IO);
        rlimit.rlim_cur = RLIM_INFINITY;
        setrlimit(RLIMIT_FSIZE, &rlimit);
        cr_expect_eq(cache_files(path), 0);
        close_rig(&rig);
    }
    open_at(&rig, "model.gguf", "cache/sheaf", TILE_BYTES);
    found(&rig);
    cr_expect_eq(build(&rig, &error), STATUS_OVER_LIMIT);
    close_rig(&rig);
    open_rig(&rig);
    found(&rig);
    cr_expect_eq(tile_cache_build_begin(rig.cache, TILE_BYTES, &error), STATUS_OK);
    close_rig(&rig);
    cr_expect_eq(cache_files(path), 0, "a build that was not ended");
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
