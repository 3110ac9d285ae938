/* Bounded reading of packed little-endian fields: the only way the GGUF parser touches file bytes.
 */
#ifndef CORE_WEIGHTS_GGUF_CURSOR_H
#define CORE_WEIGHTS_GGUF_CURSOR_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"

struct gguf_cursor {
    const uint8_t *bytes;
    size_t length;
    size_t at; /* ≤ length */
};

size_t gguf_cursor_left(const struct gguf_cursor *cursor);

/* Each names `what` when the file ends inside it. */
enum status gguf_cursor_take(struct gguf_cursor *cursor, uint64_t count, const char *what,
                             const uint8_t **bytes, struct error *error);
enum status gguf_cursor_u32(struct gguf_cursor *cursor, const char *what, uint32_t *value,
                            struct error *error);
enum status gguf_cursor_u64(struct gguf_cursor *cursor, const char *what, uint64_t *value,
                            struct error *error);

/* A length-prefixed name of 1 to `length_max` bytes without control bytes, copied into `arena`. */
enum status gguf_cursor_name(struct gguf_cursor *cursor, const char *what, size_t length_max,
                             struct arena *arena, const char **name, struct error *error);

#endif
