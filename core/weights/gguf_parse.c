/* The GGUF container: header, then metadata; the tensor directory is gguf_tensors.c. Counts are
 * compared with the bytes left before anything is allocated, so memory is bounded by the file's
 * size. */
#include "core/weights/gguf_parse.h"

#include <stdlib.h>
#include <string.h>

#include "core/weights/gguf_cursor.h"
#include "core/weights/gguf_tensors.h"
#include "core/weights/quant_load.h"

enum {
    KEY_BYTES_MAX = 65535,
    VALUE_COUNT_MAX = 1 << 20,
    VALUE_BYTES_MIN = 8 + 1 + 4 + 1, /* the smallest key and value */
    ALIGNMENT_DEFAULT = 32,
    ALIGNMENT_MIN = 8,
};

static const uint8_t type_bytes[] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,  [GGUF_U16] = 2,  [GGUF_I16] = 2,    [GGUF_U32] = 4,
    [GGUF_I32] = 4, [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_STRING] = 0, [GGUF_ARRAY] = 0,
    [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

enum { TYPE_COUNT = sizeof type_bytes / sizeof type_bytes[0] };

size_t gguf_parse_type_bytes(enum gguf_type type) {
    return type_bytes[type];
}

static enum status read_type(struct gguf_cursor *cursor, enum gguf_type *type,
                             struct error *error) {
    uint32_t id;
    TRY(gguf_cursor_u32(cursor, "a value's type", &id, error));
    if (id >= TYPE_COUNT)
        return error_set(error, STATUS_CORRUPT, "unknown metadata type %u", id);
    *type = (enum gguf_type)id;
    return STATUS_OK;
}

static enum status skip_strings(struct gguf_cursor *cursor, uint64_t count, struct error *error) {
    for (uint64_t i = 0; i < count; i++) {
        uint64_t length;
        const uint8_t *bytes;
        TRY(gguf_cursor_u64(cursor, "a string", &length, error));
        TRY(gguf_cursor_take(cursor, length, "a string", &bytes, error));
    }
    return STATUS_OK;
}

static enum status check_bools(const uint8_t *bytes, size_t count, struct error *error) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i] > 1)
            return error_set(error, STATUS_CORRUPT, "a boolean has the value %u", bytes[i]);
    return STATUS_OK;
}

/* The element type and count of an array; leaves the cursor at its first element. */
static enum status read_array_head(struct gguf_cursor *cursor, struct gguf_value *value,
                                   struct error *error) {
    TRY(read_type(cursor, &value->element_type, error));
    TRY(gguf_cursor_u64(cursor, "an array's length", &value->count, error));
    if (value->element_type == GGUF_ARRAY)
        return error_set(error, STATUS_UNSUPPORTED, "arrays of arrays are not supported");
    size_t least = value->element_type == GGUF_STRING ? 8 : type_bytes[value->element_type];
    if (value->count > gguf_cursor_left(cursor) / least)
        return error_set(error, STATUS_CORRUPT,
                         "an array of %llu elements does not fit in the file",
                         (unsigned long long)value->count);
    return STATUS_OK;
}

static enum status read_payload(struct gguf_cursor *cursor, struct gguf_value *value,
                                struct error *error) {
    TRY(read_type(cursor, &value->type, error));
    value->element_type = value->type;
    value->count = 1;
    if (value->type == GGUF_ARRAY)
        TRY(read_array_head(cursor, value, error));
    value->bytes = cursor->bytes + cursor->at;
    size_t start = cursor->at;
    if (value->element_type == GGUF_STRING) {
        TRY(skip_strings(cursor, value->count, error));
    } else {
        const uint8_t *bytes;
        TRY(gguf_cursor_take(cursor, value->count * type_bytes[value->element_type], "a value",
                             &bytes, error));
    }
    value->byte_count = cursor->at - start;
    if (value->element_type == GGUF_BOOL)
        TRY(check_bools(value->bytes, value->byte_count, error));
    return STATUS_OK;
}

static int compare_keys(const void *left, const void *right) {
    const struct gguf_value *const *a = left;
    const struct gguf_value *const *b = right;
    return strcmp((*a)->key, (*b)->key);
}

static enum status index_values(struct gguf_content *content, struct arena *arena,
                                struct error *error) {
    size_t count = content->value_count;
    content->values_by_key = arena_calloc(arena, count + 1, sizeof *content->values_by_key);
    if (!content->values_by_key)
        return error_no_memory(error, "metadata");
    for (size_t i = 0; i < count; i++)
        content->values_by_key[i] = &content->values[i];
    qsort(content->values_by_key, count, sizeof *content->values_by_key, compare_keys);
    for (size_t i = 1; i < count; i++)
        if (compare_keys(&content->values_by_key[i - 1], &content->values_by_key[i]) == 0)
            return error_set(error, STATUS_CORRUPT, "the key '%.200s' occurs twice",
                             content->values_by_key[i]->key);
    return STATUS_OK;
}

