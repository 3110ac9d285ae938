/* y = x · Wᵀ + b in float64. Each output is one sum over ascending inputs; vectors form over
 * neighbouring outputs, so the compiler may use any width without changing a bit. Weights are
 * unpacked anew for every call: the reference holds no copy of them, and a step of many rows hides
 * the cost. */
#include <math.h>

#include "core/engine/backend_reference_state.h"

struct linear_job {
    struct reference *reference;
    const struct linear *linear;
    const double *in;    /* [rows][linear.in] */
    const int32_t *rows; /* which rows of `in`, or NULL: the first row_count */
    int row_count;
    double *out;   /* [row_count][linear.out], or NULL */
    float *logits; /* the same in fp32, soft-capped, when out is NULL */
    double softcap;
};

void backend_reference_linear_unpack(struct reference *reference, const struct tensor *tensor,
                                     uint64_t row, double *out) {
    tensor_unpack_row(tensor, row, reference->weight_row);
    for (uint64_t i = 0; i < tensor->dims[0]; i++)
        out[i] = (double)reference->weight_row[i];
}

/* Biases of all parts side by side, zeros where a part has none. */
static void gather_bias(struct reference *reference, const struct linear *linear) {
    double *bias = reference->bias;
    for (int part = 0; part < linear->part_count; part++) {
        int count = (int)linear->parts[part]->row_count;
        if (linear->biases[part] != NULL)
            backend_reference_linear_unpack(reference, linear->biases[part], 0, bias);
        else
            for (int i = 0; i < count; i++)
                bias[i] = 0;
        bias += count;
    }
}

static void unpack_output(const struct linear *linear, int output, float *row) {
    int part = 0;
    while ((uint64_t)output >= linear->parts[part]->row_count)
        output -= (int)linear->parts[part++]->row_count;
    tensor_unpack_row(linear->parts[part], (uint64_t)output, row);
}

/* Weights of outputs [first, first + count) interleaved: panel[input][GROUP], zeros beyond count.
 */
static void fill_panel(const struct linear_job *job, struct reference_worker *worker, int first,
                       int count) {
    for (int column = 0; column < REFERENCE_GROUP_COLUMNS; column++) {
        if (column < count)
            unpack_output(job->linear, first + column, worker->row);
        for (int k = 0; k < job->linear->in; k++)
            worker->panel[(size_t)k * REFERENCE_GROUP_COLUMNS + (size_t)column] =
                column < count ? (double)worker->row[k] : 0;
    }
}

static void multiply_row(const double *restrict in, const double *restrict panel, int count,
                         double *restrict sums) {
    for (int column = 0; column < REFERENCE_GROUP_COLUMNS; column++)
        sums[column] = 0;
    for (int k = 0; k < count; k++)
        for (int column = 0; column < REFERENCE_GROUP_COLUMNS; column++)
            sums[column] += in[k] * panel[k * REFERENCE_GROUP_COLUMNS + column];
}

static void store_row(const struct linear_job *job, int row, int first, int count,
                      const double *sums) {
    size_t at = (size_t)row * (size_t)job->linear->out + (size_t)first;
    for (int i = 0; i < count; i++) {
        double value = sums[i] + job->reference->bias[first + i];
        if (job->out != NULL)
            job->out[at + (size_t)i] = value;
        else
            job->logits[at + (size_t)i] =
                (float)(job->softcap > 0 ? job->softcap * tanh(value / job->softcap) : value);
    }
}

static void linear_task(void *context, int task, int worker_index) {
    const struct linear_job *job = context;
    struct reference_worker *worker = &job->reference->workers[worker_index];
    int first = task * REFERENCE_GROUP_COLUMNS;
    int count = job->linear->out - first;
    if (count > REFERENCE_GROUP_COLUMNS)
        count = REFERENCE_GROUP_COLUMNS;
    fill_panel(job, worker, first, count);
    for (int row = 0; row < job->row_count; row++) {
        int source = job->rows == NULL ? row : job->rows[row];
        double sums[REFERENCE_GROUP_COLUMNS];
        multiply_row(job->in + (size_t)source * (size_t)job->linear->in, worker->panel,
                     job->linear->in, sums);
        store_row(job, row, first, count, sums);
    }
}

static void run_job(struct linear_job *job) {
    int tasks = (job->linear->out + REFERENCE_GROUP_COLUMNS - 1) / REFERENCE_GROUP_COLUMNS;
    gather_bias(job->reference, job->linear);
    thread_pool_run(job->reference->pool, tasks, linear_task, job);
}

void backend_reference_linear(struct backend *backend, const struct linear *linear,
                              enum activation from, enum activation to) {
    struct reference *reference = (struct reference *)backend;
    struct linear_job job = {
        .reference = reference,
        .linear = linear,
        .in = reference->activations[from],
        .row_count = reference->plan->row_count,
        .out = reference->activations[to],
    };
    run_job(&job);
}

void backend_reference_linear_logits(struct backend *backend, const struct op_logits *op) {
    struct reference *reference = (struct reference *)backend;
    struct linear_job job = {
        .reference = reference,
        .linear = &op->head,
        .in = reference->activations[ACTIVATION_HIDDEN],
        .rows = reference->plan->sample_rows,
        .row_count = reference->plan->sample_count,
        .logits = reference->logits,
        .softcap = (double)op->softcap,
    };
    run_job(&job);
}
