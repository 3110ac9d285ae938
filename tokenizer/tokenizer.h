/* Text to token ids and back, exact against the model's own tokenizer (Hugging Face `tokenizers` on
 * its tokenizer.json is the reference). Byte-level BPE with hand-written splitters, and
 * SentencePiece-style BPE by scores. Every path is linear, or n log n, in the length: no
 * backtracking, no recursion.
 *
 * Between two special tokens the text is one string and is tokenised once; trust only decides where
 * a special token may match: wholly inside trusted bytes. */
#ifndef TOKENIZER_TOKENIZER_H
#define TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "tokenizer/marked_text.h"

/* Token classes as GGUF numbers them (tokenizer.ggml.token_type). */
enum token_class {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER_DEFINED = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6,
};

enum tokenizer_model { TOKENIZER_BYTE_BPE, TOKENIZER_SENTENCEPIECE_BPE };

/* The model by the name that files give it (tokenizer.ggml.model: "gpt2", "llama"); an unknown one
 * is refused with a list of those known. */
enum status tokenizer_find_model(struct view name, enum tokenizer_model *model,
                                 struct error *error);

/* Everything a model file says about its tokenizer; borrowed during tokenizer_create only. */
struct tokenizer_source {
    enum tokenizer_model model;
    struct view splitter; /* tokenizer.ggml.pre: "smollm", "gpt-2", "qwen2", "llama-bpe"… */
    int32_t token_count;
    const struct view *tokens; /* [token_count] as stored: byte-level alphabet or ▁ pieces */
    const float *scores;       /* [token_count] or NULL */
    const uint8_t *classes;    /* [token_count] of enum token_class, or NULL: all normal */
    size_t merge_count;
    const struct view *merges;                          /* "left right", best first */
    int32_t bos_id, eos_id, eot_id, eom_id, unknown_id; /* -1: none */
    int add_bos;          /* 1, 0, or -1: not said (the splitter's default) */
    int add_space_prefix; /* 1, 0, -1 */
};

struct tokenizer;

/* Refuses unknown splitters by name and malformed vocabularies. */
enum status tokenizer_create(const struct tokenizer_source *source, struct tokenizer **tokenizer,
                             struct error *error);
void tokenizer_destroy(struct tokenizer *tokenizer);

/* Ids with the byte offset (in the encoded text) where each token begins. Reused across calls. */
struct token_list {
    int32_t *ids;
    uint32_t *offsets; /* ascending; NFC changes map back to the original text's bytes */
    size_t count;
    size_t capacity;
};
void token_list_deinit(struct token_list *list);

/* Scratch memory of one encoding thread; created once, grows to the largest document. */
struct tokenizer_scratch;
struct tokenizer_scratch *tokenizer_scratch_create(void); /* NULL when out of memory */
void tokenizer_scratch_destroy(struct tokenizer_scratch *scratch);

/* How to treat special tokens and BOS. */
struct tokenizer_options {
    bool prompt_trusted; /* ORIGIN_PROMPT bytes may hold special tokens too (no chat template) */
    bool add_bos;        /* plain text: BOS iff the model says so and the ids don't begin with it */
};

/* Appends to `list` after clearing it. Texts up to 4 GiB - 1. Invalid UTF-8 never faults: each bad
 * byte is a character of no class. Safe from several threads with a scratch each. */
enum status tokenizer_encode(const struct tokenizer *tokenizer, const struct marked_text *text,
                             const struct tokenizer_options *options,
                             struct tokenizer_scratch *scratch, struct token_list *list,
                             struct error *error);

int32_t tokenizer_token_count(const struct tokenizer *tokenizer);
int32_t tokenizer_bos(const struct tokenizer *tokenizer); /* -1: none */
int32_t tokenizer_eos(const struct tokenizer *tokenizer);
bool tokenizer_wants_bos(const struct tokenizer *tokenizer); /* plain text begins with BOS */
/* EOS, EOT, EOM, and control tokens that end answers by their name ("<|im_end|>"…). */
bool tokenizer_is_end(const struct tokenizer *tokenizer, int32_t id);
bool tokenizer_is_special(const struct tokenizer *tokenizer, int32_t id); /* control or unknown */
/* The id whose text is exactly `bytes` (a control or added token's literal text), or -1. */
int32_t tokenizer_find(const struct tokenizer *tokenizer, struct view bytes);
/* The bytes a token stands for in output; specials: their literal text. Borrowed. */
struct view tokenizer_token_bytes(const struct tokenizer *tokenizer, int32_t id);
const char *tokenizer_splitter_name(const struct tokenizer *tokenizer);

/* Streaming decode: bytes come out as soon as they form whole characters; at most 3 are held back.
 * Invalid bytes become one U+FFFD per maximal bad part (byte-level), as the reference does. */
struct decode_stream {
    unsigned char held[4];
    int held_count;
    bool started; /* something was emitted (SentencePiece: the first piece's leading space) */
    bool replace_each_byte; /* SentencePiece: every byte of a bad part becomes one U+FFFD */
};
void decode_stream_init(struct decode_stream *stream);
/* Append what token `id` completes; control tokens append nothing. false: out of memory or over the
 * maximum. */
bool decode_stream_push(const struct tokenizer *tokenizer, struct decode_stream *stream, int32_t id,
                        struct text *out);
/* The end: what is still held comes out as U+FFFD. */
bool decode_stream_finish(struct decode_stream *stream, struct text *out);

#endif
