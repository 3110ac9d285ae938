/* What is said about the cache, and what is done when it fails: nothing that the user would have to
 * heed. */
#include "core/engine/tile_cache.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/engine/tile_cache_file.h"
#include "core/engine/tile_cache_folder.h"
#include "core/engine/tile_cache_key.h"

struct tile_cache {
    char *folder;
    uint64_t bytes_max;
    struct log *log;
    bool has_key;
    struct tile_cache_key key;
    char path[TILE_CACHE_PATH_BYTES];
    bool wanted; /* the last load found nothing to use */
    bool is_building;
    struct tile_cache_draft draft; /* while building */
    struct tile_cache_file_writer writer;
};

enum status tile_cache_create(const struct tile_cache_options *options, struct tile_cache **cache,
                              struct error *error) {
    struct tile_cache *made = calloc(1, sizeof *made);
    *cache = made;
    if (made == NULL)
        return error_no_memory(error, "the tile cache");
    made->folder = strdup(options->folder);
    made->bytes_max = options->bytes_max;
    made->log = options->log;
    if (made->folder != NULL)
        return STATUS_OK;
    tile_cache_destroy(made);
    *cache = NULL;
    return error_no_memory(error, "the tile cache");
}

static void forget_key(struct tile_cache *cache) {
    if (cache->has_key)
        tile_cache_key_deinit(&cache->key);
    cache->has_key = false;
}

static void stop_building(struct tile_cache *cache) {
    if (!cache->is_building)
        return;
    tile_cache_file_writer_deinit(&cache->writer);
    tile_cache_folder_abandon(&cache->draft);
    cache->is_building = false;
}

void tile_cache_destroy(struct tile_cache *cache) {
    if (cache == NULL)
        return;
    stop_building(cache);
    forget_key(cache);
    free(cache->folder);
    free(cache);
}

static bool make_key(struct tile_cache *cache, const struct tile_cache_linears *linears) {
    struct error ignored;
    forget_key(cache);
    cache->has_key = true;
    return tile_cache_key_init(&cache->key, linears->gguf, linears->linears, linears->count) &&
           tile_cache_folder_path(cache->folder, cache->key.name, cache->path, &ignored) ==
               STATUS_OK;
}

static bool load(struct tile_cache *cache, const struct tile_cache_linears *linears, size_t bytes,
                 bool sparing, struct thread_pool *pool, struct tile_cache_tiles *tiles) {
    struct error error;
    int64_t started_ns = clock_now_ns();
    cache->wanted = false;
    if (!make_key(cache, linears))
        return false;
    struct view key = text_view(&cache->key.text);
    enum status status =
        sparing ? tile_cache_file_open_sparing(cache->path, key, bytes, pool, tiles, &error)
                : tile_cache_file_open(cache->path, key, bytes, pool, tiles, &error);
    cache->wanted = status != STATUS_OK;
    if (status == STATUS_OK)
        log_write(cache->log, LOG_DEBUG, "packed weights are those of '%s', checked in %.1f ms",
                  cache->path, clock_ms_between(started_ns, clock_now_ns()));
    else
        log_write(cache->log, status == STATUS_NOT_FOUND ? LOG_DEBUG : LOG_WARNING,
                  "%s: weights are packed anew", error.text);
    return status == STATUS_OK;
}

bool tile_cache_load(struct tile_cache *cache, const struct tile_cache_linears *linears,
                     size_t bytes, struct thread_pool *pool, struct tile_cache_tiles *tiles) {
    return load(cache, linears, bytes, false, pool, tiles);
}

bool tile_cache_load_sparing(struct tile_cache *cache, const struct tile_cache_linears *linears,
                             size_t bytes, struct thread_pool *pool,
                             struct tile_cache_tiles *tiles) {
    return load(cache, linears, bytes, true, pool, tiles);
}

/* ---- tiles that memory cannot hold ---- */

