/* Error text is formatted into the caller's buffer: no allocation, so that running out of memory
 * can be reported like anything else. */
#include "core/base/error.h"

#include <stdio.h>
#include <string.h>

const char *error_status_name(enum status status) {
    static const char *const names[STATUS_COUNT] = {
        [STATUS_OK] = "ok",
        [STATUS_NO_MEMORY] = "no_memory",
        [STATUS_IO] = "io",
        [STATUS_NOT_FOUND] = "not_found",
        [STATUS_CORRUPT] = "corrupt",
        [STATUS_UNSUPPORTED] = "unsupported",
        [STATUS_BAD_INPUT] = "bad_input",
        [STATUS_OVER_LIMIT] = "over_limit",
        [STATUS_CANCELLED] = "cancelled",
        [STATUS_DEVICE] = "device",
    };
    return (unsigned)status < STATUS_COUNT ? names[status] : "unknown";
}

/* A cut must not leave half a UTF-8 character: drop the continuation bytes and their lead. */
static void cut_at_character(char *text) {
    size_t length = strlen(text);
    if (length + 1 < ERROR_TEXT_MAX)
        return;
    while (length > 0 && ((unsigned char)text[length - 1] & 0xC0) == 0x80)
        length--;
    if (length > 0 && (unsigned char)text[length - 1] >= 0xC0)
        length--;
    text[length] = '\0';
}

enum status error_set(struct error *error, enum status status, const char *format, ...) {
    if (!error)
        return status;
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    cut_at_character(error->text);
    return status;
}

enum status error_set_errno(struct error *error, enum status status, int error_number,
                            const char *format, ...) {
    if (!error)
        return status;
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    if (used >= 0 && (size_t)used < sizeof error->text) {
        char reason[256];
        const char *text = strerror_r(error_number, reason, sizeof reason);
        snprintf(error->text + used, sizeof error->text - (size_t)used, ": %s", text);
    }
    cut_at_character(error->text);
    return status;
}

enum status error_context(struct error *error, const char *format, ...) {
    if (!error)
        return STATUS_BAD_INPUT;
    char inner[ERROR_TEXT_MAX];
    memcpy(inner, error->text, sizeof inner);
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    if (used >= 0 && (size_t)used + 3 < sizeof error->text) {
        memcpy(error->text + used, ": ", 3);
        strncat(error->text, inner, sizeof error->text - (size_t)used - 3);
    }
    cut_at_character(error->text);
    return error->status;
}

enum status error_no_memory(struct error *error, const char *what) {
    return error_set(error, STATUS_NO_MEMORY, "out of memory for %s", what);
}
