/* Tensor entries: name, dimensions, type, offset. Every multiplication is checked before it is
 * done: a product that wraps to something small is the classic hole of GGUF readers. */
#include "core/weights/gguf_tensors.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    NAME_BYTES_MAX = 64,
    TENSOR_COUNT_MAX = 1 << 20,
    ENTRY_BYTES_MIN = 8 + 1 + 4 + 8 + 4 + 8, /* the smallest name and one dimension */
};

static bool multiply(uint64_t a, uint64_t b, uint64_t *product) {
    return !__builtin_mul_overflow(a, b, product) && *product <= INT64_MAX;
}

static enum status read_dims(struct gguf_cursor *cursor, struct tensor *tensor,
                             struct error *error) {
    TRY(gguf_cursor_u32(cursor, "a tensor's dimensions", &tensor->dim_count, error));
    if (tensor->dim_count < 1 || tensor->dim_count > TENSOR_DIMS_MAX)
        return error_set(error, STATUS_CORRUPT, "%u dimensions, 1 to %d are allowed",
                         tensor->dim_count, TENSOR_DIMS_MAX);
    for (uint32_t i = 0; i < TENSOR_DIMS_MAX; i++) {
        tensor->dims[i] = 1;
        if (i >= tensor->dim_count)
            continue;
        TRY(gguf_cursor_u64(cursor, "a tensor's dimensions", &tensor->dims[i], error));
        if (tensor->dims[i] == 0)
            return error_set(error, STATUS_CORRUPT, "dimension %u is zero", i);
    }
    return STATUS_OK;
}

static enum status read_type(struct gguf_cursor *cursor, struct tensor *tensor,
                             struct error *error) {
    uint32_t id;
    char name[32];
    TRY(gguf_cursor_u32(cursor, "a tensor's type", &id, error));
    tensor->type = quant_type_find(id);
    if (!tensor->type)
        return error_set(error, STATUS_UNSUPPORTED, "tensors of type %s are not supported",
                         quant_type_foreign_name(id, name, sizeof name));
    return STATUS_OK;
}

static enum status compute_sizes(struct tensor *tensor, struct error *error) {
    const struct quant_type *type = tensor->type;
    if (tensor->dims[0] % type->block_values != 0)
        return error_set(error, STATUS_CORRUPT, "rows of %llu values are no multiple of %s's %u",
                         (unsigned long long)tensor->dims[0], type->name, type->block_values);
    uint64_t rows = 1;
    uint64_t values;
    uint64_t row_bytes;
    uint64_t byte_count;
    bool fits = multiply(tensor->dims[0] / type->block_values, type->block_bytes, &row_bytes);
    for (uint32_t i = 1; i < TENSOR_DIMS_MAX && fits; i++)
        fits = multiply(rows, tensor->dims[i], &rows);
    if (!fits || !multiply(rows, tensor->dims[0], &values) ||
        !multiply(rows, row_bytes, &byte_count) || byte_count > SIZE_MAX)
        return error_set(error, STATUS_CORRUPT, "the product of its dimensions overflows");
    tensor->row_count = rows;
    tensor->row_bytes = (size_t)row_bytes;
    tensor->byte_count = (size_t)byte_count;
    return STATUS_OK;
}

static enum status read_entry(struct gguf_cursor *cursor, struct tensor *tensor, uint64_t *offset,
                              struct error *error) {
    TRY(read_dims(cursor, tensor, error));
    TRY(read_type(cursor, tensor, error));
    TRY(compute_sizes(tensor, error));
    return gguf_cursor_u64(cursor, "a tensor's offset", offset, error);
}

enum status gguf_tensors_parse(struct gguf_cursor *cursor, uint64_t count, struct arena *arena,
                               struct gguf_directory *directory, struct error *error) {
    *directory = (struct gguf_directory){0};
    if (count > TENSOR_COUNT_MAX || count > gguf_cursor_left(cursor) / ENTRY_BYTES_MIN)
        return error_set(error, STATUS_CORRUPT, "%llu tensors do not fit in the file",
                         (unsigned long long)count);
    directory->count = (size_t)count;
    directory->tensors = arena_calloc(arena, directory->count + 1, sizeof *directory->tensors);
    directory->offsets = arena_calloc(arena, directory->count + 1, sizeof *directory->offsets);
    if (!directory->tensors || !directory->offsets)
        return error_no_memory(error, "the tensor directory");
    for (size_t i = 0; i < directory->count; i++) {
        struct tensor *tensor = &directory->tensors[i];
        if (gguf_cursor_name(cursor, "a tensor's name", NAME_BYTES_MAX, arena, &tensor->name,
                             error))
            return error_context(error, "tensor %zu", i);
        if (read_entry(cursor, tensor, &directory->offsets[i], error))
            return error_context(error, "tensor '%s'", tensor->name);
    }
    return STATUS_OK;
}

static enum status place_one(struct tensor *tensor, uint64_t offset, const uint8_t *data,
                             uint64_t data_bytes, struct error *error) {
    if (offset > data_bytes || tensor->byte_count > data_bytes - offset)
        return error_set(error, STATUS_CORRUPT,
                         "tensor '%s': its %zu bytes at offset %llu pass the end of the file",
                         tensor->name, tensor->byte_count, (unsigned long long)offset);
    tensor->bytes = data + offset;
    return STATUS_OK;
}

static int compare_places(const void *left, const void *right) {
    const struct tensor *const *a = left;
    const struct tensor *const *b = right;
    return ((*a)->bytes > (*b)->bytes) - ((*a)->bytes < (*b)->bytes);
}

static enum status check_overlaps(const struct gguf_directory *directory, struct arena *arena,
                                  struct error *error) {
    const struct tensor **sorted = arena_calloc(arena, directory->count + 1, sizeof *sorted);
    if (!sorted)
        return error_no_memory(error, "the tensor directory");
    for (size_t i = 0; i < directory->count; i++)
        sorted[i] = &directory->tensors[i];
    qsort(sorted, directory->count, sizeof *sorted, compare_places);
    for (size_t i = 1; i < directory->count; i++)
        if ((size_t)(sorted[i]->bytes - sorted[i - 1]->bytes) < sorted[i - 1]->byte_count)
            return error_set(error, STATUS_CORRUPT, "the tensors '%s' and '%s' overlap",
                             sorted[i - 1]->name, sorted[i]->name);
    return STATUS_OK;
}

enum status gguf_tensors_place(const struct gguf_cursor *cursor, uint64_t alignment,
                               struct gguf_directory *directory, struct arena *arena,
                               struct error *error) {
    uint64_t padding = (alignment - cursor->at % alignment) % alignment;
    if (directory->count == 0)
        return STATUS_OK;
    if (padding > gguf_cursor_left(cursor))
        return error_set(error, STATUS_CORRUPT, "the file ends before its tensor data");
    const uint8_t *data = cursor->bytes + cursor->at + padding;
    uint64_t data_bytes = gguf_cursor_left(cursor) - padding;
    for (size_t i = 0; i < directory->count; i++) {
        if (directory->offsets[i] % alignment != 0)
            return error_set(error, STATUS_CORRUPT,
                             "tensor '%s': offset %llu is not aligned to %llu",
                             directory->tensors[i].name, (unsigned long long)directory->offsets[i],
                             (unsigned long long)alignment);
        TRY(place_one(&directory->tensors[i], directory->offsets[i], data, data_bytes, error));
    }
    return check_overlaps(directory, arena, error);
}
