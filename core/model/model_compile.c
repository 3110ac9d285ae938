/* Compiles a description's ops, unrolled over the layers, into the array that the decoder walks.
 * Here every linear gets its id and every attention its place in a KV group. A description decides
 * its own shapes, so the shapes that an op relies on are checked again here: whatever is compiled,
 * backends may trust it. */
#include <string.h>

#include "core/model/model_build.h"

/* One op being compiled. */
struct op_work {
    struct model_build *build;
    const struct description_op *source;
    struct op *op;
    int layer; /* -1 outside the layers */
};

struct linear_part {
    enum op_slot weight, bias; /* bias == OP_SLOT_COUNT: the op has none */
    int out;
};

static const struct number_range epsilon_range = {"epsilon", 0, 1, 0};
static const struct number_range scale_range = {"scale", 1e-9, 1e9, 0};
static const struct number_range softcap_range = {"softcap", 0, 1e9, 0};

static enum status read_number(const struct op_work *work, enum op_number number,
                               const struct number_range *range, float *value,
                               struct error *error) {
    double wide;
    TRY(model_config_number(work->build, &work->source->numbers[number], range, work->source->line,
                            &wide, error));
    *value = (float)wide;
    return STATUS_OK;
}

/* The tensor of an attribute, [rows][length]; NULL where the slot is not named or optional and
 * absent. */
static enum status find_tensor(const struct op_work *work, enum op_slot attribute, int rows,
                               int length, const struct tensor **tensor, struct error *error) {
    int slot = work->source->slots[attribute];
    *tensor = model_tensors_find(work->build, slot, work->layer);
    if (*tensor == NULL ||
        ((*tensor)->dims[0] == (uint64_t)length && (*tensor)->row_count == (uint64_t)rows))
        return STATUS_OK;
    return error_set(error, STATUS_BAD_INPUT,
                     "description '%s': line %d: slot '%s' must have shape [%d, %d] for this op",
                     work->build->description->family, work->source->line,
                     work->build->description->slots[slot].name, rows, length);
}

static enum status need_tensor(const struct op_work *work, enum op_slot attribute, int rows,
                               int length, const struct tensor **tensor, struct error *error) {
    TRY(find_tensor(work, attribute, rows, length, tensor, error));
    if (*tensor != NULL)
        return STATUS_OK;
    return error_set(error, STATUS_BAD_INPUT,
                     "description '%s': line %d: the op cannot do without optional slot '%s'",
                     work->build->description->family, work->source->line,
                     work->build->description->slots[work->source->slots[attribute]].name);
}

static enum status compile_linear(const struct op_work *work, struct linear *linear, int in,
                                  const struct linear_part *parts, int part_count,
                                  struct error *error) {
    *linear = (struct linear){.id = work->build->model->linear_count, .in = in};
    for (int i = 0; i < part_count; i++) {
        TRY(need_tensor(work, parts[i].weight, parts[i].out, in, &linear->parts[i], error));
        if (parts[i].bias != OP_SLOT_COUNT)
            TRY(find_tensor(work, parts[i].bias, 1, parts[i].out, &linear->biases[i], error));
        linear->out += parts[i].out;
    }
    linear->part_count = part_count;
    work->build->model->linear_count++;
    return STATUS_OK;
}

static enum status compile_embed(const struct op_work *work, struct error *error) {
    const struct model *model = work->build->model;
    struct op_embed *embed = &work->op->embed;
    TRY(need_tensor(work, SLOT_TABLE, model->vocab_count, model->width, &embed->table, error));
    return read_number(work, NUMBER_SCALE, &scale_range, &embed->scale, error);
}

static enum status compile_norm(const struct op_work *work, struct error *error) {
    struct op_norm *norm = &work->op->norm;
    norm->from = (enum activation)work->source->choice;
    TRY(need_tensor(work, SLOT_WEIGHT, 1, work->build->model->width, &norm->weight, error));
    return read_number(work, NUMBER_EPSILON, &epsilon_range, &norm->epsilon, error);
}

static enum status compile_qkv(const struct op_work *work, struct error *error) {
    const struct model *model = work->build->model;
    int q_out = model->head_count * model->head_dim;
    int kv_out = model->kv_head_count * model->head_dim;
    const struct linear_part separate[] = {
        {SLOT_Q, SLOT_Q_BIAS, q_out}, {SLOT_K, SLOT_K_BIAS, kv_out}, {SLOT_V, SLOT_V_BIAS, kv_out}};
    const struct linear_part fused[] = {{SLOT_QKV, SLOT_QKV_BIAS, q_out + 2 * kv_out}};
    struct linear *qkv = &work->op->attention.qkv;
    if (work->source->slots[SLOT_QKV] >= 0)
        return compile_linear(work, qkv, model->width, fused, 1, error);
    return compile_linear(work, qkv, model->width, separate, 3, error);
}

/* The first kind whose pattern fits the layer. */
static enum status find_kind(const struct op_work *work, const struct description_layer_kind **kind,
                             struct error *error) {
    static const struct number_range every_range = {"every", 1, MODEL_LAYERS_MAX, 1};
    const struct description *description = work->build->description;
    for (int i = 0; i < description->kind_count; i++) {
        double every;
        *kind = &description->kinds[i];
        TRY(model_config_number(work->build, &(*kind)->every, &every_range, (*kind)->line, &every,
                                error));
        if ((work->layer + 1) % (int)every == 0)
            return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "description '%s': none of the layer kinds fits layer %d", description->family,
                     work->layer);
}

