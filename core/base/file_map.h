/* Read-only memory maps of whole files. A file that shrinks while mapped raises SIGBUS: callers map
 * model files only, never documents. */
#ifndef CORE_BASE_FILE_MAP_H
#define CORE_BASE_FILE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

struct file_map {
    const uint8_t *bytes; /* NULL when closed or the file is empty */
    size_t length;
};

/* Directories and special files are refused. The error names the path. */
enum status file_map_open(struct file_map *map, const char *path, struct error *error);
void file_map_close(struct file_map *map);

/* The pages of [offset, offset + length) will not be needed again: give the memory back. */
void file_map_forget(const struct file_map *map, size_t offset, size_t length);

#endif
