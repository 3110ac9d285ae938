/* The next token from a row of logits. A function of the row, the sequence's own history, the
 * sampling settings and the key, of nothing else: not of the batch, the worker, or earlier draws.
 *
 * Filters, in the order of Hugging Face's generate (and with its meanings, except that ties never
 * widen top-k): repetition penalty on the logits of every token of prompt and output (positive
 * divided, negative multiplied); division by the temperature; top-k; top-p, the smallest set of
 * likeliest tokens that reaches p of what top-k left; min-p, relative to the likeliest. llama.cpp
 * applies the temperature last instead, vLLM min-p before top-k: with settings other than 1 they
 * keep other sets. Ties go to the lowest id everywhere. Temperature 0 takes the largest logit after
 * the penalty. */
#ifndef CORE_ENGINE_SAMPLER_H
#define CORE_ENGINE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/kernels/kernels.h"

struct sampler_row {
    const float *logits;    /* [vocab_count] */
    const int32_t *history; /* [history_count]: prompt and output so far, all below vocab_count */
    int history_count;      /* also the position of the token to draw */
    const struct sampling *sampling;
    uint64_t key;
};

struct sampler_candidate {
    float logit;
    int32_t token;
    double weight; /* exp((logit - largest) / temperature): 1 for the likeliest */
};

/* Workspace of one worker; its pages are touched only when a setting needs them. */
struct sampler {
    const struct elementwise_kernels *kernels;
    int vocab_count;
    float *logits;                        /* [vocab_count]: after the penalty */
    uint32_t *seen;                       /* a bit a token, all clear between rows */
    double *weights;                      /* [vocab_count]: as a candidate's, of every token */
    struct sampler_candidate *candidates; /* [vocab_count]: what top-k or top-p may keep */
};

/* `kernels` finds the largest logit: any variant, all find the same. */
enum status sampler_init(struct sampler *sampler, const struct elementwise_kernels *kernels,
                         int vocab_count, struct error *error);
void sampler_deinit(struct sampler *sampler);

/* Settings in range: `BAD_INPUT` names the first that is not. */
enum status sampler_check(const struct sampling *sampling, struct error *error);

/* False when a logit is NaN or +infinity, or all are -infinity (which only forbids a token). */
bool sampler_pick(struct sampler *sampler, const struct sampler_row *row, int32_t *token);

/* Uniform in [0, 1), 53 bits, a pure function of its arguments. */
double sampler_uniform(uint64_t seed, uint64_t key, uint64_t position);

/* e^x for x ≤ 709, within 2 units in the last place, the same bits on every CPU; 0 below -708. */
double sampler_exp(double x);

#endif
