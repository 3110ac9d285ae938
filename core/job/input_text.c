/* Text checks: byte order marks, NUL bytes, UTF-8. Runs of ASCII go eight bytes at a time, so
 * reading is never slower than the disk; replacement copies only from the first bad byte on. */
#include "core/job/input_text.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"

enum { REPLACED_PERCENT_MAX = 1, BINARY_PERCENT_MIN = 30 };

static size_t skip_ascii(const uint8_t *bytes, size_t at, size_t length) {
    uint64_t word;
    while (length - at >= sizeof word) {
        memcpy(&word, bytes + at, sizeof word);
        if (word & UINT64_C(0x8080808080808080))
            break;
        at += sizeof word;
    }
    return at;
}

size_t input_text_valid_length(const uint8_t *bytes, size_t length) {
    size_t at = 0;
    size_t bad;
    while (at < length) {
        at = skip_ascii(bytes, at, length);
        if (at == length)
            break;
        size_t size = utf8_character(bytes + at, length - at, &bad);
        if (size == 0)
            return at;
        at += size;
    }
    return at;
}

bool input_text_is_blank(const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!strchr(" \t\n\v\f\r", bytes[i]) || bytes[i] == '\0')
            return false;
    return true;
}

/* Bytes that begin no character or control something that no text file controls. A character cut by
 * the end of the sample counts little. */
static size_t count_strange(const uint8_t *bytes, size_t length) {
    size_t strange = 0;
    for (size_t i = 0; i < length;) {
        size_t bad;
        size_t size = utf8_character(bytes + i, length - i, &bad);
        bool control = bytes[i] < 0x20 && !strchr("\t\n\f\r\b\033", bytes[i]);
        strange += size == 0 ? bad : control;
        i += size ? size : bad;
    }
    return strange;
}

const char *input_text_other_encoding(const uint8_t *bytes, size_t length) {
    static const struct {
        const char *name;
        uint8_t mark[4];
        size_t length;
    } marks[] = {
        {"UTF-32", {0xFF, 0xFE, 0, 0}, 4},
        {"UTF-32", {0, 0, 0xFE, 0xFF}, 4},
        {"UTF-16", {0xFF, 0xFE}, 2},
        {"UTF-16", {0xFE, 0xFF}, 2},
    };
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (length >= marks[i].length && memcmp(bytes, marks[i].mark, marks[i].length) == 0)
            return marks[i].name;
    return NULL;
}

bool input_text_looks_binary(const uint8_t *bytes, size_t length) {
    if (length == 0 || input_text_other_encoding(bytes, length))
        return false;
    if (memchr(bytes, 0, length) || (length >= 5 && memcmp(bytes, "%PDF-", 5) == 0))
        return true;
    return count_strange(bytes, length) * 100 > length * BINARY_PERCENT_MIN;
}

void input_text_strip_mark(struct text *text) {
    enum { MARK_BYTES = 3 };
    if (text->length < MARK_BYTES || memcmp(text->bytes, "\xEF\xBB\xBF", MARK_BYTES) != 0)
        return;
    text->length -= MARK_BYTES;
    memmove(text->bytes, text->bytes + MARK_BYTES, text->length + 1);
}

static size_t count_bad(const uint8_t *bytes, size_t at, size_t length) {
    size_t count = 0;
    while (at < length) {
        at += input_text_valid_length(bytes + at, length - at);
        if (at == length)
            break;
        size_t bad;
        utf8_character(bytes + at, length - at, &bad);
        count += bad;
        at += bad;
    }
    return count;
}

/* `out` := `text` with U+FFFD for what is not UTF-8. */
static bool copy_repaired(struct text *out, const struct text *text) {
    const uint8_t *bytes = (const uint8_t *)text->bytes;
    for (size_t at = 0; at < text->length;) {
        size_t valid = input_text_valid_length(bytes + at, text->length - at);
        if (!text_append(out, text->bytes + at, valid))
            return false;
        at += valid;
        if (at == text->length)
            break;
        size_t bad;
        utf8_character(bytes + at, text->length - at, &bad);
        if (!text_append_string(out, UTF8_REPLACEMENT))
            return false;
        at += bad;
    }
    return true;
}

enum status input_text_repair(struct text *text, bool replace, long long *replaced,
                              const char **code, struct error *error) {
    const uint8_t *bytes = (const uint8_t *)text->bytes;
    size_t valid = text->length ? input_text_valid_length(bytes, text->length) : 0;
    if (valid == text->length)
        return STATUS_OK;
    *code = "invalid_utf8";
    if (!replace)
        return error_set(error, STATUS_BAD_INPUT,
                         "byte %zu (0x%02x) is not UTF-8: convert it, or use --invalid-bytes "
                         "replace",
                         valid, bytes[valid]);
    size_t bad = count_bad(bytes, valid, text->length);
    *code = "not_text";
    if (bad > text->length * REPLACED_PERCENT_MAX / 100)
        return error_set(error, STATUS_BAD_INPUT,
                         "%zu of %zu bytes are not UTF-8, the first at %zu: convert it with iconv",
                         bad, text->length, valid);
    struct text repaired;
    text_init(&repaired, text->max);
    if (!text_reserve(&repaired, text->length) || !copy_repaired(&repaired, text)) {
        text_deinit(&repaired);
        return error_no_memory(error, "a document");
    }
    text_deinit(text);
    *text = repaired;
    *replaced = (long long)bad;
    return STATUS_OK;
}

enum status input_text_decode(struct text *text, bool replace, long long *replaced,
                              const char **code, struct error *error) {
    const uint8_t *bytes = (const uint8_t *)text->bytes;
    const char *encoding = text->length ? input_text_other_encoding(bytes, text->length) : NULL;
    *code = "not_text";
    if (encoding)
        return error_set(error, STATUS_BAD_INPUT,
                         "it is %s, not UTF-8: convert it with iconv -f %s -t UTF-8", encoding,
                         encoding);
    const uint8_t *nul = text->length ? memchr(bytes, 0, text->length) : NULL;
    if (nul)
        return error_set(error, STATUS_BAD_INPUT, "not text: byte %zu is NUL",
                         (size_t)(nul - bytes));
    input_text_strip_mark(text);
    TRY(input_text_repair(text, replace, replaced, code, error));
    *code = "empty";
    if (input_text_is_blank(text->bytes, text->length))
        return error_set(error, STATUS_BAD_INPUT, "the document is empty");
    return STATUS_OK;
}
