/* One file of packed weights: a head with the key and a checksum of every MiB, then the tiles as
 * they lie in memory, one linear behind another.
 *
 * Nothing of a file is believed: it has the size its reader computes, its head carries the reader's
 * own key, and every byte is checked at every opening, on all threads: 98 MB in 7 ms, a tenth of
 * what the first step over them takes. So it needs no fsync: what a loss of power leaves half
 * written does not pass. */
#ifndef CORE_ENGINE_TILE_CACHE_FILE_H
#define CORE_ENGINE_TILE_CACHE_FILE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/file_map.h"
#include "core/base/thread_pool.h"
#include "core/base/view.h"

/* Bytes of the file for this much data under this key. */
uint64_t tile_cache_file_bytes(size_t key_bytes, size_t data_bytes);

/* Tiles in a mapped file. They are mapped, not read into memory of our own: a start takes half the
 * time, several processes share them, and a run computes no slower. */
struct tile_cache_tiles {
    const uint8_t *bytes;
    struct file_map map; /* owned: file_map_close */
};

/* Maps the file and checks all of it. STATUS_NOT_FOUND: there is none, or it has another key;
 * STATUS_CORRUPT: it is damaged. */
enum status tile_cache_file_open(const char *path, struct view key, size_t data_bytes,
                                 struct thread_pool *pool, struct tile_cache_tiles *tiles,
                                 struct error *error);
/* The same for tiles that will not be read through the map: of what is checked little is resident
 * at a time. */
enum status tile_cache_file_open_sparing(const char *path, struct view key, size_t data_bytes,
                                         struct thread_pool *pool, struct tile_cache_tiles *tiles,
                                         struct error *error);

struct tile_cache_content {
    struct view key;
    const uint8_t *data;
    size_t data_bytes;
};

/* Writes an empty file open for writing. `stop` (or NULL): the writing ends when it is not 0
 * (STATUS_CANCELLED). */
enum status tile_cache_file_write(int descriptor, const struct tile_cache_content *content,
                                  struct thread_pool *pool, const atomic_int *stop,
                                  struct error *error);

/* A file written piece by piece, for tiles that are never in memory all at once. */
struct tile_cache_file_writer {
    int descriptor; /* borrowed */
    struct view key;
    size_t data_bytes, written;
    uint8_t *head;
    size_t head_bytes;
    void *checksum; /* of the chunk being written */
};

enum status tile_cache_file_begin(struct tile_cache_file_writer *writer, int descriptor,
                                  struct view key, size_t data_bytes, struct error *error);
/* The next bytes of the data. */
enum status tile_cache_file_append(struct tile_cache_file_writer *writer, const uint8_t *data,
                                   size_t bytes, struct error *error);
/* After all of the data. */
enum status tile_cache_file_finish(struct tile_cache_file_writer *writer, struct error *error);
void tile_cache_file_writer_deinit(struct tile_cache_file_writer *writer);

#endif
