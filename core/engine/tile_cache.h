/* Packed weights kept between runs in the user's cache folder, so that a start reads tiles instead
 * of packing the model anew. Whatever goes wrong with it is a warning at most: then weights are
 * packed as without it.
 *
 * Several processes may use the folder at once: a file is written under a temporary name, locked
 * while its writer lives, and renamed. Those used longest ago go first when they take more than the
 * limit. */
#ifndef CORE_ENGINE_TILE_CACHE_H
#define CORE_ENGINE_TILE_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "core/engine/tile_cache_file.h"
#include "core/model/model.h"

struct tile_cache_options {
    const char *folder; /* made when it is needed */
    uint64_t bytes_max; /* of all its files of tiles together */
    struct log *log;    /* borrowed; may be NULL */
};

struct tile_cache;

enum status tile_cache_create(const struct tile_cache_options *options, struct tile_cache **cache,
                              struct error *error);
void tile_cache_destroy(struct tile_cache *cache); /* NULL is fine */

/* The linears whose tiles lie one behind another in memory. */
struct tile_cache_linears {
    const struct gguf *gguf; /* the files they were packed from */
    const struct linear *const *linears;
    int count;
};

/* The tiles of these linears, `bytes` altogether; false when the cache has none. */
bool tile_cache_load(struct tile_cache *cache, const struct tile_cache_linears *linears,
                     size_t bytes, struct thread_pool *pool, struct tile_cache_tiles *tiles);

/* The same for tiles that are read from the file again and again, not through the map. */
bool tile_cache_load_sparing(struct tile_cache *cache, const struct tile_cache_linears *linears,
                             size_t bytes, struct thread_pool *pool,
                             struct tile_cache_tiles *tiles);

/* Makes the file that the last load did not find, for tiles that are never in memory all at once:
 * begin, the tiles piece by piece, end; a failure ends it, too. Here errors are errors. */
enum status tile_cache_build_begin(struct tile_cache *cache, size_t bytes, struct error *error);
enum status tile_cache_build_append(struct tile_cache *cache, const uint8_t *tiles, size_t bytes,
                                    struct error *error);
enum status tile_cache_build_end(struct tile_cache *cache, struct error *error);

/* Keeps tiles that the last load did not find, for the state that the model's files had then.
 * `stop` (or NULL): given up when it is not 0. */
void tile_cache_keep(struct tile_cache *cache, struct thread_pool *pool, const uint8_t *tiles,
                     size_t bytes, const atomic_int *stop);

#endif
