/* Attention in float64 over paged keys and values: the softmax of a row is computed whole, maximum
 * first, with nothing rounded in between. K pages are transposed so that 64 scores form side by
 * side. */
#include <assert.h>
#include <math.h>

#include "core/engine/backend_reference_state.h"

struct attention_job {
    struct reference *reference;
    const struct op_attention *op;
};

/* Where a row stands. */
struct row_place {
    const struct step_run *run;
    int position;
};

static size_t part_size(const struct model *model) {
    return (size_t)model->head_dim * KV_PAGE_TOKENS;
}

size_t backend_reference_attention_page_size(const struct model *model, int kv_group) {
    return (size_t)model->kv_groups[kv_group].layer_count * (size_t)model->kv_head_count * 2 *
           part_size(model);
}

static struct row_place place_of(const struct reference *reference, int row) {
    const struct step_run *run = &reference->plan->runs[reference->row_runs[row]];
    return (struct row_place){run, run->position_first + row - run->row_first};
}

/* K of a KV head in the page that holds `position`; V follows after part_size. */
static double *page_part(const struct reference *reference, const struct op_attention *op,
                         const struct step_run *run, int position, int kv_head) {
    int32_t page = run->pages[op->kv_group][position / KV_PAGE_TOKENS];
    assert(page >= 0);
    size_t part =
        (size_t)op->layer_in_group * (size_t)reference->model->kv_head_count + (size_t)kv_head;
    return reference->pages[op->kv_group][page] + part * 2 * part_size(reference->model);
}

static void norm_head(double *head, const double *weight, int count, double epsilon) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += head[i] * head[i];
    double factor = 1 / sqrt(sum / count + epsilon);
    for (int i = 0; i < count; i++)
        head[i] *= factor * weight[i];
}

/* Pair i is (2i, 2i + 1), or (i, i + dims / 2). */
static void rotate_head(double *head, const struct rope *rope, int position) {
    int pairs = rope->dims / 2;
    for (int i = 0; i < pairs && rope->pairing != ROPE_NONE; i++) {
        bool adjacent = rope->pairing == ROPE_ADJACENT;
        double *first = head + (adjacent ? 2 * i : i);
        double *second = adjacent ? first + 1 : first + pairs;
        double angle = position * rope->frequencies[i];
        double cosine = cos(angle) * rope->magnitude;
        double sine = sin(angle) * rope->magnitude;
        double x = *first, y = *second;
        *first = x * cosine - y * sine;
        *second = x * sine + y * cosine;
    }
}

/* Norm and rotate `count` heads of one row. norm: [head_dim] or NULL. */
static void prepare_heads(const struct attention_job *job, double *heads, int count,
                          const double *norm, int position) {
    int head_dim = job->reference->model->head_dim;
    for (int i = 0; i < count; i++) {
        double *head = heads + (size_t)i * (size_t)head_dim;
        if (norm != NULL)
            norm_head(head, norm, head_dim, (double)job->op->norm_epsilon);
        rotate_head(head, job->op->rope, position);
    }
}

static void write_page(const struct attention_job *job, const struct row_place *place,
                       const double *keys, const double *values) {
    const struct model *model = job->reference->model;
    int slot = place->position % KV_PAGE_TOKENS;
    for (int head = 0; head < model->kv_head_count; head++) {
        double *k = page_part(job->reference, job->op, place->run, place->position, head);
        double *v = k + part_size(model) + (size_t)slot * (size_t)model->head_dim;
        for (int i = 0; i < model->head_dim; i++) {
            k[(size_t)i * KV_PAGE_TOKENS + (size_t)slot] = keys[head * model->head_dim + i];
            v[i] = values[head * model->head_dim + i];
        }
    }
}

