/* `sheaf bench`: kernels against measured ceilings of this machine. Tables on stdout, JSON with
 * --json. */
#include <stdio.h>
#include <string.h>

#include "cmd/bench_batches.h"
#include "cmd/bench_report.h"
#include "cmd/commands.h"
#include "cmd/exit_code.h"
#include "cmd/runtime.h"
#include "core/base/clock.h"
#include "core/job/input.h"
#include "core/kernels/bench_attention.h"
#include "core/kernels/bench_linear.h"
#include "core/kernels/ceilings.h"

struct bench {
    struct runtime runtime;
    struct kernels kernels;
    const struct linear_kernels *linear; /* of the matmul dtype asked for */
    struct ceilings ceilings;
    struct bench_report report;
    const struct path_list *inputs;
};

static enum status measure_ceilings(struct bench *bench, struct error *error) {
    return ceilings_measure(bench->linear, bench->runtime.pool, &bench->ceilings, error);
}

/* ---- ceilings ---- */

static enum status bench_ceilings(struct bench *bench, struct error *error) {
    TRY(measure_ceilings(bench, error));
    struct bench_report *report = &bench->report;
    bench_report_begin(report);
    bench_report_text(report, "what", "products");
    bench_report_number(report, "one thread", bench->ceilings.flops_one / 1e9, "GFLOP/s");
    bench_report_number(report, "all threads", bench->ceilings.flops_all / 1e9, "GFLOP/s");
    for (int i = 0; i < CEILINGS_READ_COUNT; i++) {
        const struct ceilings_read *read = &bench->ceilings.read[i];
        char what[64];
        snprintf(what, sizeof what, "reading %zu KiB", read->bytes / 1024);
        bench_report_begin(report);
        bench_report_text(report, "what", what);
        bench_report_number(report, "one thread", read->one / 1e9, "GB/s");
        bench_report_number(report, "all threads", read->all / 1e9, "GB/s");
    }
    return STATUS_OK;
}

/* ---- matmul ---- */

/* Logits are computed for sampled rows only: few of them, with a buffer as wide as the vocabulary.
 */
enum { LOGITS_OUT_MIN = 32768, LOGITS_ROWS_MAX = 64 };

static enum status bench_shape(struct bench *bench, struct bench_linear_case shape,
                               struct error *error) {
    static const int row_counts[] = {1, 7, 8, 32, 128, 512};
    for (size_t i = 0; i < sizeof row_counts / sizeof row_counts[0]; i++) {
        shape.row_count = row_counts[i];
        if (shape.out > LOGITS_OUT_MIN && shape.row_count > LOGITS_ROWS_MAX)
            break;
        struct bench_linear_result result;
        TRY(bench_linear_run(bench->linear, bench->runtime.pool, &shape, bench->ceilings.flops_all,
                             &result, error));
        struct bench_report *report = &bench->report;
        bench_report_begin(report);
        bench_report_text(report, "shape", shape.name);
        bench_report_text(report, "type", quant_type_find(shape.type)->name);
        bench_report_number(report, "in", shape.in, "");
        bench_report_number(report, "out", shape.out, "");
        bench_report_number(report, "rows", shape.row_count, "");
        bench_report_number(report, "time", result.seconds * 1e3, "ms");
        bench_report_number(report, "rate", result.flops / 1e9, "GFLOP/s");
        bench_report_number(report, "of peak", result.peak_share * 100, "%");
        bench_report_number(report, "weights", result.weight_bytes_rate / 1e9, "GB/s");
    }
    return STATUS_OK;
}

static enum status bench_matmul(struct bench *bench, struct error *error) {
    TRY(measure_ceilings(bench, error));
    for (size_t i = 0; i < bench_linear_shape_count(); i++)
        TRY(bench_shape(bench, bench_linear_shape_at(i), error));
    return STATUS_OK;
}

/* ---- attention ---- */