/* Layers with the same window share a KV group. */
static enum status place_in_group(const struct op_work *work, struct error *error) {
    struct model *model = work->build->model;
    struct op_attention *attention = &work->op->attention;
    int group = 0;
    while (group < model->kv_group_count && model->kv_groups[group].window != attention->window)
        group++;
    if (group == MODEL_KV_GROUPS_MAX)
        return error_set(error, STATUS_UNSUPPORTED, "more than %d different windows",
                         MODEL_KV_GROUPS_MAX);
    if (group == model->kv_group_count) {
        model->kv_groups[group].window = attention->window;
        model->kv_group_count++;
    }
    attention->kv_group = group;
    attention->layer_in_group = model->kv_groups[group].layer_count++;
    return STATUS_OK;
}

static enum status compile_attention(const struct op_work *work, struct error *error) {
    static const struct number_range window_range = {"window", 0, 1 << 24, 1};
    const struct model *model = work->build->model;
    struct op_attention *attention = &work->op->attention;
    const struct linear_part out = {SLOT_OUT, SLOT_OUT_BIAS, model->width};
    const struct description_layer_kind *kind = NULL;
    double window;
    TRY(find_kind(work, &kind, error));
    TRY(model_config_number(work->build, &kind->window, &window_range, kind->line, &window, error));
    attention->window = (int)window;
    attention->rope = &work->build->ropes[kind->rope];
    TRY(place_in_group(work, error));
    TRY(find_tensor(work, SLOT_Q_NORM, 1, model->head_dim, &attention->q_norm, error));
    TRY(find_tensor(work, SLOT_K_NORM, 1, model->head_dim, &attention->k_norm, error));
    TRY(read_number(work, NUMBER_EPSILON, &epsilon_range, &attention->norm_epsilon, error));
    TRY(read_number(work, NUMBER_SCALE, &scale_range, &attention->scale, error));
    TRY(read_number(work, NUMBER_SOFTCAP, &softcap_range, &attention->softcap, error));
    TRY(compile_qkv(work, error));
    return compile_linear(work, &attention->out, model->head_count * model->head_dim, &out, 1,
                          error);
}

static enum status compile_add_residual(const struct op_work *work, struct error *error) {
    (void)work;
    (void)error;
    return STATUS_OK;
}

static enum status compile_mlp(const struct op_work *work, struct error *error) {
    const struct model *model = work->build->model;
    int ffn = model->ffn_width;
    const struct linear_part separate[] = {{SLOT_GATE, SLOT_GATE_BIAS, ffn},
                                           {SLOT_UP, SLOT_UP_BIAS, ffn}};
    const struct linear_part fused[] = {{SLOT_GATE_UP, SLOT_GATE_UP_BIAS, 2 * ffn}};
    const struct linear_part down = {SLOT_DOWN, SLOT_DOWN_BIAS, model->width};
    struct op_mlp *mlp = &work->op->mlp;
    bool is_fused = work->source->slots[SLOT_GATE_UP] >= 0;
    mlp->gate = (enum gate_kind)work->source->choice;
    TRY(compile_linear(work, &mlp->gate_up, model->width, is_fused ? fused : separate,
                       is_fused ? 1 : 2, error));
    return compile_linear(work, &mlp->down, ffn, &down, 1, error);
}

static enum status compile_logits(const struct op_work *work, struct error *error) {
    const struct model *model = work->build->model;
    const struct linear_part head = {SLOT_HEAD, OP_SLOT_COUNT, model->vocab_count};
    struct op_logits *logits = &work->op->logits;
    TRY(compile_linear(work, &logits->head, model->width, &head, 1, error));
    return read_number(work, NUMBER_SOFTCAP, &softcap_range, &logits->softcap, error);
}

static enum status (*const compilers[OP_KIND_COUNT])(const struct op_work *work,
                                                     struct error *error) = {
    [OP_EMBED] = compile_embed,
    [OP_NORM] = compile_norm,
    [OP_ATTENTION] = compile_attention,
    [OP_ADD_RESIDUAL] = compile_add_residual,
    [OP_MLP] = compile_mlp,
    [OP_LOGITS] = compile_logits,
};

static enum status compile_op(struct model_build *build, int index, int layer,
                              struct error *error) {
    struct model *model = build->model;
    struct op *op = &model->ops[model->op_count++];
    const struct op_work work = {build, &build->description->ops[index], op, layer};
    op->kind = work.source->kind;
    op->layer = layer;
    return compilers[op->kind](&work, error);
}

static enum status compile_range(struct model_build *build, int first, int end, int layer,
                                 struct error *error) {
    for (int i = first; i < end; i++)
        TRY(compile_op(build, i, layer, error));
    return STATUS_OK;
}

enum status model_compile_ops(struct model_build *build, struct error *error) {
    const struct description *description = build->description;
    struct model *model = build->model;
    int repeated = description->layer_end - description->layer_first;
    size_t count =
        (size_t)(description->op_count - repeated) + (size_t)repeated * (size_t)model->layer_count;
    model->ops = arena_calloc(&model->arena, count, sizeof *model->ops);
    if (model->ops == NULL)
        return error_no_memory(error, "the model's ops");
    TRY(compile_range(build, 0, description->layer_first, -1, error));
    for (int layer = 0; layer < model->layer_count; layer++)
        TRY(compile_range(build, description->layer_first, description->layer_end, layer, error));
    return compile_range(build, description->layer_end, description->op_count, -1, error);
}
