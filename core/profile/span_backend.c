/* See span_backend.h. The order of calls is the decoder's: the recorder asserts it. */
#include "core/profile/span_backend.h"

static struct span_backend *outer(struct backend *backend) {
    return (struct span_backend *)backend;
}

static const struct span_backend *outer_const(const struct backend *backend) {
    return (const void *)backend;
}

static void note(struct backend *backend, enum op_site_kind kind) {
    struct backend *inner = outer(backend)->inner;
    if (outer(backend)->recorder == NULL)
        return;
    span_site_end(outer(backend)->recorder, kind);
    if (inner->ops->mark != NULL && kind != SITE_END)
        inner->ops->mark(inner);
}

/* The first mark is behind SITE_BEGIN, and so on. */
static void place_marks(struct backend *backend) {
    const struct backend *inner = outer(backend)->inner;
    struct span_recorder *recorder = outer(backend)->recorder;
    for (int site = 1; inner->ops->mark != NULL && site < recorder->sites.count - 1; site++)
        span_site_move(recorder, site, inner->ops->mark_ns(inner, site));
}

static const char *numerics(const struct backend *backend) {
    struct backend *inner = outer_const(backend)->inner;
    return inner->ops->numerics(inner);
}

static struct backend_memory memory(const struct backend *backend, const struct model *model,
                                    const struct backend_limits *limits) {
    struct backend *inner = outer_const(backend)->inner;
    return inner->ops->memory(inner, model, limits);
}

static enum status prepare(struct backend *backend, const struct model *model,
                           struct error *error) {
    struct backend *inner = outer(backend)->inner;
    return inner->ops->prepare(inner, model, error);
}

static enum status reserve(struct backend *backend, const struct backend_limits *limits,
                           struct error *error) {
    struct backend *inner = outer(backend)->inner;
    return inner->ops->reserve(inner, limits, error);
}

static enum status begin_step(struct backend *backend, const struct step_plan *plan,
                              struct error *error) {
    struct backend *inner = outer(backend)->inner;
    if (outer(backend)->recorder != NULL)
        span_step_begin(outer(backend)->recorder, plan);
    TRY(inner->ops->begin_step(inner, plan, error));
    note(backend, SITE_BEGIN);
    return STATUS_OK;
}

static void embed(struct backend *backend, const struct op_embed *op) {
    struct backend *inner = outer(backend)->inner;
    inner->ops->embed(inner, op);
    note(backend, SITE_EMBED);
}

static void norm(struct backend *backend, const struct op_norm *op) {
    struct backend *inner = outer(backend)->inner;
    inner->ops->norm(inner, op);
    note(backend, SITE_NORM);
}

static enum op_site_kind linear_kind(enum activation from, enum activation to) {
    if (from == ACTIVATION_ATTENDED)
        return SITE_ATTENTION_OUT;
    if (from == ACTIVATION_GATED)
        return SITE_DOWN;
    return to == ACTIVATION_QKV ? SITE_QKV : SITE_GATE_UP;
}

static void linear(struct backend *backend, const struct linear *what, enum activation from,
                   enum activation to) {
    struct backend *inner = outer(backend)->inner;
    inner->ops->linear(inner, what, from, to);
    note(backend, linear_kind(from, to));
}

static void kv_write(struct backend *backend, const struct op_attention *op) {
    struct backend *inner = outer(backend)->inner;
    inner->ops->kv_write(inner, op);
    note(backend, SITE_KV_WRITE);
}

static void attention(struct backend *backend, const struct op_attention *op) {
    struct backend *inner = outer(backend)->inner;
    inner->ops->attention(inner, op);
    note(backend, SITE_ATTENTION);
}

static void activation(struct backend *backend, enum gate_kind gate) {
    struct backend *inner = outer(backend)->inner;
    inner->ops->activation(inner, gate);
    note(backend, SITE_ACTIVATION);
}

static void add_residual(struct backend *backend) {
    struct backend *inner = outer(backend)->inner;
    inner->ops->add_residual(inner);
    note(backend, SITE_RESIDUAL);
}

static void logits(struct backend *backend, const struct op_logits *op) {
    struct backend *inner = outer(backend)->inner;
    inner->ops->logits(inner, op);
    note(backend, SITE_LOGITS);
}

static enum status end_step(struct backend *backend, struct error *error) {
    struct backend *inner = outer(backend)->inner;
    TRY(inner->ops->end_step(inner, error));
    note(backend, SITE_END);
    if (outer(backend)->recorder != NULL) {
        place_marks(backend);
        span_step_end(outer(backend)->recorder);
    }
    return STATUS_OK;
}

static const float *logits_view(const struct backend *backend) {
    struct backend *inner = outer_const(backend)->inner;
    return inner->ops->logits_view(inner);
}

static void destroy(struct backend *backend) {
    (void)backend;
}

static const struct backend_ops ops = {
    .numerics = numerics,
    .memory = memory,
    .prepare = prepare,
    .reserve = reserve,
    .begin_step = begin_step,
    .embed = embed,
    .norm = norm,
    .linear = linear,
    .kv_write = kv_write,
    .attention = attention,
    .activation = activation,
    .add_residual = add_residual,
    .logits = logits,
    .end_step = end_step,
    .logits_view = logits_view,
    .destroy = destroy,
};

void span_backend_init(struct span_backend *backend, struct backend *inner) {
    *backend = (struct span_backend){.base = {&ops}, .inner = inner};
}