static enum status bench_pages(struct bench *bench, enum attention_page_type type,
                               const char *type_name, struct error *error) {
    for (size_t i = 0; i < bench_attention_case_count(); i++) {
        struct bench_attention_case what = bench_attention_case_at(i);
        struct bench_attention_result result;
        TRY(bench_attention_run(&bench->kernels, bench->runtime.pool, &what, type,
                                bench->ceilings.flops_all, &result, error));
        struct bench_report *report = &bench->report;
        bench_report_begin(report);
        bench_report_text(report, "what", what.name);
        bench_report_text(report, "KV", type_name);
        bench_report_number(report, "sequences", what.sequence_count, "");
        bench_report_number(report, "rows", what.row_count, "");
        bench_report_number(report, "context", what.context, "");
        bench_report_number(report, "time", result.seconds * 1e3, "ms");
        bench_report_number(report, "rate", result.flops / 1e9, "GFLOP/s");
        bench_report_number(report, "of peak", result.peak_share * 100, "%");
        bench_report_number(report, "read", result.kv_bytes_rate / 1e9, "GB/s");
    }
    return STATUS_OK;
}

static enum status bench_model_shapes(struct bench *bench, struct error *error) {
    TRY(measure_ceilings(bench, error));
    TRY(bench_pages(bench, ATTENTION_PAGE_BF16, "bf16", error));
    return bench_pages(bench, ATTENTION_PAGE_INT8, "int8", error);
}

/* Variants on a batch named on the command line: cmd/bench_batches.c. */
static enum status bench_attention(struct bench *bench, struct error *error) {
    if (bench->inputs->count < 2)
        return bench_model_shapes(bench, error);
    for (int i = 1; i < bench->inputs->count; i++)
        TRY(bench_batches_add(&bench->report, &bench->runtime, bench->inputs->items[i], error));
    return STATUS_OK;
}

/* ---- tokenizer ---- */

/* English-like text when no file is named: frequent words come often, as in real text. */
static bool make_text(struct text *text, size_t bytes) {
    static const char *const words[] = {"the",
                                        "of",
                                        "and",
                                        "to",
                                        "in",
                                        "a",
                                        "is",
                                        "that",
                                        "for",
                                        "it",
                                        "as",
                                        "was",
                                        "with",
                                        "be",
                                        "by",
                                        "on",
                                        "not",
                                        "his",
                                        "which",
                                        "from",
                                        "documents",
                                        "however",
                                        "agreement",
                                        "measured",
                                        "temperature",
                                        "Monday",
                                        "nevertheless",
                                        "2024",
                                        "configuration",
                                        "street",
                                        "paragraph",
                                        "understanding",
                                        "x86",
                                        "cache",
                                        "river",
                                        "inflammation",
                                        "seventeen",
                                        "self-evident"};
    enum { WORD_COUNT = sizeof words / sizeof words[0] };
    uint64_t state = 1;
    while (text->length < bytes) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t first = (state >> 40) % WORD_COUNT, second = (state >> 20) % WORD_COUNT;
        const char *word = words[first < second ? first : second];
        const char *after = (state >> 57) == 0 ? ".\n" : (state >> 57) < 12 ? ", " : " ";
        if (!text_append_string(text, word) || !text_append_string(text, after))
            return false;
    }
    return true;
}

static enum status read_first_input(const struct path_list *inputs, struct text *text,
                                    struct error *error) {
    if (inputs->count < 2)
        return make_text(text, 1 << 20) ? STATUS_OK : error_no_memory(error, "the text");
    struct input_options options = {
        .paths = inputs->items + 1, .path_count = 1, .replace_invalid = true};
    struct input *input = NULL;
    TRY(input_open(&options, &input, error));
    struct document document;
    document_init(&document);
    bool end = false;
    enum status status = input_next(input, &document, &end, error);
    if (status == STATUS_OK && document.error_code)
        status = error_set(error, STATUS_BAD_INPUT, "%s", document.error_message);
    if (status == STATUS_OK && !text_append(text, document.text.bytes, document.text.length))
        status = error_no_memory(error, "the text");
    document_deinit(&document);
    input_close(input);
    return status;
}

