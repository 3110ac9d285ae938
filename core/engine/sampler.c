/* Candidates are ordered by (logit descending, token ascending), a total order, so every set and
 * every sum below is taken in one defined order. Top-k and top-p pop from a heap only as many as
 * they keep. */
#include "core/engine/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum status sampler_init(struct sampler *sampler, int vocab_count, struct error *error) {
    size_t count = (size_t)vocab_count;
    *sampler = (struct sampler){.vocab_count = vocab_count};
    sampler->logits = calloc(count, sizeof *sampler->logits);
    sampler->seen = calloc(count / 32 + 1, sizeof *sampler->seen);
    sampler->candidates = calloc(count, sizeof *sampler->candidates);
    if (sampler->logits && sampler->seen && sampler->candidates)
        return STATUS_OK;
    sampler_deinit(sampler);
    return error_no_memory(error, "the sampler");
}

void sampler_deinit(struct sampler *sampler) {
    free(sampler->logits);
    free(sampler->seen);
    free(sampler->candidates);
    *sampler = (struct sampler){0};
}

enum status sampler_check(const struct sampling *sampling, struct error *error) {
    const char *wrong = NULL;
    if (!(sampling->temperature >= 0 && sampling->temperature < INFINITY))
        wrong = "the temperature must be a number from 0";
    else if (sampling->top_k < 0)
        wrong = "top-k must not be negative";
    else if (!(sampling->top_p > 0 && sampling->top_p <= 1))
        wrong = "top-p must be above 0 and at most 1";
    else if (!(sampling->min_p >= 0 && sampling->min_p <= 1))
        wrong = "min-p must be from 0 to 1";
    else if (!(sampling->repeat_penalty > 0 && sampling->repeat_penalty < INFINITY))
        wrong = "the repeat penalty must be a number above 0";
    return wrong ? error_set(error, STATUS_BAD_INPUT, "%s", wrong) : STATUS_OK;
}

double sampler_uniform(uint64_t seed, uint64_t key, uint64_t position) {
    uint64_t numbers[3] = {seed, key, position};
    return (double)(XXH3_64bits(numbers, sizeof numbers) >> 11) * 0x1p-53;
}

double sampler_exp(double x) {
    static const double log2_e = 1.4426950408889634;
    static const double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
    static const double series[] = {
        1 / 6227020800.0,
        1 / 479001600.0,
        1 / 39916800.0,
        1 / 3628800.0,
        1 / 362880.0,
        1 / 40320.0,
        1 / 5040.0,
        1 / 720.0,
        1 / 120.0,
        1 / 24.0,
        1 / 6.0,
        1 / 2.0,
        1,
        1,
    };
    if (x < -708)
        return 0;
    /* x = n ln 2 + r, |r| ≤ ln 2 / 2; e^r by its series. */
    int n = (int)(x * log2_e + (x < 0 ? -0.5 : 0.5));
    double r = (x - n * ln2_high) - n * ln2_low;
    double sum = series[0];
    for (size_t i = 1; i < sizeof series / sizeof series[0]; i++)
        sum = sum * r + series[i];
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}

/* An integer that orders as the float does (negative zero included: x + 0 makes it positive). The
 * smallest and largest of a row then also show NaNs, which order beyond the infinities. */
static int32_t order_of(float x) {
    int32_t bits;
    x += 0.0F;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ (bits >> 31 & INT32_MAX);
}

/* The largest logit and its lowest token; false when the row is not finite. */
static bool find_largest(const float *logits, int count, float *largest, int32_t *token) {
    int32_t low = INT32_MAX, high = INT32_MIN;
    for (int i = 0; i < count; i++) {
        int32_t order = order_of(logits[i]);
        low = order < low ? order : low;
        high = order > high ? order : high;
    }
    if (low < order_of(-INFINITY) || high >= order_of(INFINITY) || high == order_of(-INFINITY))
        return false;
    *token = 0;
    while (order_of(logits[*token]) != high)
        ++*token;
    *largest = logits[*token];
    return true;
}

/* The logits after the repetition penalty: the row itself when there is none. */
static const float *penalise(struct sampler *sampler, const struct sampler_row *row) {
    float penalty = (float)row->sampling->repeat_penalty;
    if (row->sampling->repeat_penalty == 1)
        return row->logits;
    memcpy(sampler->logits, row->logits, (size_t)sampler->vocab_count * sizeof(float));
    for (int i = 0; i < row->history_count; i++) {
        int32_t token = row->history[i];
        uint32_t bit = 1U << (token & 31);
        if (sampler->seen[token >> 5] & bit)
            continue;
        sampler->seen[token >> 5] |= bit;
        float logit = sampler->logits[token];
        sampler->logits[token] = logit > 0 ? logit / penalty : logit * penalty;
    }
    for (int i = 0; i < row->history_count; i++)
        sampler->seen[row->history[i] >> 5] = 0;
    return sampler->logits;
}

