/* Making a tokenizer out of what a model file says, and answering questions about it. */
#include "tokenizer/tokenizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tokenizer/tokenizer_state.h"

/* Control tokens that end an answer by their name, whatever the file's own list says: chat models
 * are trained to stop with them, and many files name only one. */
static const char *const end_names[] = {
    "<|endoftext|>", "<|im_end|>",      "<|eot_id|>",    "<|eom_id|>", "<|end|>",
    "<|return|>",    "<|end_of_text|>", "<end_of_turn>", "<EOT>",
};

enum { END_NAME_COUNT = sizeof end_names / sizeof *end_names };

enum status tokenizer_find_model(struct view name, enum tokenizer_model *model,
                                 struct error *error) {
    static const char *const names[] = {
        [TOKENIZER_BYTE_BPE] = "gpt2",
        [TOKENIZER_SENTENCEPIECE_BPE] = "llama",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (view_is(name, names[i])) {
            *model = (enum tokenizer_model)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_UNSUPPORTED,
                     "tokenizer model '%.*s' is not supported; supported: gpt2, llama",
                     (int)(name.length < 64 ? name.length : 64), name.bytes);
}

static enum status check_id(const struct tokenizer_source *source, int32_t id, const char *role,
                            struct error *error) {
    if (id < -1 || id >= source->token_count)
        return error_set(error, STATUS_CORRUPT, "the %s token is %d, but there are %d tokens", role,
                         id, source->token_count);
    return STATUS_OK;
}

static enum status check_ids(const struct tokenizer_source *source, struct error *error) {
    TRY(check_id(source, source->bos_id, "BOS", error));
    TRY(check_id(source, source->eos_id, "EOS", error));
    TRY(check_id(source, source->eot_id, "EOT", error));
    TRY(check_id(source, source->eom_id, "EOM", error));
    return check_id(source, source->unknown_id, "unknown", error);
}

static void add_end(struct tokenizer *tokenizer, int32_t id) {
    if (id >= 0 && !tokenizer_is_end(tokenizer, id) && tokenizer->end_count < TOKENIZER_ENDS_MAX)
        tokenizer->ends[tokenizer->end_count++] = id;
}

static void collect_ends(struct tokenizer *tokenizer, const struct tokenizer_source *source) {
    add_end(tokenizer, source->eos_id);
    add_end(tokenizer, source->eot_id);
    add_end(tokenizer, source->eom_id);
    for (size_t i = 0; i < END_NAME_COUNT; i++) {
        const struct added_token *token =
            added_tokens_find(&tokenizer->added, view_of(end_names[i]));
        if (token && tokenizer->vocabulary.classes[token->id] == TOKEN_CONTROL)
            add_end(tokenizer, token->id);
    }
}

static bool has_long_tokens(const struct vocabulary *vocabulary) {
    for (int32_t id = 0; id < vocabulary->count; id++)
        if (vocabulary->classes[id] == TOKEN_NORMAL && vocabulary_bytes(vocabulary, id).length > 1)
            return true;
    return false;
}

static enum status init_byte_bpe(struct tokenizer *tokenizer, const struct tokenizer_source *source,
                                 struct error *error) {
    const struct vocabulary *vocabulary = &tokenizer->vocabulary;
    if (source->merge_count == 0 && has_long_tokens(vocabulary))
        return error_set(error, STATUS_CORRUPT, "the byte-level vocabulary has no merges");
    int present = 0;
    for (int byte = 0; byte < 256; byte++)
        present += vocabulary->byte_ids[byte] >= 0;
    if (present == 0)
        return error_set(error, STATUS_CORRUPT,
                         "no token of the byte-level vocabulary stands for a single byte");
    TRY(pair_table_init(&tokenizer->pairs, vocabulary, source->merges, source->merge_count, error));
    for (size_t i = 0; i < source->merge_count; i++)
        tokenizer->identity = XXH3_64bits_withSeed(source->merges[i].bytes,
                                                   source->merges[i].length, tokenizer->identity);
    tokenizer->identity = XXH3_64bits_withSeed(
        tokenizer->splitter->name, strlen(tokenizer->splitter->name), tokenizer->identity);
    return STATUS_OK;
}

/* An unsigned number that is smaller for a better score. */
static uint32_t score_key(float score) {
    union {
        float value;
        uint32_t bits;
    } number = {.value = score + 0.0f}; /* -0 becomes 0 */
    uint32_t ascending = number.bits & 0x80000000u ? ~number.bits : number.bits | 0x80000000u;
    return ~ascending;
}

/* User-defined tokens that are made by merging are made before all others. */
static bool is_user_defined(const struct tokenizer_source *source, int32_t id) {
    return source->classes && source->classes[id] == TOKEN_USER_DEFINED;
}

static void note_neighbours(uint64_t *neighbours, struct view token) {
    for (size_t i = 1; i < token.length; i++) {
        unsigned pair =
            (unsigned)(unsigned char)token.bytes[i - 1] << 8 | (unsigned char)token.bytes[i];
        neighbours[pair / 64] |= (uint64_t)1 << pair % 64;
    }
}

static enum status init_piece_bpe(struct tokenizer *tokenizer,
                                  const struct tokenizer_source *source, struct error *error) {
    const struct vocabulary *vocabulary = &tokenizer->vocabulary;
    if (!source->scores)
        return error_set(error, STATUS_CORRUPT, "the vocabulary has no scores to merge by");
    tokenizer->score_keys = malloc((size_t)vocabulary->count * sizeof *tokenizer->score_keys);
    if (!tokenizer->score_keys)
        return error_no_memory(error, "the token scores");
    for (int32_t id = 0; id < vocabulary->count; id++) {
        if (isnan(source->scores[id]))
            return error_set(error, STATUS_CORRUPT, "the score of token %d is not a number", id);
        tokenizer->score_keys[id] = is_user_defined(source, id) ? 0 : score_key(source->scores[id]);
        if (vocabulary->classes[id] == TOKEN_NORMAL)
            note_neighbours(tokenizer->neighbours, vocabulary_bytes(vocabulary, id));
    }
    tokenizer->identity = XXH3_64bits_withSeed(
        tokenizer->score_keys, (size_t)vocabulary->count * sizeof *tokenizer->score_keys,
        tokenizer->identity);
    return STATUS_OK;
}

static enum status init(struct tokenizer *tokenizer, const struct tokenizer_source *source,
                        struct error *error) {
    const int32_t roles[] = {source->bos_id, source->eos_id, source->eot_id, source->eom_id};
    tokenizer->model = source->model;
    bool byte_level = source->model == TOKENIZER_BYTE_BPE;
    if (byte_level)
        TRY(splitter_find(source->splitter, &tokenizer->splitter, error));
    TRY(vocabulary_init(&tokenizer->vocabulary, source, error));
    TRY(check_ids(source, error));
    TRY(added_tokens_init(&tokenizer->added, &tokenizer->vocabulary, roles,
                          sizeof roles / sizeof *roles, error));
    tokenizer->identity = vocabulary_identity(&tokenizer->vocabulary);
    TRY((byte_level ? init_byte_bpe : init_piece_bpe)(tokenizer, source, error));
    tokenizer->bos_id = source->bos_id;
    tokenizer->eos_id = source->eos_id;
    tokenizer->unknown_id = source->unknown_id;
    collect_ends(tokenizer, source);
    bool adds_bos = byte_level ? tokenizer->splitter->adds_bos : true;
    tokenizer->wants_bos =
        source->bos_id >= 0 && (source->add_bos >= 0 ? source->add_bos != 0 : adds_bos);
    tokenizer->space_prefix = !byte_level && source->add_space_prefix != 0;
    return STATUS_OK;
}

enum status tokenizer_create(const struct tokenizer_source *source, struct tokenizer **tokenizer,
                             struct error *error) {
    *tokenizer = calloc(1, sizeof **tokenizer);
    if (!*tokenizer)
        return error_no_memory(error, "the tokenizer");
    enum status status = init(*tokenizer, source, error);
    if (status != STATUS_OK) {
        tokenizer_destroy(*tokenizer);
        *tokenizer = NULL;
    }
    return status;
}

void tokenizer_destroy(struct tokenizer *tokenizer) {
    if (!tokenizer)
        return;
    added_tokens_deinit(&tokenizer->added);
    pair_table_deinit(&tokenizer->pairs);
    vocabulary_deinit(&tokenizer->vocabulary);
    free(tokenizer->score_keys);
    free(tokenizer);
}

int32_t tokenizer_token_count(const struct tokenizer *tokenizer) {
    return tokenizer->vocabulary.count;
}

int32_t tokenizer_bos(const struct tokenizer *tokenizer) {
    return tokenizer->bos_id;
}

int32_t tokenizer_eos(const struct tokenizer *tokenizer) {
    return tokenizer->eos_id;
}

bool tokenizer_wants_bos(const struct tokenizer *tokenizer) {
    return tokenizer->wants_bos;
}

bool tokenizer_is_end(const struct tokenizer *tokenizer, int32_t id) {
    for (size_t i = 0; i < tokenizer->end_count; i++)
        if (tokenizer->ends[i] == id)
            return true;
    return false;
}

bool tokenizer_is_special(const struct tokenizer *tokenizer, int32_t id) {
    if (id < 0 || id >= tokenizer->vocabulary.count)
        return false;
    uint8_t class = tokenizer->vocabulary.classes[id];
    return class == TOKEN_CONTROL || class == TOKEN_UNKNOWN;
}

int32_t tokenizer_find(const struct tokenizer *tokenizer, struct view bytes) {
    const struct added_token *token = added_tokens_find(&tokenizer->added, bytes);
    return token ? token->id : vocabulary_find(&tokenizer->vocabulary, bytes.bytes, bytes.length);
}

struct view tokenizer_token_bytes(const struct tokenizer *tokenizer, int32_t id) {
    if (id < 0 || id >= tokenizer->vocabulary.count)
        return (struct view){0};
    return vocabulary_bytes(&tokenizer->vocabulary, id);
}

const char *tokenizer_splitter_name(const struct tokenizer *tokenizer) {
    return tokenizer->splitter ? tokenizer->splitter->name : "sentencepiece";
}
