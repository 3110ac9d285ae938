/* The reference backend's state, shared by its files: backend_reference.c (lifetime, steps, small
 * ops), backend_reference_linear.c and backend_reference_attention.c. */
#ifndef CORE_ENGINE_BACKEND_REFERENCE_STATE_H
#define CORE_ENGINE_BACKEND_REFERENCE_STATE_H

#include "core/engine/backend_reference.h"

enum { REFERENCE_GROUP_COLUMNS = 16 }; /* outputs of a linear that one task computes */

/* What one worker needs for itself. */
struct reference_worker {
    float *row;     /* [longest input of a linear]: a weight row as unpacked */
    double *panel;  /* [longest input][REFERENCE_GROUP_COLUMNS] */
    double *scores; /* [context, rounded up to whole pages] */
};

struct reference {
    struct backend backend; /* first: the public face */
    struct thread_pool *pool;
    const struct model *model;
    struct backend_limits limits;
    double *activations[ACTIVATION_COUNT]; /* [row_count_max][reference_width] */
    double *bias;                          /* [widest linear output] of the op at work */
    float *weight_row;                     /* [longest row of any tensor]: engine thread */
    float *logits;                         /* [sample_count_max][vocab] */
    int *row_runs;                         /* [row_count_max]: which run a row belongs to */
    struct reference_worker *workers;      /* [thread_pool_count] */
    double **pages[MODEL_KV_GROUPS_MAX];   /* [page_count_max], allocated when first written */
    const struct step_plan *plan;          /* of the step at work */
};

/* Elements of a row of an activation buffer. */
int backend_reference_width(const struct model *model, enum activation activation);

/* One tensor row in double. */
void backend_reference_linear_unpack(struct reference *reference, const struct tensor *tensor,
                                     uint64_t row, double *out);

void backend_reference_linear(struct backend *backend, const struct linear *linear,
                              enum activation from, enum activation to);
void backend_reference_linear_logits(struct backend *backend, const struct op_logits *op);

void backend_reference_attention_write(struct backend *backend, const struct op_attention *op);
void backend_reference_attention(struct backend *backend, const struct op_attention *op);

/* Doubles in a page of a group. Layout: [layer][kv head]{K[head_dim][64], V[64][head_dim]}. */
size_t backend_reference_attention_page_size(const struct model *model, int kv_group);

#endif
