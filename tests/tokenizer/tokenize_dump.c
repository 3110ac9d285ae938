/* Tokenizes records from standard input and writes ids and offsets to standard output, for
 * comparisons with other tokenizers: tokenize_dump [--trusted] [--repeat N] MODEL.gguf. A record is
 * a length (u32) and that many bytes; the answer a count (u32), the ids (i32 each) and the offsets
 * (u32 each), all in the machine's byte order. Load time and speed, by processor time, go to
 * standard error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/model/model_tokenizer.h"

static double processor_ms(void) {
    return (double)clock() * 1000.0 / (double)CLOCKS_PER_SEC;
}

struct dump {
    struct tokenizer *tokenizer;
    struct tokenizer_scratch *scratch;
    struct token_list list;
    enum text_origin origin;
    int repeat;
    size_t bytes;
    double milliseconds;
};

static bool encode(struct dump *dump, const struct marked_text *text) {
    static const struct tokenizer_options options = {.add_bos = false};
    struct error error;
    double start = processor_ms();
    for (int i = 0; i < dump->repeat; i++) {
        if (tokenizer_encode(dump->tokenizer, text, &options, dump->scratch, &dump->list, &error) !=
            STATUS_OK) {
            fprintf(stderr, "%s\n", error.text);
            return false;
        }
        dump->bytes += text->text.length;
    }
    dump->milliseconds += processor_ms() - start;
    return true;
}

static bool answer(struct dump *dump, char *bytes, uint32_t length) {
    struct marked_text text;
    marked_text_init(&text, SIZE_MAX / 2);
    bool done = marked_text_append(&text, bytes, length, dump->origin) && encode(dump, &text);
    uint32_t count = (uint32_t)dump->list.count;
    done = done && fwrite(&count, sizeof count, 1, stdout) == 1 &&
           fwrite(dump->list.ids, sizeof *dump->list.ids, count, stdout) == count &&
           fwrite(dump->list.offsets, sizeof *dump->list.offsets, count, stdout) == count;
    marked_text_deinit(&text);
    return done;
}

static bool answer_all(struct dump *dump) {
    uint32_t length;
    while (fread(&length, sizeof length, 1, stdin) == 1) {
        char *bytes = malloc((size_t)length + 1);
        bool done =
            bytes && fread(bytes, 1, length, stdin) == length && answer(dump, bytes, length);
        free(bytes);
        if (!done)
            return false;
    }
    return true;
}

static bool open_tokenizer(struct dump *dump, const char *path) {
    struct error error;
    struct gguf *gguf;
    if (gguf_open(path, &gguf, &error) != STATUS_OK) {
        fprintf(stderr, "%s\n", error.text);
        return false;
    }
    double start = processor_ms();
    enum status status = model_tokenizer_create(gguf, &dump->tokenizer, &error);
    if (status != STATUS_OK)
        fprintf(stderr, "%s\n", error.text);
    else
        fprintf(stderr, "load %.1f ms\n", processor_ms() - start);
    gguf_close(gguf);
    dump->scratch = tokenizer_scratch_create();
    return status == STATUS_OK && dump->scratch;
}

int main(int argc, char **argv) {
    struct dump dump = {.origin = ORIGIN_DOCUMENT, .repeat = 1};
    int at = 1;
    for (; at < argc - 1; at++) {
        if (strcmp(argv[at], "--trusted") == 0)
            dump.origin = ORIGIN_TEMPLATE;
        else if (strcmp(argv[at], "--repeat") == 0 && at + 1 < argc - 1)
            dump.repeat = (int)strtol(argv[++at], NULL, 10);
        else
            break;
    }
    if (at != argc - 1) {
        fprintf(stderr, "usage: tokenize_dump [--trusted] [--repeat N] MODEL.gguf\n");
        return 2;
    }
    bool done = open_tokenizer(&dump, argv[at]) && answer_all(&dump);
    if (done && dump.milliseconds > 0)
        fprintf(stderr, "%.1f MB/s\n", (double)dump.bytes / dump.milliseconds / 1000.0);
    token_list_deinit(&dump.list);
    tokenizer_scratch_destroy(dump.scratch);
    tokenizer_destroy(dump.tokenizer);
    return done ? 0 : 1;
}
