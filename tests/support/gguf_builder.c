/* See the header. */
#include "tests/support/gguf_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gguf_buffer_append(struct gguf_buffer *buffer, const void *bytes, size_t length) {
    if (buffer->length + length > buffer->capacity) {
        buffer->capacity = 2 * (buffer->length + length) + 64;
        buffer->bytes = realloc(buffer->bytes, buffer->capacity);
        if (!buffer->bytes)
            abort();
    }
    if (length)
        memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
}

void gguf_buffer_u32(struct gguf_buffer *buffer, uint32_t value) {
    gguf_buffer_append(buffer, &value, sizeof value);
}

void gguf_buffer_u64(struct gguf_buffer *buffer, uint64_t value) {
    gguf_buffer_append(buffer, &value, sizeof value);
}

void gguf_buffer_string(struct gguf_buffer *buffer, const char *string) {
    gguf_buffer_u64(buffer, strlen(string));
    gguf_buffer_append(buffer, string, strlen(string));
}

static void pad(struct gguf_buffer *buffer, size_t position, uint64_t alignment) {
    static const uint8_t zero;
    for (; position % alignment != 0; position++)
        gguf_buffer_append(buffer, &zero, 1);
}

void gguf_builder_init(struct gguf_builder *builder) {
    *builder = (struct gguf_builder){.version = 3, .alignment = 32};
}

void gguf_builder_deinit(struct gguf_builder *builder) {
    free(builder->values.bytes);
    free(builder->directory.bytes);
    free(builder->data.bytes);
}

void gguf_builder_value(struct gguf_builder *builder, const char *key, uint32_t type,
                        const void *bytes, size_t length) {
    gguf_buffer_string(&builder->values, key);
    gguf_buffer_u32(&builder->values, type);
    gguf_buffer_append(&builder->values, bytes, length);
    builder->value_count++;
}

void gguf_builder_u32(struct gguf_builder *builder, const char *key, uint32_t value) {
    gguf_builder_value(builder, key, 4, &value, sizeof value);
}

void gguf_builder_string(struct gguf_builder *builder, const char *key, const char *string) {
    gguf_builder_value(builder, key, 8, NULL, 0);
    gguf_buffer_string(&builder->values, string);
}

void gguf_builder_array(struct gguf_builder *builder, const char *key, uint32_t element_type,
                        uint64_t count, const void *bytes, size_t length) {
    gguf_builder_value(builder, key, 9, NULL, 0);
    gguf_buffer_u32(&builder->values, element_type);
    gguf_buffer_u64(&builder->values, count);
    gguf_buffer_append(&builder->values, bytes, length);
}

void gguf_builder_strings(struct gguf_builder *builder, const char *key, const char *const *strings,
                          size_t count) {
    gguf_builder_array(builder, key, 8, count, NULL, 0);
    for (size_t i = 0; i < count; i++)
        gguf_buffer_string(&builder->values, strings[i]);
}

void gguf_builder_entry(struct gguf_builder *builder, const char *name, uint32_t dim_count,
                        const uint64_t *dims, uint32_t type, uint64_t offset) {
    gguf_buffer_string(&builder->directory, name);
    gguf_buffer_u32(&builder->directory, dim_count);
    for (uint32_t i = 0; i < dim_count; i++)
        gguf_buffer_u64(&builder->directory, dims[i]);
    gguf_buffer_u32(&builder->directory, type);
    gguf_buffer_u64(&builder->directory, offset);
    builder->tensor_count++;
}

void gguf_builder_tensor(struct gguf_builder *builder, const char *name, uint32_t dim_count,
                         const uint64_t *dims, uint32_t type, const void *bytes, size_t length) {
    pad(&builder->data, builder->data.length, builder->alignment);
    gguf_builder_entry(builder, name, dim_count, dims, type, builder->data.length);
    gguf_buffer_append(&builder->data, bytes, length);
}

uint8_t *gguf_builder_finish(const struct gguf_builder *builder, size_t *length,
                             size_t *header_length) {
    struct gguf_buffer file = {0};
    gguf_buffer_append(&file, "GGUF", 4);
    gguf_buffer_u32(&file, builder->version);
    gguf_buffer_u64(&file, builder->tensor_count);
    gguf_buffer_u64(&file, builder->value_count);
    gguf_buffer_append(&file, builder->values.bytes, builder->values.length);
    gguf_buffer_append(&file, builder->directory.bytes, builder->directory.length);
    pad(&file, file.length, builder->alignment);
    if (header_length)
        *header_length = file.length;
    gguf_buffer_append(&file, builder->data.bytes, builder->data.length);
    *length = file.length;
    return file.bytes;
}

void gguf_builder_write(const struct gguf_builder *builder, const char *path) {
    size_t length;
    uint8_t *bytes = gguf_builder_finish(builder, &length, NULL);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, length, file) != length || fclose(file) != 0)
        abort();
    free(bytes);
}
