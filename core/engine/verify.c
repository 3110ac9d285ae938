/* Sums and maxima of verify.h, all in double; the gaps are kept until the end because only then the
 * largest error, and with it what counts as clear, is known. The tokens run on the smallest
 * schedule there is, one sequence on pages 0, 1, 2, ..., so that nothing but the backends can
 * differ. */
#include "core/engine/verify.h"

#include <math.h>
#include <stdlib.h>

#include "core/model/decoder.h"

struct verify_position {
    double gap; /* of the reference's two best logits */
    bool agrees;
};

/* One row of logits seen once. */
struct row_facts {
    int best;
    double top, gap;
    bool finite;
};

void verify_init(struct verify *verify, int vocab_count) {
    *verify = (struct verify){.vocab_count = vocab_count};
}

void verify_deinit(struct verify *verify) {
    free(verify->positions);
    *verify = (struct verify){0};
}

static struct row_facts look(const float *row, int count) {
    struct row_facts facts = {.top = -INFINITY, .finite = true};
    double second = -INFINITY;
    for (int i = 0; i < count; i++) {
        double value = (double)row[i];
        facts.finite = facts.finite && isfinite(value);
        if (value > facts.top) {
            second = facts.top;
            facts.top = value;
            facts.best = i;
        } else if (value > second) {
            second = value;
        }
    }
    facts.gap = facts.top - second;
    return facts;
}

/* log Σ exp(row), the top taken out first. */
static double log_sum(const float *row, int count, double top) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += exp((double)row[i] - top);
    return top + log(sum);
}

/* KL(reference ‖ tested); rounding may leave it a hair below zero. */
static double divergence(const struct verify *verify, const float *reference, const float *tested,
                         double reference_top, double tested_top) {
    double reference_log = log_sum(reference, verify->vocab_count, reference_top);
    double tested_log = log_sum(tested, verify->vocab_count, tested_top);
    double sum = 0;
    for (int i = 0; i < verify->vocab_count; i++) {
        double log_p = (double)reference[i] - reference_log;
        double log_q = (double)tested[i] - tested_log;
        sum += exp(log_p) * (log_p - log_q);
    }
    return sum > 0 ? sum : 0;
}

static void keep_max(double value, int64_t position, double *max, int64_t *max_position) {
    if (value > *max) {
        *max = value;
        *max_position = position;
    }
}

static void add_errors(struct verify *verify, int64_t position, const float *reference,
                       const float *tested) {
    double errors = 0, squares = 0;
    for (int i = 0; i < verify->vocab_count; i++) {
        double error = (double)tested[i] - (double)reference[i];
        errors += error * error;
        squares += (double)reference[i] * (double)reference[i];
        keep_max(fabs(error), position, &verify->absolute_error_max,
                 &verify->absolute_error_max_position);
    }
    verify->error_square_sum += errors;
    verify->reference_square_sum += squares;
    double relative = errors == 0 ? 0 : sqrt(errors / squares);
    keep_max(relative, position, &verify->relative_l2_max, &verify->relative_l2_max_position);
}

static enum status make_room(struct verify *verify, struct error *error) {
    if (verify->count < verify->capacity)
        return STATUS_OK;
    size_t capacity = verify->capacity == 0 ? 1024 : 2 * verify->capacity;
    void *grown = realloc(verify->positions, capacity * sizeof *verify->positions);
    if (grown == NULL)
        return error_no_memory(error, "the comparison of logits");
    verify->positions = grown;
    verify->capacity = capacity;
    return STATUS_OK;
}

enum status verify_add(struct verify *verify, int64_t position, const float *reference,
                       const float *tested, struct error *error) {
    struct row_facts wanted = look(reference, verify->vocab_count);
    struct row_facts found = look(tested, verify->vocab_count);
    if (!wanted.finite || !found.finite) {
        verify->not_finite_count++;
        return STATUS_OK;
    }
    TRY(make_room(verify, error));
    add_errors(verify, position, reference, tested);
    double kl = divergence(verify, reference, tested, wanted.top, found.top);
    verify->divergence_sum += kl;
    keep_max(kl, position, &verify->divergence_max, &verify->divergence_max_position);
    verify->positions[verify->count++] =
        (struct verify_position){.gap = wanted.gap, .agrees = wanted.best == found.best};
    return STATUS_OK;
}

static void count_agreement(const struct verify *verify, struct verify_report *report) {
    for (size_t i = 0; i < verify->count; i++) {
        const struct verify_position *position = &verify->positions[i];
        bool clear = position->gap > 2 * verify->absolute_error_max;
        report->agree_count += position->agrees;
        report->clear_count += clear;
        report->clear_agree_count += clear && position->agrees;
    }
}

struct verify_report verify_finish(const struct verify *verify) {
    struct verify_report report = {
        .position_count = (int64_t)verify->count + verify->not_finite_count,
        .not_finite_count = verify->not_finite_count,
        .relative_l2_max = verify->relative_l2_max,
        .relative_l2_max_position = verify->relative_l2_max_position,
        .absolute_error_max = verify->absolute_error_max,
        .absolute_error_max_position = verify->absolute_error_max_position,
        .divergence_max = verify->divergence_max,
        .divergence_max_position = verify->divergence_max_position,
    };
    if (verify->error_square_sum > 0)
        report.relative_l2 = sqrt(verify->error_square_sum / verify->reference_square_sum);
    if (verify->count > 0)
        report.divergence_mean = verify->divergence_sum / (double)verify->count;
    count_agreement(verify, &report);
    return report;
}

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