static enum status time_encoding(struct bench *bench, const struct marked_text *marked,
                                 struct error *error) {
    struct tokenizer_scratch *scratch = tokenizer_scratch_create();
    if (!scratch)
        return error_no_memory(error, "the tokenizer");
    struct token_list list = {0};
    struct tokenizer_options options = {.add_bos = true};
    double cold_ms = 0, best_ms = 1e30;
    enum status status = STATUS_OK;
    for (int trial = 0; trial < 7 && status == STATUS_OK; trial++) {
        int64_t started_ns = clock_now_ns();
        status =
            tokenizer_encode(bench->runtime.tokenizer, marked, &options, scratch, &list, error);
        double elapsed_ms = clock_ms_between(started_ns, clock_now_ns());
        if (trial == 0)
            cold_ms = elapsed_ms;
        if (elapsed_ms < best_ms)
            best_ms = elapsed_ms;
    }
    struct bench_report *report = &bench->report;
    double megabytes = (double)marked->text.length / 1e6;
    bench_report_begin(report);
    bench_report_text(report, "splitter", tokenizer_splitter_name(bench->runtime.tokenizer));
    bench_report_number(report, "text", megabytes, "MB");
    bench_report_number(report, "tokens", (double)list.count, "");
    bench_report_number(report, "first", megabytes / (cold_ms / 1e3), "MB/s");
    bench_report_number(report, "best", megabytes / (best_ms / 1e3), "MB/s");
    bench_report_number(report, "load", bench->runtime.load_ms, "ms");
    token_list_deinit(&list);
    tokenizer_scratch_destroy(scratch);
    return status;
}

static enum status bench_tokenizer(struct bench *bench, struct error *error) {
    TRY(runtime_open_model(&bench->runtime, error));
    TRY(runtime_open_tokenizer(&bench->runtime, error));
    struct text text;
    struct marked_text marked;
    text_init(&text, (size_t)1 << 31);
    marked_text_init(&marked, (size_t)1 << 31);
    enum status status = read_first_input(bench->inputs, &text, error);
    if (status == STATUS_OK &&
        !marked_text_append(&marked, text.bytes, text.length, ORIGIN_DOCUMENT))
        status = error_no_memory(error, "the text");
    if (status == STATUS_OK)
        status = time_encoding(bench, &marked, error);
    text_deinit(&text);
    marked_text_deinit(&marked);
    return status;
}

static const struct {
    const char *name;
    enum status (*run)(struct bench *bench, struct error *error);
} benches[] = {
    {"ceilings", bench_ceilings},
    {"matmul", bench_matmul},
    {"attention", bench_attention},
    {"tokenizer", bench_tokenizer},
};

static enum status run_named(struct bench *bench, struct error *error) {
    const char *name = bench->inputs->count > 0 ? bench->inputs->items[0] : "";
    for (size_t i = 0; i < sizeof benches / sizeof benches[0]; i++) {
        if (strcmp(name, benches[i].name) != 0)
            continue;
        TRY(runtime_open_threads(&bench->runtime, error));
        bench->kernels = kernels_select(&bench->runtime.features);
        bench->linear = bench->kernels.linear;
        if (bench->runtime.settings->matmul_dtype == MATMUL_INT8) {
            kernels_add_int8(&bench->kernels, &bench->runtime.features);
            bench->linear = bench->kernels.linear_int8;
        }
        return benches[i].run(bench, error);
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "say what to measure: sheaf bench matmul, attention, tokenizer or ceilings");
}

int command_bench(const struct settings *settings, const struct path_list *inputs,
                  struct arena *arena) {
    struct bench bench = {.inputs = inputs};
    struct error error;
    runtime_init(&bench.runtime, settings, arena);
    bench_report_init(&bench.report, settings->json);
    enum status status = run_named(&bench, &error);
    if (status == STATUS_OK)
        bench_report_print(&bench.report, bench.kernels.numerics,
                           thread_pool_count(bench.runtime.pool));
    else
        fprintf(stderr, "sheaf: %s\n", error.text);
    bench_report_deinit(&bench.report);
    runtime_deinit(&bench.runtime);
    return status == STATUS_OK ? EXIT_ALL_DONE : EXIT_NOT_STARTED;
}