enum status tile_cache_build_begin(struct tile_cache *cache, size_t bytes, struct error *error) {
    uint64_t need = tile_cache_file_bytes(cache->key.text.length, bytes);
    if (!cache->wanted || !cache->key.settled)
        return error_set(error, STATUS_IO, "the model's file was changed just now: try again");
    if (need > cache->bytes_max)
        return error_set(error, STATUS_OVER_LIMIT,
                         "packed weights take %.1f MB of disk, --tile-cache allows %.1f",
                         (double)need / 1e6, (double)cache->bytes_max / 1e6);
    TRY(tile_cache_folder_make(cache->folder, error));
    tile_cache_folder_trim(cache->folder, cache->path, cache->bytes_max - need);
    TRY(tile_cache_folder_begin(cache->path, &cache->draft, error));
    enum status status = tile_cache_file_begin(&cache->writer, cache->draft.descriptor,
                                               text_view(&cache->key.text), bytes, error);
    if (status != STATUS_OK)
        tile_cache_folder_abandon(&cache->draft);
    cache->is_building = status == STATUS_OK;
    return status == STATUS_OK ? status : error_context(error, "'%s'", cache->path);
}

enum status tile_cache_build_append(struct tile_cache *cache, const uint8_t *tiles, size_t bytes,
                                    struct error *error) {
    enum status status = tile_cache_file_append(&cache->writer, tiles, bytes, error);
    if (status == STATUS_OK)
        return status;
    stop_building(cache);
    return error_context(error, "'%s'", cache->path);
}

enum status tile_cache_build_end(struct tile_cache *cache, struct error *error) {
    enum status status = tile_cache_file_finish(&cache->writer, error);
    if (status != STATUS_OK) {
        stop_building(cache);
        return error_context(error, "'%s'", cache->path);
    }
    tile_cache_file_writer_deinit(&cache->writer);
    cache->is_building = false;
    return tile_cache_folder_publish(&cache->draft, cache->path, error);
}

static enum status write_file(struct tile_cache *cache, struct thread_pool *pool,
                              const struct tile_cache_content *content, const atomic_int *stop,
                              struct error *error) {
    struct tile_cache_draft draft;
    TRY(tile_cache_folder_begin(cache->path, &draft, error));
    enum status status = tile_cache_file_write(draft.descriptor, content, pool, stop, error);
    if (status == STATUS_OK)
        return tile_cache_folder_publish(&draft, cache->path, error);
    tile_cache_folder_abandon(&draft);
    return status;
}

void tile_cache_keep(struct tile_cache *cache, struct thread_pool *pool, const uint8_t *tiles,
                     size_t bytes, const atomic_int *stop) {
    struct error error;
    int64_t started_ns = clock_now_ns();
    if (!cache->wanted || !cache->key.settled || (stop != NULL && atomic_load(stop) != 0))
        return;
    cache->wanted = false;
    uint64_t need = tile_cache_file_bytes(cache->key.text.length, bytes);
    if (need > cache->bytes_max) {
        log_write(cache->log, LOG_DEBUG, "not keeping packed weights: %.0f MB are over the limit",
                  (double)need / 1e6);
        return;
    }
    struct tile_cache_content content = {text_view(&cache->key.text), tiles, bytes};
    enum status status = tile_cache_folder_make(cache->folder, &error);
    if (status == STATUS_OK) {
        tile_cache_folder_trim(cache->folder, cache->path, cache->bytes_max - need);
        status = write_file(cache, pool, &content, stop, &error);
    }
    if (status == STATUS_OK)
        log_write(cache->log, LOG_DEBUG, "kept packed weights in '%s' in %.0f ms", cache->path,
                  clock_ms_between(started_ns, clock_now_ns()));
    else if (status != STATUS_CANCELLED)
        log_write(cache->log, LOG_WARNING,
                  "packed weights are not kept for the next start: '%s': %s (--tile-cache 0 does "
                  "without)",
                  cache->path, error.text);
}
