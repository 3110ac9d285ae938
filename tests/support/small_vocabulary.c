/* The alphabet is spelled out again here, so that the tests do not lean on the code they test. */
#include "tests/support/small_vocabulary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct view keep(struct small_vocabulary *vocabulary, const char *bytes, size_t length) {
    if (vocabulary->text_length + length > SMALL_TEXT_MAX)
        abort();
    char *copy = vocabulary->text + vocabulary->text_length;
    memcpy(copy, bytes, length);
    vocabulary->text_length += length;
    return (struct view){copy, length};
}

static void begin(struct small_vocabulary *vocabulary, enum tokenizer_model model) {
    memset(vocabulary, 0, sizeof *vocabulary);
    vocabulary->source = (struct tokenizer_source){
        .model = model,
        .tokens = vocabulary->tokens,
        .scores = vocabulary->scores,
        .classes = vocabulary->classes,
        .merges = vocabulary->merges,
        .bos_id = -1,
        .eos_id = -1,
        .eot_id = -1,
        .eom_id = -1,
        .unknown_id = -1,
        .add_bos = -1,
        .add_space_prefix = -1,
    };
}

static int32_t add(struct small_vocabulary *vocabulary, struct view stored,
                   enum token_class class) {
    int32_t id = vocabulary->source.token_count++;
    if (id >= SMALL_TOKENS_MAX)
        abort();
    vocabulary->tokens[id] = stored;
    vocabulary->classes[id] = (uint8_t) class;
    return id;
}

void small_vocabulary_bytes(struct small_vocabulary *vocabulary, const char *splitter) {
    begin(vocabulary, TOKENIZER_BYTE_BPE);
    vocabulary->source.splitter = view_of(splitter);
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; byte++) {
        int printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
        unsigned code_point = printable ? byte : next++;
        char spelled[2] = {(char)code_point};
        size_t length = 1;
        if (code_point >= 0x80) {
            spelled[0] = (char)(0xC0 | code_point >> 6);
            spelled[1] = (char)(0x80 | (code_point & 0x3F));
            length = 2;
        }
        add(vocabulary, keep(vocabulary, spelled, length), TOKEN_NORMAL);
    }
}

void small_vocabulary_pieces(struct small_vocabulary *vocabulary) {
    begin(vocabulary, TOKENIZER_SENTENCEPIECE_BPE);
    vocabulary->source.unknown_id = small_vocabulary_add(vocabulary, "<unk>", TOKEN_UNKNOWN);
    for (unsigned byte = 0; byte < 256; byte++) {
        char stored[8];
        snprintf(stored, sizeof stored, "<0x%02X>", byte);
        small_vocabulary_add(vocabulary, stored, TOKEN_BYTE);
    }
}

int32_t small_vocabulary_add(struct small_vocabulary *vocabulary, const char *stored,
                             enum token_class class) {
    return add(vocabulary, keep(vocabulary, stored, strlen(stored)), class);
}

int32_t small_vocabulary_merge(struct small_vocabulary *vocabulary, const char *line) {
    size_t merge = vocabulary->source.merge_count++;
    vocabulary->merges[merge] = keep(vocabulary, line, strlen(line));
    const char *space = strchr(line, ' ');
    struct view made = keep(vocabulary, line, (size_t)(space - line));
    made.length += keep(vocabulary, space + 1, strlen(space + 1)).length;
    return add(vocabulary, made, TOKEN_NORMAL);
}

int32_t small_vocabulary_piece(struct small_vocabulary *vocabulary, const char *stored,
                               float score) {
    int32_t id = small_vocabulary_add(vocabulary, stored, TOKEN_NORMAL);
    vocabulary->scores[id] = score;
    return id;
}
