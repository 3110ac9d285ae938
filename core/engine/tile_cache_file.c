/* Chunks are checked, or summed and written, as tasks of the pool. */
#include "core/engine/tile_cache_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

enum { CHUNK_BYTES = 1 << 20, PAGE_BYTES = 4096, FORMAT = 1 };

static const char MAGIC[8] = {'s', 'h', 'e', 'a', 'f', 't', 'i', 'l'};

/* The head: this, the chunks' checksums, the key, zeros up to a whole page. */
struct head {
    char magic[8];
    uint32_t format;
    uint32_t key_bytes;
    uint64_t data_bytes;
    uint64_t checksum; /* of the whole head with 0 here */
};

static size_t chunk_count(size_t data_bytes) {
    return (data_bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
}

static size_t head_bytes(size_t key_bytes, size_t data_bytes) {
    size_t bytes = sizeof(struct head) + chunk_count(data_bytes) * sizeof(uint64_t) + key_bytes;
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

uint64_t tile_cache_file_bytes(size_t key_bytes, size_t data_bytes) {
    return (uint64_t)head_bytes(key_bytes, data_bytes) + data_bytes;
}

/* The chunks of some data: to check, or to sum up and write. */
struct transfer {
    const struct file_map *sparing; /* checked chunks of it are forgotten; or NULL */
    const uint8_t *data;
    size_t bytes;
    const uint64_t *expected; /* [chunk_count], when checking */
    uint64_t *checksums;      /* [chunk_count], when writing */
    int descriptor;
    uint64_t offset; /* of the data in the file */
    const atomic_int *stop;
    atomic_int status;
    atomic_int error_number; /* of STATUS_IO */
};

static void set_failed(struct transfer *transfer, enum status status, int error_number) {
    atomic_store(&transfer->error_number, error_number);
    atomic_store(&transfer->status, (int)status);
}

static bool write_all(int descriptor, const void *bytes, size_t length, uint64_t offset) {
    size_t done = 0;
    while (done < length) {
        ssize_t count =
            pwrite(descriptor, (const char *)bytes + done, length - done, (off_t)(offset + done));
        if (count < 0 && errno != EINTR)
            return false;
        done += count > 0 ? (size_t)count : 0;
    }
    return true;
}

static size_t chunk_length(const struct transfer *transfer, size_t first) {
    return transfer->bytes - first < CHUNK_BYTES ? transfer->bytes - first : CHUNK_BYTES;
}

static void check_chunk(void *context, int task, int worker) {
    (void)worker;
    struct transfer *transfer = context;
    size_t first = (size_t)task * CHUNK_BYTES, length = chunk_length(transfer, first);
    if (atomic_load(&transfer->status) == STATUS_OK &&
        XXH3_64bits(transfer->data + first, length) != transfer->expected[task])
        set_failed(transfer, STATUS_CORRUPT, 0);
    if (transfer->sparing != NULL)
        file_map_forget(transfer->sparing,
                        (size_t)(transfer->data - transfer->sparing->bytes) + first, length);
}

static void write_chunk(void *context, int task, int worker) {
    (void)worker;
    struct transfer *transfer = context;
    size_t first = (size_t)task * CHUNK_BYTES, length = chunk_length(transfer, first);
    const uint8_t *bytes = transfer->data + first;
    if (transfer->stop != NULL && atomic_load(transfer->stop) != 0)
        set_failed(transfer, STATUS_CANCELLED, 0);
    if (atomic_load(&transfer->status) != STATUS_OK)
        return;
    transfer->checksums[task] = XXH3_64bits(bytes, length);
    if (!write_all(transfer->descriptor, bytes, length, transfer->offset + first))
        set_failed(transfer, STATUS_IO, errno);
}

static enum status run(struct transfer *transfer, struct thread_pool *pool,
                       void (*function)(void *context, int task, int worker), struct error *error) {
    thread_pool_run(pool, (int)chunk_count(transfer->bytes), function, transfer);
    enum status status = (enum status)atomic_load(&transfer->status);
    if (status == STATUS_IO)
        return error_set_errno(error, status, atomic_load(&transfer->error_number),
                               "cannot write it");
    return status == STATUS_OK ? STATUS_OK : error_set(error, status, "its content is damaged");
}

static uint64_t head_checksum(const uint8_t *bytes, size_t length) {
    struct head head;
    memcpy(&head, bytes, sizeof head);
    head.checksum = 0;
    uint64_t hash = XXH3_64bits(&head, sizeof head);
    return XXH3_64bits_withSeed(bytes + sizeof head, length - sizeof head, hash);
}

/* Another key is no damage: that of a model that changed since. */
static enum status check_head(const struct file_map *map, struct view key, size_t data_bytes,
                              struct error *error) {
    struct head head;
    size_t length = head_bytes(key.length, data_bytes);
    if (map->length < sizeof head)
        return error_set(error, STATUS_CORRUPT, "it is cut off");
    memcpy(&head, map->bytes, sizeof head);
    if (memcmp(head.magic, MAGIC, sizeof MAGIC) != 0)
        return error_set(error, STATUS_CORRUPT, "its head is damaged");
    if (head.format != FORMAT || head.key_bytes != key.length || head.data_bytes != data_bytes)
        return error_set(error, STATUS_NOT_FOUND, "it holds other weights");
    if (map->length != length + data_bytes)
        return error_set(error, STATUS_CORRUPT, "it is cut off");
    if (head.checksum != head_checksum(map->bytes, length))
        return error_set(error, STATUS_CORRUPT, "its head is damaged");
    const uint8_t *own_key = map->bytes + sizeof head + chunk_count(data_bytes) * sizeof(uint64_t);
    if (memcmp(own_key, key.bytes, key.length) != 0)
        return error_set(error, STATUS_NOT_FOUND, "the model has changed");
    return STATUS_OK;
}

static enum status check(const struct file_map *map, struct view key, size_t data_bytes,
                         bool sparing, struct thread_pool *pool, struct error *error) {
    TRY(check_head(map, key, data_bytes, error));
    struct transfer transfer = {.sparing = sparing ? map : NULL,
                                .data = map->bytes + head_bytes(key.length, data_bytes),
                                .bytes = data_bytes,
                                .expected = (const void *)(map->bytes + sizeof(struct head))};
    return run(&transfer, pool, check_chunk, error);
}

static enum status open_file(const char *path, struct view key, size_t data_bytes, bool sparing,
                             struct thread_pool *pool, struct tile_cache_tiles *tiles,
                             struct error *error) {
    *tiles = (struct tile_cache_tiles){0};
    TRY(file_map_open(&tiles->map, path, error));
    enum status status = check(&tiles->map, key, data_bytes, sparing, pool, error);
    if (status != STATUS_OK) {
        file_map_close(&tiles->map);
        return error_context(error, "'%s'", path);
    }
    tiles->bytes = tiles->map.bytes + head_bytes(key.length, data_bytes);
    utimensat(AT_FDCWD, path, NULL, 0); /* the files used longest ago are removed first */
    return STATUS_OK;
}

enum status tile_cache_file_open(const char *path, struct view key, size_t data_bytes,
                                 struct thread_pool *pool, struct tile_cache_tiles *tiles,
                                 struct error *error) {
    return open_file(path, key, data_bytes, false, pool, tiles, error);
}

enum status tile_cache_file_open_sparing(const char *path, struct view key, size_t data_bytes,
                                         struct thread_pool *pool, struct tile_cache_tiles *tiles,
                                         struct error *error) {
    return open_file(path, key, data_bytes, true, pool, tiles, error);
}

/* Completes a head that has its checksums of chunks, and writes it. */
static enum status put_head(int descriptor, uint8_t *bytes, size_t data_bytes, struct view key,
                            struct error *error) {
    struct head head = {
        .format = FORMAT, .key_bytes = (uint32_t)key.length, .data_bytes = data_bytes};
    size_t length = head_bytes(key.length, data_bytes);
    memcpy(head.magic, MAGIC, sizeof MAGIC);
    memcpy(bytes, &head, sizeof head);
    memcpy(bytes + sizeof head + chunk_count(data_bytes) * sizeof(uint64_t), key.bytes, key.length);
    head.checksum = head_checksum(bytes, length);
    memcpy(bytes, &head, sizeof head);
    if (!write_all(descriptor, bytes, length, 0))
        return error_set_errno(error, STATUS_IO, errno, "cannot write it");
    return STATUS_OK;
}

/* A full disk is noticed before anything is written, where the file system can tell. */
static enum status make_room(int descriptor, size_t bytes, struct error *error) {
    if (fallocate(descriptor, 0, 0, (off_t)bytes) != 0 && errno != EOPNOTSUPP && errno != EINTR)
        return error_set_errno(error, STATUS_IO, errno, "cannot write it");
    return STATUS_OK;
}

enum status tile_cache_file_write(int descriptor, const struct tile_cache_content *content,
                                  struct thread_pool *pool, const atomic_int *stop,
                                  struct error *error) {
    size_t length = head_bytes(content->key.length, content->data_bytes);
    TRY(make_room(descriptor, length + content->data_bytes, error));
    uint8_t *head = calloc(1, length);
    if (head == NULL)
        return error_no_memory(error, "the tile cache");
    struct transfer transfer = {.data = content->data,
                                .bytes = content->data_bytes,
                                .checksums = (void *)(head + sizeof(struct head)),
                                .descriptor = descriptor,
                                .offset = length,
                                .stop = stop};
    enum status status = run(&transfer, pool, write_chunk, error);
    if (status == STATUS_OK)
        status = put_head(descriptor, head, content->data_bytes, content->key, error);
    free(head);
    return status;
}

/* ---- piece by piece ---- */

enum status tile_cache_file_begin(struct tile_cache_file_writer *writer, int descriptor,
                                  struct view key, size_t data_bytes, struct error *error) {
    *writer = (struct tile_cache_file_writer){.descriptor = descriptor,
                                              .key = key,
                                              .data_bytes = data_bytes,
                                              .head_bytes = head_bytes(key.length, data_bytes)};
    TRY(make_room(descriptor, writer->head_bytes + data_bytes, error));
    writer->head = calloc(1, writer->head_bytes);
    XXH3_state_t *checksum = XXH3_createState();
    writer->checksum = checksum;
    if (writer->head == NULL || checksum == NULL || XXH3_64bits_reset(checksum) != XXH_OK) {
        tile_cache_file_writer_deinit(writer);
        return error_no_memory(error, "the tile cache");
    }
    return STATUS_OK;
}

/* Ends the checksum of the chunk that the data written so far completes. */
static void end_chunk(struct tile_cache_file_writer *writer) {
    uint64_t *checksums = (void *)(writer->head + sizeof(struct head));
    checksums[(writer->written - 1) / CHUNK_BYTES] = XXH3_64bits_digest(writer->checksum);
    XXH3_64bits_reset(writer->checksum);
}

enum status tile_cache_file_append(struct tile_cache_file_writer *writer, const uint8_t *data,
                                   size_t bytes, struct error *error) {
    assert(bytes <= writer->data_bytes - writer->written);
    if (!write_all(writer->descriptor, data, bytes, writer->head_bytes + writer->written))
        return error_set_errno(error, STATUS_IO, errno, "cannot write it");
    while (bytes > 0) {
        size_t left = CHUNK_BYTES - writer->written % CHUNK_BYTES;
        size_t count = bytes < left ? bytes : left;
        XXH3_64bits_update(writer->checksum, data, count);
        writer->written += count;
        if (writer->written % CHUNK_BYTES == 0 || writer->written == writer->data_bytes)
            end_chunk(writer);
        data += count;
        bytes -= count;
    }
    return STATUS_OK;
}

enum status tile_cache_file_finish(struct tile_cache_file_writer *writer, struct error *error) {
    assert(writer->written == writer->data_bytes);
    return put_head(writer->descriptor, writer->head, writer->data_bytes, writer->key, error);
}

void tile_cache_file_writer_deinit(struct tile_cache_file_writer *writer) {
    XXH3_freeState(writer->checksum);
    free(writer->head);
    writer->checksum = NULL;
    writer->head = NULL;
}
