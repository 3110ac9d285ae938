/* Handmade GGUF files for tests: well-formed by default, and open at every seam for making bad
 * ones. Knows nothing of the reader under test. Running out of memory ends the test. */
#ifndef TESTS_SUPPORT_GGUF_BUILDER_H
#define TESTS_SUPPORT_GGUF_BUILDER_H

#include <stddef.h>
#include <stdint.h>

struct gguf_buffer {
    uint8_t *bytes;
    size_t length;
    size_t capacity;
};

struct gguf_builder {
    uint32_t version;     /* 3 unless a test changes it */
    uint64_t value_count; /* counted by the builder; a test may change them before the end */
    uint64_t tensor_count;
    uint64_t alignment; /* of the data section: 32; does not write general.alignment */
    struct gguf_buffer values;
    struct gguf_buffer directory;
    struct gguf_buffer data;
};

void gguf_buffer_append(struct gguf_buffer *buffer, const void *bytes, size_t length);
void gguf_buffer_u32(struct gguf_buffer *buffer, uint32_t value);
void gguf_buffer_u64(struct gguf_buffer *buffer, uint64_t value);
void gguf_buffer_string(struct gguf_buffer *buffer, const char *string);

void gguf_builder_init(struct gguf_builder *builder);
void gguf_builder_deinit(struct gguf_builder *builder);

/* A value of any type: its type id and packed bytes. */
void gguf_builder_value(struct gguf_builder *builder, const char *key, uint32_t type,
                        const void *bytes, size_t length);
void gguf_builder_u32(struct gguf_builder *builder, const char *key, uint32_t value);
void gguf_builder_string(struct gguf_builder *builder, const char *key, const char *string);
void gguf_builder_array(struct gguf_builder *builder, const char *key, uint32_t element_type,
                        uint64_t count, const void *bytes, size_t length);
void gguf_builder_strings(struct gguf_builder *builder, const char *key, const char *const *strings,
                          size_t count);

/* A directory entry exactly as given. */
void gguf_builder_entry(struct gguf_builder *builder, const char *name, uint32_t dim_count,
                        const uint64_t *dims, uint32_t type, uint64_t offset);
/* An entry whose data is appended, aligned, to the data section. */
void gguf_builder_tensor(struct gguf_builder *builder, const char *name, uint32_t dim_count,
                         const uint64_t *dims, uint32_t type, const void *bytes, size_t length);

/* The file's bytes, malloc'd; header_length (may be NULL): where the data section begins. */
uint8_t *gguf_builder_finish(const struct gguf_builder *builder, size_t *length,
                             size_t *header_length);

/* Writes the file; ends the test when that fails. */
void gguf_builder_write(const struct gguf_builder *builder, const char *path);

#endif
