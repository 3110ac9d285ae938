/* Names of files as users wrote them. A shown path must be valid UTF-8 (rows are JSON) and harmless
 * on a terminal, and two different files must never show the same, hence the escaping of '%'. */
#include "core/job/input_path.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/utf8.h"
#include "core/job/input_text.h"

bool input_path_normal(struct text *out, const char *path) {
    while (path[0] == '.' && path[1] == '/') {
        path += 2;
        while (*path == '/')
            path++;
    }
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    text_clear(out);
    return length > 0 ? text_append(out, path, length) : text_append_char(out, '.');
}

bool input_path_join(struct text *out, const char *folder, const char *name) {
    text_clear(out);
    if (strcmp(folder, ".") == 0)
        return text_append_string(out, name);
    size_t length = strlen(folder);
    bool slash = length > 0 && folder[length - 1] == '/';
    return text_append(out, folder, length) && (slash || text_append_char(out, '/')) &&
           text_append_string(out, name);
}

static bool is_control(uint8_t byte) {
    return byte < 0x20 || byte == 0x7f;
}

static bool is_clean(const uint8_t *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (is_control(bytes[i]))
            return false;
    return input_text_valid_length(bytes, length) == length;
}

char *input_path_shown(const char *path) {
    const uint8_t *bytes = (const uint8_t *)path;
    size_t length = strlen(path);
    if (is_clean(bytes, length))
        return strdup(path);
    struct text out;
    text_init(&out, 3 * INPUT_PATH_MAX);
    bool fine = true;
    for (size_t i = 0; i < length && fine;) {
        size_t bad;
        size_t size = utf8_character(bytes + i, length - i, &bad);
        if (size == 0 || is_control(bytes[i]) || bytes[i] == '%') {
            fine = text_append_format(&out, "%%%02X", bytes[i]);
            i++;
        } else {
            fine = text_append(&out, path + i, size);
            i += size;
        }
    }
    if (!fine)
        text_deinit(&out);
    return out.bytes;
}

const char *input_path_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static bool ends_with(const char *path, size_t length, const char *suffix) {
    size_t suffix_length = strlen(suffix);
    return length > suffix_length &&
           strncasecmp(path + length - suffix_length, suffix, suffix_length) == 0;
}

struct input_kind input_path_kind(const char *path) {
    struct input_kind kind = {0};
    size_t length = strlen(path);
    if (ends_with(path, length, ".gz")) {
        kind.gzip = true;
        length -= 3;
    }
    kind.lines = ends_with(path, length, ".jsonl");
    return kind;
}

void input_path_extension(const char *path, char *extension, size_t bytes) {
    const char *name = input_path_name(path);
    const char *dot = strrchr(name, '.');
    size_t length = 0;
    if (dot && dot != name)
        for (; dot[length] && length + 1 < bytes; length++) {
            char letter = dot[length];
            bool upper = letter >= 'A' && letter <= 'Z';
            /* Bytes that are not plain ASCII would need escaping in the message. */
            bool plain = letter > 0x20 && letter < 0x7f;
            extension[length] = (char)(upper ? letter + ('a' - 'A') : plain ? letter : '?');
        }
    extension[length] = '\0';
}
