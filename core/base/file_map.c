/* Whole files as read-only memory. The file is opened without blocking, so that a path that turns
 * out to be a pipe is refused instead of waited for. */
#include "core/base/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t nanoseconds(struct timespec time) {
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static enum status map_descriptor(struct file_map *map, int descriptor, const char *path,
                                  struct error *error) {
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return error_set_errno(error, STATUS_IO, errno, "cannot examine '%s'", path);
    if (S_ISDIR(info.st_mode))
        return error_set(error, STATUS_BAD_INPUT, "'%s' is a directory, not a file", path);
    if (!S_ISREG(info.st_mode))
        return error_set(error, STATUS_BAD_INPUT, "'%s' is not a regular file", path);
    if ((uintmax_t)info.st_size > PTRDIFF_MAX)
        return error_set(error, STATUS_OVER_LIMIT, "'%s' is too large to map", path);
    map->identity = (struct file_identity){info.st_dev, info.st_ino, nanoseconds(info.st_mtim),
                                           nanoseconds(info.st_ctim)};
    if (info.st_size == 0)
        return STATUS_OK;
    size_t length = (size_t)info.st_size;
    void *bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes == MAP_FAILED)
        return error_set_errno(error, errno == ENOMEM ? STATUS_NO_MEMORY : STATUS_IO, errno,
                               "cannot map '%s'", path);
    map->bytes = bytes;
    map->length = length;
    map->descriptor = descriptor;
    return STATUS_OK;
}

enum status file_map_open(struct file_map *map, const char *path, struct error *error) {
    *map = (struct file_map){0};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        bool absent = errno == ENOENT || errno == ENOTDIR;
        return error_set_errno(error, absent ? STATUS_NOT_FOUND : STATUS_IO, errno,
                               "cannot open '%s'", path);
    }
    enum status status = map_descriptor(map, descriptor, path, error);
    if (!map->bytes)
        close(descriptor);
    return status;
}

/* munmap and madvise want `void *`; nothing is written through it. */
static void *mapping_address(const struct file_map *map, size_t offset) {
    return (void *)((uintptr_t)map->bytes + offset);
}

void file_map_close(struct file_map *map) {
    if (map->bytes) {
        munmap(mapping_address(map, 0), map->length);
        close(map->descriptor);
    }
    *map = (struct file_map){0};
}

/* What cannot be read is taken from the map, which fails in its own way if it must. */
void file_map_copy(const struct file_map *map, size_t offset, size_t length, uint8_t *out) {
    size_t done = 0;
    while (done < length) {
        ssize_t count = pread(map->descriptor, out + done, length - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        done += (size_t)count;
    }
    memcpy(out + done, map->bytes + offset + done, length - done);
}

void file_map_forget(const struct file_map *map, size_t offset, size_t length) {
    if (!map->bytes || offset >= map->length)
        return;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t end = length < map->length - offset ? offset + length : map->length;
    size_t first = (offset + page - 1) / page * page;
    if (end < map->length)
        end = end / page * page;
    if (first < end)
        madvise(mapping_address(map, first), end - first, MADV_DONTNEED);
}
