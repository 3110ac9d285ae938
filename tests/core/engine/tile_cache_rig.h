/* A model's two linears, a cache for their tiles, and what it says. */
#ifndef TESTS_CORE_ENGINE_TILE_CACHE_RIG_H
#define TESTS_CORE_ENGINE_TILE_CACHE_RIG_H

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

static inline void listen(void *context, enum log_level level, const char *message) {
    struct rig *rig = context;
    rig->warnings += level == LOG_WARNING;
    snprintf(rig->said, sizeof rig->said, "%s", message);
}

static inline void write_model(const char *path, uint8_t content, int shard, int shard_count) {
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

static inline void settle(void) {
    usleep(TICK_US);
}

static inline void open_at(struct rig *rig, const char *model, const char *folder,
                           uint64_t bytes_max) {
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

static inline void open_rig(struct rig *rig) {
    open_at(rig, "model.gguf", "cache/sheaf", PLENTY);
}

static inline void close_rig(struct rig *rig) {
    tile_cache_destroy(rig->cache);
    thread_pool_destroy(rig->pool);
    gguf_close(rig->gguf);
    free(rig->tiles);
}

/* Whether the cache has the tiles; if so, they must be the rig's. */
static inline bool found(struct rig *rig) {
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

static inline void keep(struct rig *rig) {
    rig->warnings = 0;
    tile_cache_keep(rig->cache, rig->pool, rig->tiles, TILE_BYTES, NULL);
}

/* Whether a new start on the model finds its tiles. */
static inline bool found_by_next(const char *model) {
    struct rig rig;
    open_at(&rig, model, "cache/sheaf", PLENTY);
    bool is_found = found(&rig);
    close_rig(&rig);
    return is_found;
}

static inline void keep_model(const char *model, uint64_t bytes_max) {
    struct rig rig;
    open_at(&rig, model, "cache/sheaf", bytes_max);
    found(&rig);
    keep(&rig);
    cr_assert_eq(rig.warnings, 0, "%s", rig.said);
    close_rig(&rig);
}

/* Files in the cache; the last one's path. */
static inline int cache_files(char path[FOLDER_PATH_MAX]) {
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
static inline void remove_tiles(void) {
    DIR *stream = opendir("cache/sheaf");
    for (struct dirent *entry; stream != NULL && (entry = readdir(stream)) != NULL;)
        if (strncmp(entry->d_name, "tiles-", 6) == 0 && strchr(entry->d_name, '.') == NULL)
            unlinkat(dirfd(stream), entry->d_name, 0);
    if (stream != NULL)
        closedir(stream);
}

static inline void start(void) {
    folder_enter();
    write_model("model.gguf", 1, 0, 1);
    settle();
}

#endif
