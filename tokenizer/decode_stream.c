/* Streaming decode: bytes pass through a buffer of one character. Whole characters come out at
 * once, an unfinished one waits, and a bad one becomes U+FFFD: one for a maximal bad part with
 * byte-level vocabularies, one for each byte with byte tokens (SentencePiece), as the reference
 * decoders have it. */
#include "tokenizer/tokenizer_state.h"
#include "tokenizer/unicode_classes.h"

#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD";

void decode_stream_init(struct decode_stream *stream) {
    *stream = (struct decode_stream){0};
}

static bool replace(const struct decode_stream *stream, int length, struct text *out) {
    int count = stream->replace_each_byte ? length : 1;
    for (int i = 0; i < count; i++)
        if (!text_append(out, replacement, sizeof replacement - 1))
            return false;
    return true;
}

/* Let out of held[] what cannot grow any more. */
static bool settle(struct decode_stream *stream, struct text *out) {
    while (stream->held_count > 0) {
        int complete;
        const uint8_t *end = stream->held + stream->held_count;
        int length = (int)unicode_classes_well_formed(stream->held, end, &complete);
        if (complete) {
            if (!text_append(out, (const char *)stream->held, (size_t)length))
                return false;
        } else {
            bool may_grow =
                length == stream->held_count && stream->held[0] >= 0xC2 && stream->held[0] <= 0xF4;
            if (may_grow)
                return true;
            if (!replace(stream, length, out))
                return false;
        }
        stream->held_count -= length;
        memmove(stream->held, stream->held + length, (size_t)stream->held_count);
    }
    return true;
}

static bool push_bytes(struct decode_stream *stream, struct view bytes, struct text *out) {
    for (size_t i = 0; i < bytes.length; i++) {
        unsigned char byte = (unsigned char)bytes.bytes[i];
        if (stream->held_count == 0 && byte < 0x80) {
            size_t first = i;
            while (i + 1 < bytes.length && (unsigned char)bytes.bytes[i + 1] < 0x80)
                i++;
            if (!text_append(out, bytes.bytes + first, i + 1 - first))
                return false;
            continue;
        }
        stream->held[stream->held_count++] = byte;
        if (!settle(stream, out))
            return false;
    }
    return true;
}

bool decode_stream_push(const struct tokenizer *tokenizer, struct decode_stream *stream, int32_t id,
                        struct text *out) {
    struct view bytes = tokenizer_token_bytes(tokenizer, id);
    if (bytes.length == 0 || tokenizer_is_special(tokenizer, id))
        return true;
    stream->replace_each_byte = tokenizer->model == TOKENIZER_SENTENCEPIECE_BPE;
    if (!stream->started && tokenizer->space_prefix && bytes.bytes[0] == ' ') {
        bytes.bytes++;
        bytes.length--;
    }
    stream->started = true;
    return push_bytes(stream, bytes, out);
}

bool decode_stream_finish(struct decode_stream *stream, struct text *out) {
    int length = stream->held_count;
    stream->held_count = 0;
    return length == 0 || replace(stream, length, out);
}
