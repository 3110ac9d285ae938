/* Walks a model's ops once. All there is to know about a family is in the op array; all there is to
 * know about hardware is behind the backend. */
#include "core/model/decoder.h"

static void embed(struct backend *backend, const struct op *op) {
    backend->ops->embed(backend, &op->embed);
}

static void norm(struct backend *backend, const struct op *op) {
    backend->ops->norm(backend, &op->norm);
}

static void attention(struct backend *backend, const struct op *op) {
    const struct op_attention *attention = &op->attention;
    backend->ops->linear(backend, &attention->qkv, ACTIVATION_HIDDEN, ACTIVATION_QKV);
    backend->ops->kv_write(backend, attention);
    backend->ops->attention(backend, attention);
    backend->ops->linear(backend, &attention->out, ACTIVATION_ATTENDED, ACTIVATION_HIDDEN);
}

static void add_residual(struct backend *backend, const struct op *op) {
    (void)op;
    backend->ops->add_residual(backend);
}

static void mlp(struct backend *backend, const struct op *op) {
    const struct op_mlp *mlp = &op->mlp;
    backend->ops->linear(backend, &mlp->gate_up, ACTIVATION_HIDDEN, ACTIVATION_GATE_UP);
    backend->ops->activation(backend, mlp->gate);
    backend->ops->linear(backend, &mlp->down, ACTIVATION_GATED, ACTIVATION_HIDDEN);
}

static void logits(struct backend *backend, const struct op *op) {
    backend->ops->logits(backend, &op->logits);
}

static void (*const walkers[OP_KIND_COUNT])(struct backend *backend, const struct op *op) = {
    [OP_EMBED] = embed,
    [OP_NORM] = norm,
    [OP_ATTENTION] = attention,
    [OP_ADD_RESIDUAL] = add_residual,
    [OP_MLP] = mlp,
    [OP_LOGITS] = logits,
};

enum status decoder_step(const struct model *model, struct backend *backend,
                         const struct step_plan *plan, struct error *error) {
    TRY(backend->ops->begin_step(backend, plan, error));
    for (int i = 0; i < model->op_count; i++)
        walkers[model->ops[i].kind](backend, &model->ops[i]);
    return backend->ops->end_step(backend, error);
}
