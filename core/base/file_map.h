/* Read-only memory maps of whole files. A file that shrinks while mapped raises SIGBUS: callers map
 * model files only, never documents. */
#ifndef CORE_BASE_FILE_MAP_H
#define CORE_BASE_FILE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* What tells a file from every other, and from itself before a change: nobody can set the time of a
 * file's last change of status. */
struct file_identity {
    uint64_t device;
    uint64_t inode;
    int64_t modified_ns; /* since 1970 */
    int64_t changed_ns;
};

struct file_map {
    const uint8_t *bytes; /* NULL when closed or the file is empty */
    size_t length;
    int descriptor;                /* open while there are bytes */
    struct file_identity identity; /* when it was opened */
};

/* Directories and special files are refused. The error names the path. */
enum status file_map_open(struct file_map *map, const char *path, struct error *error);
void file_map_close(struct file_map *map);

/* Copies bytes of the file without mapping their surroundings, which a touch of the map makes
 * resident: 64 KiB, or a whole huge page on newer kernels. */
void file_map_copy(const struct file_map *map, size_t offset, size_t length, uint8_t *out);

/* The pages of [offset, offset + length) will not be needed again: give the memory back. */
void file_map_forget(const struct file_map *map, size_t offset, size_t length);

#endif
