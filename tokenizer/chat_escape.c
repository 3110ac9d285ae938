/* Escapes of string literals. A resolved escape is never longer than what it was written as, so the
 * text is resolved into a copy of the same size. */
#include "tokenizer/chat_escape.h"

#include <string.h>
#include <utf8proc.h>

struct unescape {
    const char *bytes;
    size_t length;
    size_t read;
    char *out;
    size_t written;
};

static int digit_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

/* Up to `count` digits of `base` at the reading position; how many there were. */
static int read_digits(struct unescape *state, int count, int base, int32_t *value) {
    int used = 0;
    *value = 0;
    while (used < count && state->read < state->length) {
        int digit = digit_value(state->bytes[state->read]);
        if (digit >= base)
            break;
        *value = *value * base + digit;
        state->read++;
        used++;
    }
    return used;
}

static bool write_character(struct unescape *state, int32_t character) {
    if (character < 0 || character > 0x10FFFF || (character >= 0xD800 && character < 0xE000))
        return false;
    state->written +=
        (size_t)utf8proc_encode_char(character, (utf8proc_uint8_t *)state->out + state->written);
    return true;
}

/* \xHH, \uHHHH, \UHHHHHHHH: all digits must be there. A high \u surrogate takes its low half along.
 */
static bool write_hexadecimal(struct unescape *state, char kind) {
    int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
    if (kind == 'U' && state->length - state->read > 0 && state->bytes[state->read] > '0')
        return false;
    int32_t value;
    if (read_digits(state, digits, 16, &value) != digits)
        return false;
    if (value >= 0xD800 && value < 0xDC00 && state->length - state->read >= 6 &&
        memcmp(state->bytes + state->read, "\\u", 2) == 0) {
        state->read += 2;
        int32_t low;
        if (read_digits(state, 4, 16, &low) != 4 || low < 0xDC00 || low > 0xDFFF)
            return false;
        value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
    }
    return write_character(state, value);
}

static bool resolve_one(struct unescape *state) {
    static const char plain[] = "n\nt\tr\rb\bf\fa\av\v\\\\''\"\"";
    char kind = state->bytes[state->read];
    for (size_t i = 0; i + 1 < sizeof plain; i += 2) {
        if (plain[i] == kind) {
            state->read++;
            state->out[state->written++] = plain[i + 1];
            return true;
        }
    }
    if (kind >= '0' && kind <= '7') {
        int32_t value;
        read_digits(state, 3, 8, &value);
        return write_character(state, value);
    }
    if (kind == '\n') { /* a line that goes on */
        state->read++;
        return true;
    }
    if (kind == 'N')
        return false;
    if (kind == 'x' || kind == 'u' || kind == 'U') {
        state->read++;
        return write_hexadecimal(state, kind);
    }
    state->out[state->written++] = '\\';
    return true;
}

enum status chat_escape_resolve(const struct chat_token *token, struct arena *arena,
                                struct view *text, struct error *error) {
    struct unescape state = {.bytes = token->text.bytes + 1, .length = token->text.length - 2};
    state.out = arena_copy_text(arena, state.bytes, state.length);
    if (!state.out)
        return error_set(error, STATUS_OVER_LIMIT, "chat template is too large");
    while (state.read < state.length) {
        char c = state.bytes[state.read++];
        if (c != '\\' || state.read == state.length) {
            state.out[state.written++] = c;
        } else if (!resolve_one(&state)) {
            return error_set(error, STATUS_BAD_INPUT,
                             "chat template line %d: bad or unsupported escape in string %.*s",
                             token->line, (int)(token->text.length < 60 ? token->text.length : 60),
                             token->text.bytes);
        }
    }
    *text = (struct view){state.out, state.written};
    return STATUS_OK;
}
