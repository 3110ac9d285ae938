/* Opening a model: map the file, or every shard of it, parse each, join their tensors. Metadata is
 * the first shard's; the others carry only what ties them to it. */
#include "core/weights/gguf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/weights/gguf_parse.h"
#include "core/weights/gguf_split.h"

/* The parser's tables are bounded by entry counts; this bounds them by bytes as well. */
static const size_t arena_max_bytes = (size_t)1 << 30;
enum { ARENA_CHUNK_BYTES = 64 * 1024 };

struct shard {
    char *path;
    struct file_map map;
    struct gguf_content content;
};

struct gguf {
    struct arena arena;
    struct shard *shards; /* [shard_count] */
    size_t shard_count;
    const struct tensor **tensors;         /* [tensor_count], file order */
    const struct tensor **tensors_by_name; /* [tensor_count], sorted */
    size_t tensor_count;
};

static enum status open_shard(struct gguf *gguf, struct shard *shard, struct error *error) {
    TRY(file_map_open(&shard->map, shard->path, error));
    enum status status =
        gguf_parse(shard->map.bytes, shard->map.length, &gguf->arena, &shard->content, error);
    return status ? error_context(error, "'%s'", shard->path) : STATUS_OK;
}

/* Shard `index` must say about itself what `split` says about all of them. */
static enum status check_shard(const struct shard *shard, const struct gguf_split *split,
                               uint64_t index, struct error *error) {
    struct gguf_split own;
    if (gguf_split_read(&shard->content, &own, error))
        return error_context(error, "'%s'", shard->path);
    if (own.index == index && own.shard_count == split->shard_count)
        return STATUS_OK;
    return error_set(error, STATUS_CORRUPT,
                     "'%s': it says to be shard %llu of %llu, not %llu of %llu", shard->path,
                     (unsigned long long)own.index + 1, (unsigned long long)own.shard_count,
                     (unsigned long long)index + 1, (unsigned long long)split->shard_count);
}

/* Replaces the one open shard by all of them, in order. */
static enum status open_all_shards(struct gguf *gguf, const struct gguf_split *split,
                                   struct error *error) {
    struct shard first = gguf->shards[0];
    struct shard *shards = calloc(split->shard_count, sizeof *shards);
    if (!shards)
        return error_no_memory(error, "the shards");
    free(gguf->shards);
    gguf->shards = shards;
    gguf->shard_count = (size_t)split->shard_count;
    shards[split->index] = first;
    for (size_t i = 0; i < gguf->shard_count; i++) {
        if (i != split->index) {
            if (gguf_split_path(first.path, split, i, &shards[i].path, error))
                return error_context(error, "'%s'", first.path);
            if (open_shard(gguf, &shards[i], error))
                return error_context(error, "shard %zu of %zu", i + 1, gguf->shard_count);
        }
        TRY(check_shard(&shards[i], split, i, error));
    }
    return STATUS_OK;
}

static int compare_names(const void *left, const void *right) {
    const struct tensor *const *a = left;
    const struct tensor *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

static enum status join_tensors(struct gguf *gguf, struct error *error) {
    for (size_t i = 0; i < gguf->shard_count; i++)
        gguf->tensor_count += gguf->shards[i].content.tensor_count;
    size_t slots = gguf->tensor_count + 1;
    gguf->tensors = arena_calloc(&gguf->arena, slots, sizeof *gguf->tensors);
    gguf->tensors_by_name = arena_calloc(&gguf->arena, slots, sizeof *gguf->tensors_by_name);
    if (!gguf->tensors || !gguf->tensors_by_name)
        return error_no_memory(error, "the tensor directory");
    size_t next = 0;
    for (size_t i = 0; i < gguf->shard_count; i++)
        for (size_t j = 0; j < gguf->shards[i].content.tensor_count; j++)
            gguf->tensors[next++] = &gguf->shards[i].content.tensors[j];
    memcpy(gguf->tensors_by_name, gguf->tensors, next * sizeof *gguf->tensors);
    qsort(gguf->tensors_by_name, next, sizeof *gguf->tensors_by_name, compare_names);
    for (size_t i = 1; i < next; i++)
        if (compare_names(&gguf->tensors_by_name[i - 1], &gguf->tensors_by_name[i]) == 0)
            return error_set(error, STATUS_CORRUPT, "the tensor '%s' occurs twice",
                             gguf->tensors_by_name[i]->name);
    return STATUS_OK;
}

static enum status open_into(struct gguf *gguf, const char *path, struct error *error) {
    arena_init(&gguf->arena, ARENA_CHUNK_BYTES, arena_max_bytes);
    gguf->shards = calloc(1, sizeof *gguf->shards);
    if (!gguf->shards)
        return error_no_memory(error, "the model file");
    gguf->shard_count = 1;
    gguf->shards[0].path = strdup(path);
    if (!gguf->shards[0].path)
        return error_no_memory(error, "the model file's path");
    TRY(open_shard(gguf, &gguf->shards[0], error));
    struct gguf_split split;
    if (gguf_split_read(&gguf->shards[0].content, &split, error))
        return error_context(error, "'%s'", path);
    if (split.shard_count > 1)
        TRY(open_all_shards(gguf, &split, error));
    if (join_tensors(gguf, error))
        return error_context(error, "'%s'", path);
    if (split.shard_count > 1 && split.tensor_count && split.tensor_count != gguf->tensor_count)
        return error_set(error, STATUS_CORRUPT, "'%s': the shards hold %zu tensors, not %llu", path,
                         gguf->tensor_count, (unsigned long long)split.tensor_count);
    return STATUS_OK;
}

enum status gguf_open(const char *path, struct gguf **gguf, struct error *error) {
    *gguf = NULL;
    struct gguf *opened = calloc(1, sizeof *opened);
    if (!opened)
        return error_no_memory(error, "the model file");
    enum status status = open_into(opened, path, error);
    if (status != STATUS_OK) {
        gguf_close(opened);
        return status;
    }
    *gguf = opened;
    return STATUS_OK;
}

void gguf_close(struct gguf *gguf) {
    if (!gguf)
        return;
    for (size_t i = 0; i < gguf->shard_count; i++) {
        file_map_close(&gguf->shards[i].map);
        free(gguf->shards[i].path);
    }
    free(gguf->shards);
    arena_deinit(&gguf->arena);
    free(gguf);
}

size_t gguf_value_count(const struct gguf *gguf) {
    return gguf->shards[0].content.value_count;
}

const struct gguf_value *gguf_value_at(const struct gguf *gguf, size_t index) {
    return index < gguf_value_count(gguf) ? &gguf->shards[0].content.values[index] : NULL;
}

const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key) {
    return gguf_parse_find(&gguf->shards[0].content, key);
}

