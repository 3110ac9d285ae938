/* A line about the packing, then a line a file: device, inode, size, times of the last change of
 * content and of status, and a hash of its header and of blocks spread over it. Any change by the
 * usual means sets the second time, which no program can set back; the hash is for file systems
 * that keep no such time. */
#include "core/engine/tile_cache_key.h"

#include <inttypes.h>
#include <time.h>

#include <xxhash.h>

#include "core/kernels/tile.h"

enum { SAMPLE_COUNT = 16, SAMPLE_BYTES = 4096, KEY_BYTES_MAX = 1 << 24 };

static const int64_t SETTLED_NS = 100000000;

static uint64_t hash_more(uint64_t hash, const void *bytes, size_t length) {
    return XXH3_64bits_withSeed(bytes, length, hash);
}

/* Read through the map: these are the bytes of the file that was opened, whatever its path names by
 * now. */
static uint64_t hash_samples(const struct file_map *map, size_t header_bytes) {
    uint64_t hash = hash_more(0, map->bytes, header_bytes);
    size_t length = map->length < SAMPLE_BYTES ? map->length : SAMPLE_BYTES;
    size_t step = (map->length - length) / (SAMPLE_COUNT - 1);
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        size_t offset = i + 1 < SAMPLE_COUNT ? i * step : map->length - length;
        hash = hash_more(hash, map->bytes + offset, length);
        if (offset >= header_bytes)
            file_map_forget(map, offset, length);
    }
    return hash;
}

/* Where a tensor lies. */
struct place {
    uint64_t file; /* its number */
    uint64_t offset;
};

static bool find_place(const struct gguf *gguf, const struct tensor *tensor, struct place *place) {
    uintptr_t bytes = (uintptr_t)tensor->bytes;
    for (size_t i = 0; i < gguf_file_count(gguf); i++) {
        const struct file_map *map = gguf_file_map(gguf, i);
        uintptr_t start = (uintptr_t)map->bytes;
        if (bytes < start || bytes - start >= map->length)
            continue;
        *place = (struct place){i, bytes - start};
        return true;
    }
    return false;
}

static bool hash_packing(const struct gguf *gguf, const struct linear *const *linears,
                         int linear_count, uint64_t *hash) {
    const uint64_t version = TILE_LAYOUT_VERSION;
    *hash = hash_more(0, &version, sizeof version);
    for (int i = 0; i < linear_count; i++) {
        for (int j = 0; j < linears[i]->part_count; j++) {
            const struct tensor *part = linears[i]->parts[j];
            struct place place;
            if (!find_place(gguf, part, &place))
                return false;
            const uint64_t facts[] = {(uint64_t)i,   (uint64_t)part->type->id,
                                      part->dims[0], part->row_count,
                                      place.file,    place.offset};
            *hash = hash_more(*hash, facts, sizeof facts);
        }
    }
    return true;
}

static int64_t wall_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool add_file(struct tile_cache_key *key, const struct gguf *gguf, size_t index) {
    const struct file_map *map = gguf_file_map(gguf, index);
    const struct file_identity *file = &map->identity;
    const uint64_t inode[] = {file->device, file->inode};
    int64_t now_ns = wall_now_ns();
    key->name = hash_more(key->name, inode, sizeof inode);
    if (now_ns - file->changed_ns < SETTLED_NS || now_ns - file->modified_ns < SETTLED_NS)
        key->settled = false;
    return text_append_format(
        &key->text, "%" PRIu64 ":%" PRIu64 ":%zu:%" PRId64 ":%" PRId64 ":%016" PRIx64 "\n",
        file->device, file->inode, map->length, file->modified_ns, file->changed_ns,
        hash_samples(map, gguf_file_header_bytes(gguf, index)));
}

bool tile_cache_key_init(struct tile_cache_key *key, const struct gguf *gguf,
                         const struct linear *const *linears, int linear_count) {
    *key = (struct tile_cache_key){.settled = true};
    text_init(&key->text, KEY_BYTES_MAX);
    if (!hash_packing(gguf, linears, linear_count, &key->name) ||
        !text_append_format(&key->text, "layout %d packing %016" PRIx64 "\n", TILE_LAYOUT_VERSION,
                            key->name))
        return false;
    for (size_t i = 0; i < gguf_file_count(gguf); i++) {
        if (!add_file(key, gguf, i))
            return false;
    }
    return true;
}

void tile_cache_key_deinit(struct tile_cache_key *key) {
    text_deinit(&key->text);
}
