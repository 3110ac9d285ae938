/* Writes llama.cpp's logits of one sequence of tokens, every position, in the form that `sheaf
 * verify --against` reads (cmd/verify_against.h says it). Built and run by scripts/bench_accuracy,
 * against llama.cpp's C interface; it is no part of sheaf.
 *
 *     bench_logits MODEL.gguf THREADS < ids > logits      (ids: decimal numbers between blanks) */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <llama.h>

enum { TOKENS_MAX = 1 << 17, CHUNK = 512 };

struct dump {
    struct llama_context *context;
    int32_t *tokens;
    int32_t count, vocab;
};

static void keep_quiet(enum ggml_log_level level, const char *text, void *unused) {
    (void)unused;
    if (level == GGML_LOG_LEVEL_ERROR)
        fputs(text, stderr);
}

static int32_t read_tokens(int32_t *tokens) {
    int32_t count = 0;
    while (count < TOKENS_MAX && scanf("%d", &tokens[count]) == 1)
        count++;
    return count;
}

static struct llama_context *open_context(struct llama_model *model, int32_t count, int threads) {
    struct llama_context_params parameters = llama_context_default_params();
    parameters.n_ctx = (uint32_t)(count + CHUNK);
    parameters.n_batch = parameters.n_ubatch = CHUNK;
    parameters.n_threads = parameters.n_threads_batch = threads;
    return llama_init_from_model(model, parameters);
}

static int write_header(const struct dump *dump) {
    const int32_t sizes[2] = {dump->vocab, dump->count};
    size_t count = (size_t)dump->count;
    return fwrite("logits1\n", 1, 8, stdout) == 8 && fwrite(sizes, sizeof sizes, 1, stdout) == 1 &&
           fwrite(dump->tokens, sizeof *dump->tokens, count, stdout) == count;
}

static int write_chunk(const struct dump *dump, struct llama_batch *batch, int32_t first) {
    batch->n_tokens = dump->count - first < CHUNK ? dump->count - first : CHUNK;
    for (int32_t i = 0; i < batch->n_tokens; i++) {
        batch->token[i] = dump->tokens[first + i];
        batch->pos[i] = first + i;
        batch->n_seq_id[i] = 1;
        batch->seq_id[i][0] = 0;
        batch->logits[i] = 1;
    }
    if (llama_decode(dump->context, *batch) != 0)
        return 0;
    size_t vocab = (size_t)dump->vocab;
    for (int32_t i = 0; i < batch->n_tokens; i++) {
        if (fwrite(llama_get_logits_ith(dump->context, i), sizeof(float), vocab, stdout) != vocab)
            return 0;
    }
    return 1;
}

static int write_logits(const struct dump *dump) {
    struct llama_batch batch = llama_batch_init(CHUNK, 0, 1);
    int fine = write_header(dump);
    for (int32_t first = 0; fine && first < dump->count; first += CHUNK)
        fine = write_chunk(dump, &batch, first);
    llama_batch_free(batch);
    return fine && fflush(stdout) == 0;
}

int main(int argument_count, char **arguments) {
    if (argument_count != 3) {
        fprintf(stderr, "usage: bench_logits MODEL.gguf THREADS < ids > logits\n");
        return 2;
    }
    llama_log_set(keep_quiet, NULL);
    struct llama_model *model =
        llama_model_load_from_file(arguments[1], llama_model_default_params());
    int32_t *tokens = calloc(TOKENS_MAX, sizeof *tokens);
    if (!model || !tokens)
        return 1;
    struct dump dump = {.tokens = tokens, .count = read_tokens(tokens)};
    dump.vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    dump.context = open_context(model, dump.count, (int)strtol(arguments[2], NULL, 10));
    int fine = dump.count > 0 && dump.context && write_logits(&dump);
    if (dump.context)
        llama_free(dump.context);
    llama_model_free(model);
    free(tokens);
    return fine ? 0 : 1;
}
