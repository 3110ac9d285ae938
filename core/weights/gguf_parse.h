/* From the bytes of one GGUF file to checked values and tensors. No file access: tests feed it
 * memory. */
#ifndef CORE_WEIGHTS_GGUF_PARSE_H
#define CORE_WEIGHTS_GGUF_PARSE_H

#include "core/base/arena.h"
#include "core/weights/gguf.h"

/* One file's content. Everything lives in the arena, or is borrowed from the bytes. */
struct gguf_content {
    struct gguf_value *values; /* [value_count], file order */
    size_t value_count;
    const struct gguf_value **values_by_key; /* [value_count], sorted by key, no two equal */
    struct tensor *tensors; /* [tensor_count], file order; names not yet compared */
    size_t tensor_count;
};

enum status gguf_parse(const uint8_t *bytes, size_t length, struct arena *arena,
                       struct gguf_content *content, struct error *error);

/* The value of `key`, or NULL. */
const struct gguf_value *gguf_parse_find(const struct gguf_content *content, const char *key);

/* Bytes of one element of a fixed-size type; 0 for strings and arrays. */
size_t gguf_parse_type_bytes(enum gguf_type type);

#endif
