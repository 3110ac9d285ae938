/* The folder of the tile cache: the names in it, what is removed from it, and files that appear
 * there whole or not at all. */
#ifndef CORE_ENGINE_TILE_CACHE_FOLDER_H
#define CORE_ENGINE_TILE_CACHE_FOLDER_H

#include <stdint.h>

#include "core/base/error.h"

enum { TILE_CACHE_PATH_BYTES = 4096 };

/* Makes the folder and those above it. */
enum status tile_cache_folder_make(const char *folder, struct error *error);

/* The path of the tiles with this name. */
enum status tile_cache_folder_path(const char *folder, uint64_t name,
                                   char path[TILE_CACHE_PATH_BYTES], struct error *error);

/* Removes the tiles used longest ago until the rest, but for `path`, takes at most `bytes_max`; and
 * temporary files whose writers are gone. */
void tile_cache_folder_trim(const char *folder, const char *path, uint64_t bytes_max);

/* A file being written: locked, under a temporary name. */
struct tile_cache_draft {
    int descriptor;
    char path[TILE_CACHE_PATH_BYTES];
};

enum status tile_cache_folder_begin(const char *path, struct tile_cache_draft *draft,
                                    struct error *error);
/* Gives the draft its name, replacing what had it. */
enum status tile_cache_folder_publish(struct tile_cache_draft *draft, const char *path,
                                      struct error *error);
void tile_cache_folder_abandon(struct tile_cache_draft *draft);

#endif
