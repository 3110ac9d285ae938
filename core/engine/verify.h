/* How far a backend's logits are from the reference's, teacher-forced: both compute the same tokens
 * and each position's logits are compared. Relative L2 weighs all logits, KL the distribution
 * sampled from, argmax what greedy decoding would do. A differing argmax is held against the tested
 * backend only where the reference is clear: its two best logits lie further apart than two logits
 * each off by the largest error seen could close. */
#ifndef CORE_ENGINE_VERIFY_H
#define CORE_ENGINE_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/model/backend.h"
#include "core/model/model.h"

struct verify_position; /* gap and agreement of one position */

struct verify {
    int vocab_count;
    double error_square_sum, reference_square_sum;
    double relative_l2_max;
    double absolute_error_max;
    double divergence_sum, divergence_max;
    int64_t not_finite_count;
    int64_t relative_l2_max_position, absolute_error_max_position, divergence_max_position;
    struct verify_position *positions; /* [count]: finite ones */
    size_t count, capacity;
};

struct verify_report {
    int64_t position_count; /* all, not-finite ones included */
    int64_t
        not_finite_count; /* positions with a NaN or Inf in either: left out of all that follows */
    double relative_l2;   /* sqrt(Σ (tested - reference)² / Σ reference²) over all positions */
    double relative_l2_max; /* of a single position */
    int64_t relative_l2_max_position;
    double absolute_error_max;
    int64_t absolute_error_max_position;
    double divergence_mean, divergence_max; /* KL(reference ‖ tested) in nats */
    int64_t divergence_max_position;
    int64_t agree_count;       /* argmax equal; ties take the lowest id */
    int64_t clear_count;       /* reference's top-2 gap > 2 × absolute_error_max */
    int64_t clear_agree_count; /* … and argmax equal */
};

void verify_init(struct verify *verify, int vocab_count);
void verify_deinit(struct verify *verify);

/* One position; reference and tested: [vocab_count]. */
enum status verify_add(struct verify *verify, int64_t position, const float *reference,
                       const float *tested, struct error *error);

struct verify_report verify_finish(const struct verify *verify);

/* Limits for verify_tokens: one sequence of `token_count` positions in steps of `chunk` rows, every
 * row sampled, pages for all of it. `kv_type` is the backend's own. */
struct backend_limits verify_limits(const struct model *model, int token_count, int chunk,
                                    enum kv_type kv_type);

/* Compute `token_count` tokens on both backends, chunk by chunk, and add every position. Both are
 * prepared with `model` and reserved with verify_limits of the same count and chunk. */
struct verify_pair {
    const struct model *model;
    struct backend *reference;
    struct backend *tested;
};
enum status verify_tokens(struct verify *verify, const struct verify_pair *pair,
                          const int32_t *tokens, int token_count, int chunk, struct error *error);

#endif
