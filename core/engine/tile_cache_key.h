/* What packed weights are kept under: which model files, in which state, packed how. All of it is
 * repeated inside the cache's file, so that neither an equal name nor an older state of the model
 * can pass for it. */
#ifndef CORE_ENGINE_TILE_CACHE_KEY_H
#define CORE_ENGINE_TILE_CACHE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/text.h"
#include "core/model/model.h"

struct tile_cache_key {
    struct text text;
    uint64_t name; /* of model files and packing, whatever the files' state: a newer state's tiles
                      replace those of the older one */
    bool settled;  /* no file changed in the moment before it was opened: file systems tell times
                      in ticks, so a second change within one could not be seen */
};

/* The key of these linears, in the order they are packed, of the files as they were opened. False:
 * out of memory, or weights that lie in no file. Deinit in any case. */
bool tile_cache_key_init(struct tile_cache_key *key, const struct gguf *gguf,
                         const struct linear *const *linears, int linear_count);
void tile_cache_key_deinit(struct tile_cache_key *key);

#endif
