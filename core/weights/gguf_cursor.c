/* The cursor of the GGUF parser. Names with control bytes are refused here, so every name that gets
 * into a message or a table is safe to print. */
#include "core/weights/gguf_cursor.h"

#include "core/weights/quant_load.h"

size_t gguf_cursor_left(const struct gguf_cursor *cursor) {
    return cursor->length - cursor->at;
}

enum status gguf_cursor_take(struct gguf_cursor *cursor, uint64_t count, const char *what,
                             const uint8_t **bytes, struct error *error) {
    if (count > gguf_cursor_left(cursor))
        return error_set(error, STATUS_CORRUPT, "the file ends inside %s: cut at byte %zu?", what,
                         cursor->length);
    *bytes = cursor->bytes + cursor->at;
    cursor->at += (size_t)count;
    return STATUS_OK;
}

enum status gguf_cursor_u32(struct gguf_cursor *cursor, const char *what, uint32_t *value,
                            struct error *error) {
    const uint8_t *bytes = NULL;
    TRY(gguf_cursor_take(cursor, sizeof *value, what, &bytes, error));
    *value = quant_load_u32(bytes);
    return STATUS_OK;
}

enum status gguf_cursor_u64(struct gguf_cursor *cursor, const char *what, uint64_t *value,
                            struct error *error) {
    const uint8_t *bytes = NULL;
    TRY(gguf_cursor_take(cursor, sizeof *value, what, &bytes, error));
    *value = quant_load_u64(bytes);
    return STATUS_OK;
}

enum status gguf_cursor_name(struct gguf_cursor *cursor, const char *what, size_t length_max,
                             struct arena *arena, const char **name, struct error *error) {
    uint64_t length;
    TRY(gguf_cursor_u64(cursor, what, &length, error));
    if (length == 0 || length > length_max)
        return error_set(error, STATUS_CORRUPT, "%s is %llu bytes long, 1 to %zu are allowed", what,
                         (unsigned long long)length, length_max);
    const uint8_t *bytes = NULL;
    TRY(gguf_cursor_take(cursor, length, what, &bytes, error));
    for (size_t i = 0; i < length; i++)
        if (bytes[i] < 0x20 || bytes[i] == 0x7f)
            return error_set(error, STATUS_CORRUPT, "%s holds the control byte 0x%02x", what,
                             bytes[i]);
    *name = arena_copy_text(arena, (const char *)bytes, (size_t)length);
    return *name ? STATUS_OK : error_no_memory(error, what);
}
