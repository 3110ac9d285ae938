/* The benchmarks of `sheaf bench` on the model's own shapes. */
#include "core/profile/whatif.h"

#include <math.h>

#include "core/kernels/bench_attention.h"
#include "core/kernels/bench_linear.h"

static const int row_points[] = {1, 4, 16, 64, 256, 1024};
static const int chunk_points[] = {16, 64, 512};

enum {
    CONTEXT_MIN = 1024, /* so that a chunk of 512 has keys before it */
    CONTEXT_MAX = 16384,
    CHUNK_ROWS = 512,
    DECODING_MIN = 4, /* so that all threads have tasks */
    DECODING_MAX = 256,
    DECODE_BYTES = 128 << 20, /* one layer's KV stands for that of all: not from a cache */
};

double whatif_at(const struct whatif_curve *curve, double rows) {
    int above = 0;
    if (curve->count == 0)
        return 0;
    while (above < curve->count - 1 && curve->rows[above] < rows)
        above++;
    if (above == 0 || curve->rows[above] <= rows)
        return curve->seconds[above];
    double low = log(curve->rows[above - 1]), high = log(curve->rows[above]);
    double share = (log(rows) - low) / (high - low);
    return curve->seconds[above - 1] + (curve->seconds[above] - curve->seconds[above - 1]) * share;
}

static const struct linear *gate_up_of(const struct model *model) {
    for (int i = 0; i < model->op_count; i++)
        if (model->ops[i].kind == OP_MLP)
            return &model->ops[i].mlp.gate_up;
    return NULL;
}

static enum status measure_matmul(const struct model *model, const struct kernels *kernels,
                                  struct thread_pool *pool, struct whatif_curve *curve,
                                  struct error *error) {
    const struct linear *linear = gate_up_of(model);
    for (size_t i = 0; linear != NULL && i < sizeof row_points / sizeof *row_points; i++) {
        struct bench_linear_result result;
        const struct bench_linear_case what = {.name = "what if",
                                               .type = linear->parts[0]->type->id,
                                               .in = linear->in,
                                               .out = linear->out,
                                               .row_count = row_points[i]};
        TRY(bench_linear_run(kernels->linear_int8 ? kernels->linear_int8 : kernels->linear, pool,
                             &what, 0, &result, error));
        curve->rows[curve->count] = row_points[i];
        curve->seconds[curve->count++] = result.seconds / row_points[i];
    }
    return STATUS_OK;
}

static enum status time_attention(const struct model *model, const struct kernels *kernels,
                                  struct thread_pool *pool, struct bench_attention_case what,
                                  enum attention_page_type type, double *seconds,
                                  struct error *error) {
    struct bench_attention_result result;
    what.name = "what if";
    what.head_dim = model->head_dim;
    what.head_count = model->head_count;
    what.kv_head_count = model->kv_head_count;
    TRY(bench_attention_run(kernels, pool, &what, type, 0, &result, error));
    *seconds = result.seconds;
    return STATUS_OK;
}

static enum status measure_chunks(const struct model *model, const struct kernels *kernels,
                                  struct thread_pool *pool, struct whatif *whatif,
                                  struct error *error) {
    struct whatif_curve *curve = &whatif->attention;
    for (size_t i = 0; i < sizeof chunk_points / sizeof *chunk_points; i++) {
        double seconds;
        const struct bench_attention_case what = {
            .sequence_count = 1, .context = whatif->context, .row_count = chunk_points[i]};
        TRY(time_attention(model, kernels, pool, what, ATTENTION_PAGE_BF16, &seconds, error));
        /* Fewer rows see more keys each at the end of a context: a row's time for equal keys. */
        double seen = whatif->context - (chunk_points[i] - 1) / 2.0;
        curve->rows[curve->count] = chunk_points[i];
        curve->seconds[curve->count++] = seconds / chunk_points[i] / seen * whatif->context;
    }
    const struct bench_attention_case chunk = {
        .sequence_count = 1, .context = 2 * CHUNK_ROWS, .row_count = CHUNK_ROWS};
    TRY(time_attention(model, kernels, pool, chunk, ATTENTION_PAGE_BF16, &whatif->prefill_bf16,
                       error));
    return time_attention(model, kernels, pool, chunk, ATTENTION_PAGE_INT8, &whatif->prefill_int8,
                          error);
}

static int within(int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
}

/* So many sequences that their KV does not stay in a cache from trial to trial. */
static int enough_sequences(const struct model *model, int context) {
    size_t bytes = attention_page_bytes(ATTENTION_PAGE_BF16, model->head_dim) *
                   (size_t)model->kv_head_count / KV_PAGE_TOKENS * (size_t)context;
    return within((int)(DECODE_BYTES / bytes), DECODING_MIN, DECODING_MAX);
}

enum status whatif_measure(const struct model *model, const struct kernels *kernels,
                           struct thread_pool *pool, int context, struct whatif *whatif,
                           struct error *error) {
    *whatif = (struct whatif){.context = within(context, CONTEXT_MIN, CONTEXT_MAX)};
    whatif->decoding = enough_sequences(model, whatif->context);
    TRY(measure_matmul(model, kernels, pool, &whatif->matmul, error));
    TRY(measure_chunks(model, kernels, pool, whatif, error));
    const struct bench_attention_case decode = {
        .sequence_count = whatif->decoding, .context = whatif->context, .row_count = 1};
    TRY(time_attention(model, kernels, pool, decode, ATTENTION_PAGE_BF16, &whatif->decode_bf16,
                       error));
    return time_attention(model, kernels, pool, decode, ATTENTION_PAGE_INT8, &whatif->decode_int8,
                          error);
}