static bool comes_before(const struct sampler_candidate *a, const struct sampler_candidate *b) {
    return a->logit > b->logit || (a->logit == b->logit && a->token < b->token);
}

static void sift_down(struct sampler_candidate *heap, int count, int at) {
    struct sampler_candidate moved = heap[at];
    for (;;) {
        int child = 2 * at + 1;
        if (child >= count)
            break;
        if (child + 1 < count && comes_before(&heap[child + 1], &heap[child]))
            child++;
        if (!comes_before(&heap[child], &moved))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static void make_heap(struct sampler_candidate *heap, int count) {
    for (int at = count / 2 - 1; at >= 0; at--)
        sift_down(heap, count, at);
}

/* Moves the first of the heap's order to its end, which then lies outside the heap. */
static void pop_heap(struct sampler_candidate *heap, int *count) {
    struct sampler_candidate first = heap[0];
    int last = --*count;
    heap[0] = heap[last];
    heap[last] = first;
    sift_down(heap, last, 0);
}

/* Tokens that are not forbidden, in order of id. */
static int list_candidates(struct sampler *sampler, const float *logits) {
    int count = 0;
    for (int32_t token = 0; token < sampler->vocab_count; token++)
        if (logits[token] > -INFINITY)
            sampler->candidates[count++] = (struct sampler_candidate){logits[token], token, 0};
    return count;
}

/* Weights of candidates [first, last), largest logit `largest`; returns their sum, last to first:
 * that is likeliest first for what was popped. */
static double weigh(struct sampler_candidate *candidates, int first, int last, float largest,
                    double temperature) {
    double sum = 0;
    for (int i = last - 1; i >= first; i--) {
        double below = (double)candidates[i].logit - (double)largest;
        candidates[i].weight = below == 0 ? 1 : sampler_exp(below / temperature);
        sum += candidates[i].weight;
    }
    return sum;
}

/* The candidate at fraction `u` of the sum of weights that are at least `weight_min`. */
static int32_t draw(const struct sampler_candidate *candidates, int first, int last,
                    double weight_min, double u) {
    double sum = 0;
    for (int i = last - 1; i >= first; i--)
        sum += candidates[i].weight >= weight_min ? candidates[i].weight : 0;
    double target = u * sum, reached = 0;
    int32_t token = -1;
    for (int i = last - 1; i >= first; i--) {
        if (candidates[i].weight < weight_min || candidates[i].weight == 0)
            continue;
        token = candidates[i].token;
        reached += candidates[i].weight;
        if (reached > target)
            break;
    }
    return token;
}

/* Weighs the candidates and pops what top-k and top-p keep to the end of the array; returns the
 * index of the first kept. */
static int keep_likeliest(struct sampler_candidate *candidates, int count, float largest,
                          const struct sampling *sampling) {
    int heap = count, least = 0;
    double total, reached = 0;
    bool top_k = sampling->top_k > 0 && sampling->top_k < count;
    if (!top_k) {
        total = weigh(candidates, 0, count, largest, sampling->temperature);
        if (sampling->top_p >= 1)
            return 0;
        make_heap(candidates, count);
    } else {
        least = count - sampling->top_k;
        make_heap(candidates, count);
        while (heap > least)
            pop_heap(candidates, &heap);
        total = weigh(candidates, least, count, largest, sampling->temperature);
    }
    int kept = count;
    while (kept > least && (sampling->top_p >= 1 || reached < sampling->top_p * total)) {
        if (kept == heap)
            pop_heap(candidates, &heap);
        reached += candidates[--kept].weight;
    }
    return kept;
}

bool sampler_pick(struct sampler *sampler, const struct sampler_row *row, int32_t *token) {
    const struct sampling *sampling = row->sampling;
    float largest;
    if (!find_largest(row->logits, sampler->vocab_count, &largest, token))
        return false;
    const float *logits = penalise(sampler, row);
    if (logits != row->logits && !find_largest(logits, sampler->vocab_count, &largest, token))
        return false;
    if (sampling->temperature == 0)
        return true;
    int count = list_candidates(sampler, logits);
    int first = keep_likeliest(sampler->candidates, count, largest, sampling);
    double u = sampler_uniform(sampling->seed, row->key, (uint64_t)row->history_count);
    *token = draw(sampler->candidates, first, count, sampling->min_p, u);
    return true;
}