const struct gguf_value *gguf_parse_find(const struct gguf_content *content, const char *key) {
    struct gguf_value wanted = {.key = key};
    const struct gguf_value *pointer = &wanted;
    const struct gguf_value **found = bsearch(&pointer, content->values_by_key,
                                              content->value_count, sizeof pointer, compare_keys);
    return found ? *found : NULL;
}

static enum status read_values(struct gguf_cursor *cursor, struct arena *arena,
                               struct gguf_content *content, struct error *error) {
    content->values = arena_calloc(arena, content->value_count + 1, sizeof *content->values);
    if (!content->values)
        return error_no_memory(error, "metadata");
    for (size_t i = 0; i < content->value_count; i++) {
        struct gguf_value *value = &content->values[i];
        if (gguf_cursor_name(cursor, "a metadata key", KEY_BYTES_MAX, arena, &value->key, error))
            return error_context(error, "metadata entry %zu", i);
        if (read_payload(cursor, value, error))
            return error_context(error, "key '%.200s'", value->key);
    }
    return index_values(content, arena, error);
}

static enum status check_version(uint32_t version, struct error *error) {
    if (version == 2 || version == 3)
        return STATUS_OK;
    if ((version & 0xffff) == 0 && version != 0)
        return error_set(error, STATUS_UNSUPPORTED, "big-endian GGUF is not supported");
    return error_set(error, STATUS_UNSUPPORTED,
                     "GGUF version %u is not supported, only 2 and 3 are", version);
}

static enum status read_header(struct gguf_cursor *cursor, uint64_t *tensor_count,
                               uint64_t *value_count, struct error *error) {
    const uint8_t *magic;
    uint32_t version;
    if (gguf_cursor_left(cursor) < 4 || memcmp(cursor->bytes, "GGUF", 4) != 0)
        return error_set(error, STATUS_CORRUPT, "not a GGUF file: it does not begin with \"GGUF\"");
    TRY(gguf_cursor_take(cursor, 4, "the header", &magic, error));
    TRY(gguf_cursor_u32(cursor, "the header", &version, error));
    TRY(check_version(version, error));
    TRY(gguf_cursor_u64(cursor, "the header", tensor_count, error));
    TRY(gguf_cursor_u64(cursor, "the header", value_count, error));
    uint64_t fit = gguf_cursor_left(cursor) / VALUE_BYTES_MIN;
    if (*value_count > VALUE_COUNT_MAX || *value_count > fit)
        return error_set(error, STATUS_CORRUPT, "%llu metadata entries do not fit in the file",
                         (unsigned long long)*value_count);
    return STATUS_OK;
}

static enum status read_alignment(const struct gguf_content *content, uint64_t *alignment,
                                  struct error *error) {
    *alignment = ALIGNMENT_DEFAULT;
    const struct gguf_value *value = gguf_parse_find(content, "general.alignment");
    if (!value)
        return STATUS_OK;
    if (!gguf_read_u64(value, alignment))
        return error_set(error, STATUS_CORRUPT, "'general.alignment' is not a positive integer");
    if (*alignment < ALIGNMENT_MIN || *alignment > UINT32_MAX || (*alignment & (*alignment - 1)))
        return error_set(error, STATUS_CORRUPT,
                         "'general.alignment' is %llu, not a power of two of 8 or more",
                         (unsigned long long)*alignment);
    return STATUS_OK;
}

enum status gguf_parse(const uint8_t *bytes, size_t length, struct arena *arena,
                       struct gguf_content *content, struct error *error) {
    struct gguf_cursor cursor = {.bytes = bytes, .length = length};
    uint64_t tensor_count;
    uint64_t value_count;
    uint64_t alignment;
    *content = (struct gguf_content){0};
    TRY(read_header(&cursor, &tensor_count, &value_count, error));
    content->value_count = (size_t)value_count;
    TRY(read_values(&cursor, arena, content, error));
    TRY(read_alignment(content, &alignment, error));
    struct gguf_directory directory;
    TRY(gguf_tensors_parse(&cursor, tensor_count, arena, &directory, error));
    content->tensors = directory.tensors;
    content->tensor_count = directory.count;
    return gguf_tensors_place(&cursor, alignment, &directory, arena, error);
}
