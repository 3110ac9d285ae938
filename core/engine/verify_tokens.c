/* Runs one token sequence through two backends in equal steps and compares every position: the
 * smallest schedule there is, one sequence on pages 0, 1, 2, ..., so that nothing but the backends
 * can differ. */
#include <stdlib.h>

#include "core/engine/verify.h"
#include "core/model/decoder.h"

static int page_count_for(int token_count) {
    return (token_count + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS;
}

struct backend_limits verify_limits(const struct model *model, int token_count, int chunk,
                                    enum kv_type kv_type) {
    struct backend_limits limits = {
        .row_count_max = chunk,
        .run_count_max = 1,
        .sample_count_max = chunk,
        .context_max = token_count,
        .kv_type = kv_type,
    };
    for (int group = 0; group < model->kv_group_count; group++)
        limits.page_count_max[group] = page_count_for(token_count);
    return limits;
}

static enum status compare_step(struct verify *verify, const struct verify_pair *pair,
                                const struct step_plan *plan, struct error *error) {
    TRY(decoder_step(pair->model, pair->reference, plan, error));
    TRY(decoder_step(pair->model, pair->tested, plan, error));
    const float *reference = pair->reference->ops->logits_view(pair->reference);
    const float *tested = pair->tested->ops->logits_view(pair->tested);
    for (int row = 0; row < plan->row_count; row++) {
        size_t at = (size_t)row * (size_t)verify->vocab_count;
        TRY(verify_add(verify, plan->runs[0].position_first + row, reference + at, tested + at,
                       error));
    }
    return STATUS_OK;
}

/* pages and rows: 0, 1, 2, ... of enough length. */
static enum status compare_all(struct verify *verify, const struct verify_pair *pair,
                               const int32_t *tokens, int token_count, int chunk,
                               const int32_t *numbers, struct error *error) {
    for (int first = 0; first < token_count; first += chunk) {
        int count = token_count - first < chunk ? token_count - first : chunk;
        struct step_run run = {.row_count = count, .position_first = first};
        for (int group = 0; group < pair->model->kv_group_count; group++)
            run.pages[group] = numbers;
        const struct step_plan plan = {
            .row_count = count,
            .tokens = tokens + first,
            .run_count = 1,
            .runs = &run,
            .sample_count = count,
            .sample_rows = numbers,
        };
        TRY(compare_step(verify, pair, &plan, error));
    }
    return STATUS_OK;
}

enum status verify_tokens(struct verify *verify, const struct verify_pair *pair,
                          const int32_t *tokens, int token_count, int chunk, struct error *error) {
    int count = page_count_for(token_count) > chunk ? page_count_for(token_count) : chunk;
    int32_t *numbers = malloc((size_t)count * sizeof *numbers);
    if (numbers == NULL)
        return error_no_memory(error, "the comparison of logits");
    for (int32_t i = 0; i < count; i++)
        numbers[i] = i;
    enum status status = compare_all(verify, pair, tokens, token_count, chunk, numbers, error);
    free(numbers);
    return status;
}
