/* Weights are random tensors; those of norms lie around 1. Their products are larger than a trained
 * model's: without head norms a small scale keeps the softmax from magnifying every rounding.
 * Everything is in the model's arena. */
#include "tests/support/random_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/random_tensor.h"

struct build {
    struct model *model;
    const struct random_model_shape *shape;
    uint64_t seed;
    struct rope *rope;
};

static void *take(struct build *build, size_t count, size_t size) {
    void *memory = arena_calloc(&build->model->arena, count, size);
    if (memory == NULL)
        abort();
    return memory;
}

static const struct tensor *copy_tensor(struct build *build, struct tensor source) {
    struct tensor *tensor = take(build, 1, sizeof *tensor);
    uint8_t *bytes = take(build, source.byte_count, 1);
    memcpy(bytes, source.bytes, source.byte_count);
    *tensor = source;
    tensor->bytes = bytes;
    random_tensor_destroy(&source);
    return tensor;
}

static const struct tensor *matrix(struct build *build, int in, int out) {
    const struct quant_type *type = quant_type_find(build->shape->type);
    if (in % (int)type->block_values != 0)
        type = quant_type_find(QUANT_F32);
    return copy_tensor(build, random_tensor_create(type, in, out, build->seed++));
}

/* `middle` + random × `size`. */
static const struct tensor *vector(struct build *build, int count, float middle, float size) {
    const struct tensor *tensor = copy_tensor(
        build, random_tensor_create(quant_type_find(QUANT_F32), count, 1, build->seed++));
    float *values = (void *)(uintptr_t)tensor->bytes;
    for (int i = 0; i < count; i++)
        values[i] = middle + size * values[i];
    return tensor;
}

static struct op *add_op(struct build *build, enum op_kind kind, int layer) {
    struct op *op = &build->model->ops[build->model->op_count++];
    op->kind = kind;
    op->layer = layer;
    return op;
}

static void add_norm(struct build *build, int layer, enum activation from) {
    struct op_norm *norm = &add_op(build, OP_NORM, layer)->norm;
    *norm = (struct op_norm){from, vector(build, build->shape->width, 1, 0.3f), 1e-5f};
}

static void init_linear(struct build *build, struct linear *linear, int in, const int *outs,
                        int part_count) {
    linear->id = build->model->linear_count++;
    linear->in = in;
    linear->part_count = part_count;
    for (int i = 0; i < part_count; i++) {
        linear->parts[i] = matrix(build, in, outs[i]);
        linear->out += outs[i];
    }
}

static void add_attention(struct build *build, int layer) {
    const struct random_model_shape *shape = build->shape;
    struct op_attention *op = &add_op(build, OP_ATTENTION, layer)->attention;
    bool local = shape->window > 0 && layer % 2 == 1;
    int kv = shape->kv_heads * shape->head_dim, attended = shape->heads * shape->head_dim;
    op->kv_group = local ? 1 : 0;
    op->layer_in_group = build->model->kv_groups[op->kv_group].layer_count++;
    op->window = local ? shape->window : 0;
    op->rope = build->rope;
    op->norm_epsilon = 1e-6f;
    op->scale = (shape->head_norms ? 1 : 0.01f) / sqrtf((float)shape->head_dim);
    op->softcap = shape->softcap;
    if (shape->head_norms) {
        op->q_norm = vector(build, shape->head_dim, 1, 0.3f);
        op->k_norm = vector(build, shape->head_dim, 1, 0.3f);
    }
    init_linear(build, &op->qkv, shape->width, (int[]){attended, kv, kv}, 3);
    if (shape->biases) {
        op->qkv.biases[0] = vector(build, attended, 0, 0.5f);
        op->qkv.biases[2] = vector(build, kv, 0, 0.5f);
    }
    init_linear(build, &op->out, attended, (int[]){shape->width}, 1);
}

static void add_sum(struct build *build, int layer) {
    if (build->shape->post_norms)
        add_norm(build, layer, ACTIVATION_HIDDEN);
    add_op(build, OP_ADD_RESIDUAL, layer);
}

static void add_layer(struct build *build, int layer) {
    const struct random_model_shape *shape = build->shape;
    add_norm(build, layer, ACTIVATION_RESIDUAL);
    add_attention(build, layer);
    add_sum(build, layer);
    add_norm(build, layer, ACTIVATION_RESIDUAL);
    struct op_mlp *mlp = &add_op(build, OP_MLP, layer)->mlp;
    mlp->gate = shape->gate;
    init_linear(build, &mlp->gate_up, shape->width, (int[]){shape->ffn_width, shape->ffn_width}, 2);
    init_linear(build, &mlp->down, shape->ffn_width, (int[]){shape->width}, 1);
    add_sum(build, layer);
}

static void add_rope(struct build *build) {
    int pairs = build->shape->head_dim / 2;
    double *frequencies = take(build, (size_t)pairs, sizeof *frequencies);
    for (int i = 0; i < pairs; i++)
        frequencies[i] = pow(10000, -(double)i / pairs);
    build->rope = take(build, 1, sizeof *build->rope);
    *build->rope = (struct rope){build->shape->pairing, 2 * pairs, frequencies, 1};
}

struct model *random_model_create(const struct random_model_shape *shape, uint64_t seed) {
    struct model *model = calloc(1, sizeof *model);
    if (model == NULL)
        abort();
    arena_init(&model->arena, 1 << 20, 256 << 20);
    struct build build = {model, shape, seed, NULL};
    model->layer_count = shape->layers;
    model->width = shape->width;
    model->head_count = shape->heads;
    model->kv_head_count = shape->kv_heads;
    model->head_dim = shape->head_dim;
    model->ffn_width = shape->ffn_width;
    model->vocab_count = shape->vocab;
    model->context_max = 4096;
    model->kv_group_count = shape->window > 0 ? 2 : 1;
    model->kv_groups[1].window = shape->window;
    model->ops = take(&build, 3 + 8 * (size_t)shape->layers, sizeof *model->ops);
    add_rope(&build);
    const struct tensor *table = matrix(&build, shape->width, shape->vocab);
    add_op(&build, OP_EMBED, -1)->embed = (struct op_embed){table, 1.5f};
    for (int i = 0; i < shape->layers; i++)
        add_layer(&build, i);
    add_norm(&build, -1, ACTIVATION_RESIDUAL);
    struct op_logits *logits = &add_op(&build, OP_LOGITS, -1)->logits;
    logits->softcap = shape->softcap;
    init_linear(&build, &logits->head, shape->width, (int[]){shape->vocab}, 1);
    return model;
}

void random_model_destroy(struct model *model) {
    arena_deinit(&model->arena);
    free(model);
}
