/* Candidates are ordered by (logit descending, token ascending), a total order, so every set and
 * every sum below is taken in one defined order. Nothing sorts the vocabulary: top-k keeps a heap
 * of k, top-p first leaves out the many tokens that are too unlikely to matter. */
#include "core/engine/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum status sampler_init(struct sampler *sampler, const struct elementwise_kernels *kernels,
                         int vocab_count, struct error *error) {
    size_t count = (size_t)vocab_count;
    *sampler = (struct sampler){.kernels = kernels, .vocab_count = vocab_count};
    sampler->logits = calloc(count, sizeof *sampler->logits);
    sampler->seen = calloc(count / 32 + 1, sizeof *sampler->seen);
    sampler->weights = calloc(count, sizeof *sampler->weights);
    sampler->candidates = calloc(count, sizeof *sampler->candidates);
    if (sampler->logits && sampler->seen && sampler->weights && sampler->candidates)
        return STATUS_OK;
    sampler_deinit(sampler);
    return error_no_memory(error, "the sampler");
}

void sampler_deinit(struct sampler *sampler) {
    free(sampler->logits);
    free(sampler->seen);
    free(sampler->weights);
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

/* Free of branches, so that loops over it vectorise; lanes do the same operations as one value. */
static inline double exp_of(double x) {
    static const double log2_e = 1.4426950408889634;
    static const double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
    double clamped = x < -708 ? -708 : x;
    /* clamped = n ln 2 + r, |r| ≤ ln 2 / 2; e^r by its series. `biased` is positive: a cast rounds
     * it. */
    int biased = (int)(clamped * log2_e + 1023.5);
    double n = biased - 1023;
    double r = (clamped - n * ln2_high) - n * ln2_low;
    double sum = 1 / 6227020800.0;
    sum = sum * r + 1 / 479001600.0;
    sum = sum * r + 1 / 39916800.0;
    sum = sum * r + 1 / 3628800.0;
    sum = sum * r + 1 / 362880.0;
    sum = sum * r + 1 / 40320.0;
    sum = sum * r + 1 / 5040.0;
    sum = sum * r + 1 / 720.0;
    sum = sum * r + 1 / 120.0;
    sum = sum * r + 1 / 24.0;
    sum = sum * r + 1 / 6.0;
    sum = sum * r + 1 / 2.0;
    sum = sum * r + 1;
    sum = sum * r + 1;
    int64_t bits = (int64_t)biased << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    double value = sum * scale;
    return x < -708 ? 0 : value;
}

double sampler_exp(double x) {
    return exp_of(x);
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

/* The heap has its least likely at the root. */
static void sift_down(struct sampler_candidate *heap, int count, int at) {
    struct sampler_candidate moved = heap[at];
    for (;;) {
        int child = 2 * at + 1;
        if (child >= count)
            break;
        if (child + 1 < count && comes_before(&heap[child], &heap[child + 1]))
            child++;
        if (!comes_before(&moved, &heap[child]))
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

/* A heap into order, likeliest first. */
static void sort_heap(struct sampler_candidate *heap, int count) {
    for (int last = count - 1; last > 0; last--) {
        struct sampler_candidate least = heap[0];
        heap[0] = heap[last];
        heap[last] = least;
        sift_down(heap, last, 0);
    }
}

static inline double weight_of(float logit, float largest, double temperature) {
    return exp_of(((double)logit - (double)largest) / temperature);
}

/* The top_k likeliest, in order; returns how many there are. */
static int select_top_k(struct sampler *sampler, const float *logits, float largest,
                        const struct sampling *sampling) {
    struct sampler_candidate *heap = sampler->candidates;
    int count = 0;
    for (int32_t token = 0; token < sampler->vocab_count; token++) {
        struct sampler_candidate next = {logits[token], token, 0};
        if (count == sampling->top_k) {
            if (!comes_before(&next, &heap[0]))
                continue;
            heap[0] = next;
            sift_down(heap, count, 0);
        } else if (next.logit > -INFINITY) {
            heap[count++] = next;
            if (count == sampling->top_k)
                make_heap(heap, count);
        }
    }
    if (count < sampling->top_k)
        make_heap(heap, count);
    sort_heap(heap, count);
    for (int i = 0; i < count; i++)
        heap[i].weight = weight_of(heap[i].logit, largest, sampling->temperature);
    return count;
}

/* weights[] of all tokens; returns their sum. */
static double weigh_all(struct sampler *sampler, const float *logits, float largest,
                        double temperature) {
    double sum = 0;
    for (int token = 0; token < sampler->vocab_count; token++)
        sampler->weights[token] = weight_of(logits[token], largest, temperature);
    for (int token = 0; token < sampler->vocab_count; token++)
        sum += sampler->weights[token];
    return sum;
}

/* Candidates for top-p, in order: without those below (1 - p) / vocabulary of the sum. All of these
 * together do not reach 1 - p, so none of them is in the smallest set that reaches p. */
static int select_likely(struct sampler *sampler, const float *logits, double sum, double top_p) {
    double least = sum * (1 - top_p) / sampler->vocab_count;
    int count = 0;
    for (int32_t token = 0; token < sampler->vocab_count; token++)
        if (sampler->weights[token] > 0 && sampler->weights[token] >= least)
            sampler->candidates[count++] =
                (struct sampler_candidate){logits[token], token, sampler->weights[token]};
    make_heap(sampler->candidates, count);
    sort_heap(sampler->candidates, count);
    return count;
}

/* How many of the ordered candidates it takes to reach `least`; at least one. */
static int count_until(const struct sampler_candidate *candidates, int count, double least) {
    double reached = candidates[0].weight;
    int kept = 1;
    while (kept < count && reached < least)
        reached += candidates[kept++].weight;
    return kept;
}

static double sum_weights(const struct sampler_candidate *candidates, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += candidates[i].weight;
    return sum;
}

/* From candidates in order: those below min-p are the last ones. */
static int32_t draw_candidate(const struct sampler_candidate *candidates, int count, double min_p,
                              double u) {
    while (count > 1 && candidates[count - 1].weight < min_p)
        count--;
    double target = u * sum_weights(candidates, count), reached = candidates[0].weight;
    int i = 0;
    while (reached <= target && i + 1 < count && candidates[i + 1].weight > 0)
        reached += candidates[++i].weight;
    return candidates[i].token;
}

/* From all tokens, in order of id. */
static int32_t draw_any(const struct sampler *sampler, double min_p, double u) {
    double sum = 0, reached = 0;
    int32_t drawn = -1;
    for (int32_t token = 0; token < sampler->vocab_count; token++)
        sum += sampler->weights[token] >= min_p ? sampler->weights[token] : 0;
    double target = u * sum;
    for (int32_t token = 0; token < sampler->vocab_count && reached <= target; token++) {
        if (sampler->weights[token] < min_p || sampler->weights[token] == 0)
            continue;
        drawn = token;
        reached += sampler->weights[token];
    }
    return drawn;
}

static int32_t draw(struct sampler *sampler, const struct sampler_row *row, const float *logits,
                    float largest) {
    const struct sampling *sampling = row->sampling;
    double u = sampler_uniform(sampling->seed, row->key, (uint64_t)row->history_count);
    double sum;
    int count;
    if (sampling->top_k > 0 && sampling->top_k < sampler->vocab_count) {
        count = select_top_k(sampler, logits, largest, sampling);
        sum = sum_weights(sampler->candidates, count);
    } else {
        sum = weigh_all(sampler, logits, largest, sampling->temperature);
        if (sampling->top_p >= 1)
            return draw_any(sampler, sampling->min_p, u);
        count = select_likely(sampler, logits, sum, sampling->top_p);
    }
    if (sampling->top_p < 1)
        count = count_until(sampler->candidates, count, sampling->top_p * sum);
    return draw_candidate(sampler->candidates, count, sampling->min_p, u);
}

bool sampler_pick(struct sampler *sampler, const struct sampler_row *row, int32_t *token) {
    bool finite;
    *token = sampler->kernels->argmax(row->logits, sampler->vocab_count, &finite);
    if (!finite)
        return false;
    const float *logits = penalise(sampler, row);
    if (logits != row->logits)
        *token = sampler->kernels->argmax(logits, sampler->vocab_count, &finite);
    if (finite && row->sampling->temperature > 0)
        *token = draw(sampler, row, logits, logits[*token]);
    return finite;
}
