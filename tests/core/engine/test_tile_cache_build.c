/* Tiles that are never in memory whole: the file built of their pieces is the one that would have
 * been kept; what stands in the way is an error that leaves nothing. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/resource.h>

#include "core/base/file_map.h"
#include "tests/core/engine/tile_cache_rig.h"

TestSuite(tile_cache_build, .init = start, .fini = folder_leave);

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

Test(tile_cache_build, built_in_pieces_it_is_the_same_file) {
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

Test(tile_cache_build, what_cannot_be_built_is_an_error_and_leaves_nothing) {
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