size_t gguf_tensor_count(const struct gguf *gguf) {
    return gguf->tensor_count;
}

const struct tensor *gguf_tensor_at(const struct gguf *gguf, size_t index) {
    return index < gguf->tensor_count ? gguf->tensors[index] : NULL;
}

const struct tensor *gguf_find_tensor(const struct gguf *gguf, const char *name) {
    const struct tensor wanted = {.name = name};
    const struct tensor *pointer = &wanted;
    const struct tensor **found =
        bsearch(&pointer, gguf->tensors_by_name, gguf->tensor_count, sizeof pointer, compare_names);
    return found ? *found : NULL;
}

uint64_t gguf_file_bytes(const struct gguf *gguf) {
    uint64_t sum = 0;
    for (size_t i = 0; i < gguf->shard_count; i++)
        sum += gguf->shards[i].map.length;
    return sum;
}

size_t gguf_file_count(const struct gguf *gguf) {
    return gguf->shard_count;
}

const char *gguf_file_path(const struct gguf *gguf, size_t index) {
    return index < gguf->shard_count ? gguf->shards[index].path : NULL;
}

const struct file_map *gguf_file_map(const struct gguf *gguf, size_t index) {
    return &gguf->shards[index].map;
}

size_t gguf_file_header_bytes(const struct gguf *gguf, size_t index) {
    const struct shard *shard = &gguf->shards[index];
    size_t bytes = shard->map.length;
    for (size_t i = 0; i < shard->content.tensor_count; i++) {
        const struct tensor *tensor = &shard->content.tensors[i];
        size_t offset = (size_t)((uintptr_t)tensor->bytes - (uintptr_t)shard->map.bytes);
        if (tensor->byte_count > 0 && offset < bytes)
            bytes = offset;
    }
    return bytes;
}

/* The map that holds a row of the tensor, and where in it. */
static const struct file_map *find_map(const struct gguf *gguf, const struct tensor *tensor,
                                       uint64_t row, size_t *offset) {
    uintptr_t place = (uintptr_t)tensor->bytes + row * tensor->row_bytes;
    for (size_t i = 0; i < gguf->shard_count; i++) {
        const struct file_map *map = &gguf->shards[i].map;
        uintptr_t start = (uintptr_t)map->bytes;
        if (map->bytes && place >= start && place - start < map->length) {
            *offset = place - start;
            return map;
        }
    }
    return NULL;
}

void gguf_copy_row(const struct gguf *gguf, const struct tensor *tensor, uint64_t row,
                   uint8_t *out) {
    size_t offset = 0;
    const struct file_map *map = find_map(gguf, tensor, row, &offset);
    assert(map != NULL);
    file_map_copy(map, offset, tensor->row_bytes, out);
}

void gguf_forget_rows(const struct gguf *gguf, const struct tensor *tensor, uint64_t row_first,
                      uint64_t row_count) {
    size_t offset = 0;
    const struct file_map *map = find_map(gguf, tensor, row_first, &offset);
    if (map != NULL)
        file_map_forget(map, offset, row_count * tensor->row_bytes);
}

void gguf_forget_tensor(const struct gguf *gguf, const struct tensor *tensor) {
    gguf_forget_rows(gguf, tensor, 0, tensor->row_count);
}

void gguf_forget_all(const struct gguf *gguf) {
    for (size_t i = 0; i < gguf->shard_count; i++)
        file_map_forget(&gguf->shards[i].map, 0, gguf->shards[i].map.length);
}