void backend_reference_attention_write(struct backend *backend, const struct op_attention *op) {
    struct reference *reference = (struct reference *)backend;
    const struct model *model = reference->model;
    struct attention_job job = {reference, op};
    double q_norm[512], k_norm[512]; /* head_dim is at most 512 */
    assert(model->head_dim <= 512);
    if (op->q_norm != NULL)
        backend_reference_linear_unpack(reference, op->q_norm, 0, q_norm);
    if (op->k_norm != NULL)
        backend_reference_linear_unpack(reference, op->k_norm, 0, k_norm);
    for (int row = 0; row < reference->plan->row_count; row++) {
        struct row_place place = place_of(reference, row);
        double *q = reference->activations[ACTIVATION_QKV] +
                    (size_t)row * (size_t)backend_reference_width(model, ACTIVATION_QKV);
        double *k = q + model->head_count * model->head_dim;
        double *v = k + model->kv_head_count * model->head_dim;
        prepare_heads(&job, q, model->head_count, op->q_norm == NULL ? NULL : q_norm,
                      place.position);
        prepare_heads(&job, k, model->kv_head_count, op->k_norm == NULL ? NULL : k_norm,
                      place.position);
        write_page(&job, &place, k, v);
    }
}

/* Scores of one page's 64 keys. */
static void score_page(const double *restrict q, const double *restrict k, int head_dim,
                       double *restrict scores) {
    for (int token = 0; token < KV_PAGE_TOKENS; token++)
        scores[token] = 0;
    for (int i = 0; i < head_dim; i++)
        for (int token = 0; token < KV_PAGE_TOKENS; token++)
            scores[token] += q[i] * k[i * KV_PAGE_TOKENS + token];
}

/* Scaled scores of keys [first, position] at scores[key - first rounded down to its page]. */
static void score_keys(const struct attention_job *job, const struct row_place *place, int first,
                       int kv_head, const double *q, double *scores) {
    const struct model *model = job->reference->model;
    double scale = (double)job->op->scale, cap = (double)job->op->softcap;
    int base = first / KV_PAGE_TOKENS * KV_PAGE_TOKENS;
    for (int key = base; key <= place->position; key += KV_PAGE_TOKENS)
        score_page(q, page_part(job->reference, job->op, place->run, key, kv_head), model->head_dim,
                   scores + (key - base));
    for (int key = first; key <= place->position; key++) {
        double score = scores[key - base] * scale;
        scores[key - base] = cap > 0 ? cap * tanh(score / cap) : score;
    }
}

/* scores[0..count) become probabilities. */
static void soften(double *scores, int count) {
    double top = scores[0], sum = 0;
    for (int i = 1; i < count; i++)
        top = scores[i] > top ? scores[i] : top;
    for (int i = 0; i < count; i++) {
        scores[i] = exp(scores[i] - top);
        sum += scores[i];
    }
    for (int i = 0; i < count; i++)
        scores[i] /= sum;
}

static void mix_values(const struct attention_job *job, const struct row_place *place, int first,
                       int kv_head, const double *probabilities, double *out) {
    const struct model *model = job->reference->model;
    for (int i = 0; i < model->head_dim; i++)
        out[i] = 0;
    for (int key = first; key <= place->position; key++) {
        const double *v = page_part(job->reference, job->op, place->run, key, kv_head) +
                          part_size(model) +
                          (size_t)(key % KV_PAGE_TOKENS) * (size_t)model->head_dim;
        for (int i = 0; i < model->head_dim; i++)
            out[i] += probabilities[key - first] * v[i];
    }
}

static void attend_row(void *context, int row, int worker_index) {
    const struct attention_job *job = context;
    struct reference *reference = job->reference;
    const struct model *model = reference->model;
    struct row_place place = place_of(reference, row);
    int window = job->op->window;
    int first = window > 0 && place.position >= window ? place.position - window + 1 : 0;
    double *scores = reference->workers[worker_index].scores;
    const double *q = reference->activations[ACTIVATION_QKV] +
                      (size_t)row * (size_t)backend_reference_width(model, ACTIVATION_QKV);
    double *out = reference->activations[ACTIVATION_ATTENDED] +
                  (size_t)row * (size_t)backend_reference_width(model, ACTIVATION_ATTENDED);
    for (int head = 0; head < model->head_count; head++) {
        int kv_head = head / (model->head_count / model->kv_head_count);
        double *wanted = scores + first % KV_PAGE_TOKENS;
        score_keys(job, &place, first, kv_head, q + head * model->head_dim, scores);
        soften(wanted, place.position - first + 1);
        mix_values(job, &place, first, kv_head, wanted, out + head * model->head_dim);
    }
}

void backend_reference_attention(struct backend *backend, const struct op_attention *op) {
    struct reference *reference = (struct reference *)backend;
    struct attention_job job = {reference, op};
    thread_pool_run(reference->pool, reference->plan->row_count, attend_row, &job);
}
