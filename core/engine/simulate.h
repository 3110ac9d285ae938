/* A dry run of the queue for `sheaf plan`: the engine's own scheduler, with the engine's own page
 * budget, on a modelled clock. Steps, prefix hits, refusals and pages are what a real run would
 * have (up to where sequences really end, and without guesses: what they would hit is not known);
 * seconds are as good as the cost model, which is a floor:
 * each part of a step takes the larger of its arithmetic and its memory traffic, parts add up. */
#ifndef CORE_ENGINE_SIMULATE_H
#define CORE_ENGINE_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/engine/engine.h"

/* What the machine reaches, from `sheaf bench ceilings` or an assumption; all > 0 but the last. */
struct simulate_ceilings {
    double matmul_flops;    /* per second, in the linear kernels */
    double attention_flops; /* per second, softmax included */
    double read_bytes;      /* per second, from memory */
    double step_seconds;    /* dispatch and everything else that comes once a step, ≥ 0 */
};

/* Seconds. */
struct simulate_costs {
    double step;    /* once a step */
    double weights; /* reading the weights once: the least that the matmuls of a step take */
    double row;     /* matmuls of a row, without the head */
    double sample;  /* the head of a sampled row */
    double attend[MODEL_KV_GROUPS_MAX];  /* a row and a key it sees, all layers of the group */
    double read_kv[MODEL_KV_GROUPS_MAX]; /* reading the K and V of a position, all layers */
};

/* page_bytes: [kv_group_count], a page of KV_PAGE_TOKENS positions, as the backend foretells. */
struct simulate_costs simulate_costs_of(const struct model *model, const uint64_t *page_bytes,
                                        const struct simulate_ceilings *ceilings);

/* Keys that `count` rows from position `first` on see in all: the row of position i sees i + 1 of
 * them, at most `window` (0: no such limit). */
double simulate_keys_seen(int first, int count, int window);

struct simulate_result {
    double seconds;
    double matmul_seconds, attention_seconds, step_seconds; /* their parts */
    int64_t steps;
    int64_t prefill_tokens;    /* prompt tokens computed */
    int64_t cached_tokens;     /* prompt tokens found in the prefix index */
    int64_t decode_tokens;     /* rows of decoding sequences */
    int64_t output_tokens;     /* tokens sampled */
    int64_t finished, refused; /* sequences */
    int running_peak;
    double batch_fill;
    int64_t pages_peak[MODEL_KV_GROUPS_MAX];    /* held at once */
    int64_t pages_touched[MODEL_KV_GROUPS_MAX]; /* ever written: what they cost in memory */
    int64_t pages_max[MODEL_KV_GROUPS_MAX];
};

struct simulate;

enum status simulate_create(const struct model *model, const struct engine_options *options,
                            const uint64_t *page_bytes, const struct simulate_costs *costs,
                            struct simulate **simulate, struct error *error);
void simulate_destroy(struct simulate *simulate);

/* Queue a document that is expected to end after `expected_tokens` (1..max_tokens) of output; its
 * reservation is for max_tokens. The tokens are copied and kept until it has ended: for a queue of
 * any size, submit while few are waiting, as the real run does. */
enum status simulate_submit(struct simulate *simulate, const struct engine_request *request,
                            int expected_tokens, struct error *error);

/* One step; false when nothing is left to do. */
bool simulate_step(struct simulate *simulate);

size_t simulate_waiting_count(const struct simulate *simulate);
void simulate_read(const struct simulate *simulate, struct simulate_result *result);

#endif
