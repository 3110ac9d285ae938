/* The op vocabulary of model descriptions: which ops there are and which attributes each takes. A
 * new op or attribute is a row here, a field in model.h and its compilation in model_compile.c. */
#include <string.h>

#include "core/model/description.h"

enum attribute_kind { ATTRIBUTE_SLOT, ATTRIBUTE_NUMBER, ATTRIBUTE_CHOICE };

struct attribute {
    enum op_kind op;
    const char *name;
    enum attribute_kind kind;
    int index; /* enum op_slot or enum op_number */
    bool required;
    double fallback;            /* numbers that may be left out */
    const char *const *choices; /* the first one is the default */
};

static const char *const op_names[OP_KIND_COUNT + 1] = {
    [OP_EMBED] = "embed",
    [OP_NORM] = "norm",
    [OP_ATTENTION] = "attention",
    [OP_ADD_RESIDUAL] = "add_residual",
    [OP_MLP] = "mlp",
    [OP_LOGITS] = "logits",
};
static const char *const norm_sources[] = {"residual", "hidden", NULL};
static const char *const gates[] = {"silu", "gelu_tanh", NULL};

static const struct attribute attributes[] = {
    {OP_EMBED, "table", ATTRIBUTE_SLOT, SLOT_TABLE, true, 0, NULL},
    {OP_EMBED, "scale", ATTRIBUTE_NUMBER, NUMBER_SCALE, false, 1, NULL},
    {OP_NORM, "weight", ATTRIBUTE_SLOT, SLOT_WEIGHT, true, 0, NULL},
    {OP_NORM, "epsilon", ATTRIBUTE_NUMBER, NUMBER_EPSILON, true, 0, NULL},
    {OP_NORM, "from", ATTRIBUTE_CHOICE, 0, false, 0, norm_sources},
    {OP_ATTENTION, "q", ATTRIBUTE_SLOT, SLOT_Q, false, 0, NULL},
    {OP_ATTENTION, "k", ATTRIBUTE_SLOT, SLOT_K, false, 0, NULL},
    {OP_ATTENTION, "v", ATTRIBUTE_SLOT, SLOT_V, false, 0, NULL},
    {OP_ATTENTION, "qkv", ATTRIBUTE_SLOT, SLOT_QKV, false, 0, NULL},
    {OP_ATTENTION, "out", ATTRIBUTE_SLOT, SLOT_OUT, true, 0, NULL},
    {OP_ATTENTION, "q_bias", ATTRIBUTE_SLOT, SLOT_Q_BIAS, false, 0, NULL},
    {OP_ATTENTION, "k_bias", ATTRIBUTE_SLOT, SLOT_K_BIAS, false, 0, NULL},
    {OP_ATTENTION, "v_bias", ATTRIBUTE_SLOT, SLOT_V_BIAS, false, 0, NULL},
    {OP_ATTENTION, "qkv_bias", ATTRIBUTE_SLOT, SLOT_QKV_BIAS, false, 0, NULL},
    {OP_ATTENTION, "out_bias", ATTRIBUTE_SLOT, SLOT_OUT_BIAS, false, 0, NULL},
    {OP_ATTENTION, "q_norm", ATTRIBUTE_SLOT, SLOT_Q_NORM, false, 0, NULL},
    {OP_ATTENTION, "k_norm", ATTRIBUTE_SLOT, SLOT_K_NORM, false, 0, NULL},
    {OP_ATTENTION, "epsilon", ATTRIBUTE_NUMBER, NUMBER_EPSILON, false, 0, NULL},
    {OP_ATTENTION, "scale", ATTRIBUTE_NUMBER, NUMBER_SCALE, true, 0, NULL},
    {OP_ATTENTION, "softcap", ATTRIBUTE_NUMBER, NUMBER_SOFTCAP, false, 0, NULL},
    {OP_MLP, "gate", ATTRIBUTE_SLOT, SLOT_GATE, false, 0, NULL},
    {OP_MLP, "up", ATTRIBUTE_SLOT, SLOT_UP, false, 0, NULL},
    {OP_MLP, "gate_up", ATTRIBUTE_SLOT, SLOT_GATE_UP, false, 0, NULL},
    {OP_MLP, "down", ATTRIBUTE_SLOT, SLOT_DOWN, true, 0, NULL},
    {OP_MLP, "gate_bias", ATTRIBUTE_SLOT, SLOT_GATE_BIAS, false, 0, NULL},
    {OP_MLP, "up_bias", ATTRIBUTE_SLOT, SLOT_UP_BIAS, false, 0, NULL},
    {OP_MLP, "gate_up_bias", ATTRIBUTE_SLOT, SLOT_GATE_UP_BIAS, false, 0, NULL},
    {OP_MLP, "down_bias", ATTRIBUTE_SLOT, SLOT_DOWN_BIAS, false, 0, NULL},
    {OP_MLP, "activation", ATTRIBUTE_CHOICE, 0, true, 0, gates},
    {OP_LOGITS, "head", ATTRIBUTE_SLOT, SLOT_HEAD, true, 0, NULL},
    {OP_LOGITS, "softcap", ATTRIBUTE_NUMBER, NUMBER_SOFTCAP, false, 0, NULL},
};
enum { ATTRIBUTE_COUNT = sizeof attributes / sizeof *attributes };

/* One attribute of an op: `node` is NULL when it was left out. */
static enum status read_attribute(struct description *description, struct description_op *op,
                                  const struct attribute *attribute, const struct yaml_node *node,
                                  struct error *error) {
    if (node == NULL && attribute->required)
        return error_set(error, STATUS_BAD_INPUT, "line %d: op '%s' needs '%s'", op->line,
                         op_names[op->kind], attribute->name);
    if (node == NULL) {
        if (attribute->kind == ATTRIBUTE_NUMBER)
            op->numbers[attribute->index] = expression_constant(attribute->fallback);
        return STATUS_OK;
    }
    if (attribute->kind == ATTRIBUTE_SLOT)
        return description_read_slot(description, node, &op->slots[attribute->index], error);
    if (attribute->kind == ATTRIBUTE_NUMBER)
        return description_read_expression(description, node, attribute->name,
                                           &op->numbers[attribute->index], error);
    return description_read_choice(node, attribute->name, attribute->choices, &op->choice, error);
}

static enum status check_attributes(const struct yaml_node *node, enum op_kind kind,
                                    struct error *error) {
    const char *names[ATTRIBUTE_COUNT + 2] = {"op"};
    size_t count = 1;
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++)
        if (attributes[i].op == kind)
            names[count++] = attributes[i].name;
    names[count] = NULL;
    char what[64] = "op ";
    strncat(what, op_names[kind], sizeof what - 4);
    return description_check_keys(node, what, names, error);
}

/* Weights come either one by one or as one fused tensor, and a bias only with its weight. */
static enum status check_fusion(const struct description_op *op, const int *single, int count,
                                int fused, struct error *error) {
    int present = 0;
    for (int i = 0; i < count; i++)
        present += op->slots[single[i]] >= 0;
    bool is_fused = op->slots[fused] >= 0;
    if (is_fused ? present == 0 : present == count)
        return STATUS_OK;
    return error_set(error, STATUS_BAD_INPUT, "line %d: op '%s' needs %s", op->line,
                     op_names[op->kind],
                     count == 3 ? "either q, k and v, or qkv" : "either gate and up, or gate_up");
}

static enum status check_weights(const struct description_op *op, struct error *error) {
    static const int attention[] = {SLOT_Q, SLOT_K, SLOT_V};
    static const int mlp[] = {SLOT_GATE, SLOT_UP};
    static const int biased[][2] = {
        {SLOT_Q, SLOT_Q_BIAS},
        {SLOT_K, SLOT_K_BIAS},
        {SLOT_V, SLOT_V_BIAS},
        {SLOT_QKV, SLOT_QKV_BIAS},
        {SLOT_GATE, SLOT_GATE_BIAS},
        {SLOT_UP, SLOT_UP_BIAS},
        {SLOT_GATE_UP, SLOT_GATE_UP_BIAS},
    };
    if (op->kind == OP_ATTENTION)
        TRY(check_fusion(op, attention, 3, SLOT_QKV, error));
    if (op->kind == OP_MLP)
        TRY(check_fusion(op, mlp, 2, SLOT_GATE_UP, error));
    for (size_t i = 0; i < sizeof biased / sizeof *biased; i++)
        if (op->slots[biased[i][0]] < 0 && op->slots[biased[i][1]] >= 0)
            return error_set(error, STATUS_BAD_INPUT,
                             "line %d: op '%s' has a bias without its weight", op->line,
                             op_names[op->kind]);
    return STATUS_OK;
}

static enum status check_slot_places(const struct description *description,
                                     const struct description_op *op, bool in_layer,
                                     struct error *error) {
    for (int i = 0; i < OP_SLOT_COUNT && !in_layer; i++)
        if (op->slots[i] >= 0 && description->slots[op->slots[i]].per_layer)
            return error_set(error, STATUS_BAD_INPUT,
                             "line %d: slot '%s' belongs to a layer, the op does not", op->line,
                             description->slots[op->slots[i]].name);
    return STATUS_OK;
}

static enum status parse_op(struct description *description, const struct yaml_node *node,
                            bool in_layer, struct error *error) {
    struct description_op *op = &description->ops[description->op_count];
    int kind = 0;
    if (node->kind != YAML_MAPPING || yaml_find(node, "op") == NULL)
        return error_set(error, STATUS_BAD_INPUT, "line %d: an op must be a mapping with 'op'",
                         node->line);
    TRY(description_read_choice(yaml_find(node, "op"), "op", op_names, &kind, error));
    op->kind = (enum op_kind)kind;
    op->line = node->line;
    for (int i = 0; i < OP_SLOT_COUNT; i++)
        op->slots[i] = -1;
    TRY(check_attributes(node, op->kind, error));
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++)
        if (attributes[i].op == op->kind)
            TRY(read_attribute(description, op, &attributes[i], yaml_find(node, attributes[i].name),
                               error));
    TRY(check_weights(op, error));
    TRY(check_slot_places(description, op, in_layer, error));
    description->op_count++;
    return STATUS_OK;
}

static enum status parse_layers(struct description *description, const struct yaml_node *node,
                                struct error *error) {
    if (description->layer_end > 0 || node->kind != YAML_SEQUENCE || node->count == 0)
        return error_set(error, STATUS_BAD_INPUT,
                         "line %d: model needs exactly one 'layers', a list of ops", node->line);
    description->layer_first = description->op_count;
    for (size_t i = 0; i < node->count; i++)
        TRY(parse_op(description, node->values[i], true, error));
    description->layer_end = description->op_count;
    return STATUS_OK;
}

/* The order of data: tokens in first, logits last, keys and values of a layer written once. */
static enum status check_order(const struct description *description, int line,
                               struct error *error) {
    int embeds = 0, logits = 0, attentions = 0, attentions_outside = 0;
    for (int i = 0; i < description->op_count; i++) {
        bool in_layer = i >= description->layer_first && i < description->layer_end;
        enum op_kind kind = description->ops[i].kind;
        embeds += kind == OP_EMBED;
        logits += kind == OP_LOGITS;
        attentions += kind == OP_ATTENTION && in_layer;
        attentions_outside += kind == OP_ATTENTION && !in_layer;
    }
    if (description->layer_end == 0)
        return error_set(error, STATUS_BAD_INPUT, "line %d: model has no 'layers'", line);
    if (embeds != 1 || description->ops[0].kind != OP_EMBED || logits != 1 ||
        description->ops[description->op_count - 1].kind != OP_LOGITS)
        return error_set(error, STATUS_BAD_INPUT,
                         "line %d: model must begin with its only 'embed' and end with its only "
                         "'logits'",
                         line);
    if (attentions != 1 || attentions_outside != 0)
        return error_set(error, STATUS_BAD_INPUT,
                         "line %d: model must have one 'attention', inside its layers", line);
    return STATUS_OK;
}

static size_t count_ops(const struct yaml_node *node) {
    size_t count = node->count;
    for (size_t i = 0; i < node->count; i++)
        if (node->values[i]->kind == YAML_MAPPING)
            for (size_t j = 0; j < node->values[i]->count; j++)
                count += node->values[i]->values[j]->count;
    return count;
}

enum status description_ops_parse(struct description *description, const struct yaml_node *node,
                                  struct arena *arena, struct error *error) {
    if (node->kind != YAML_SEQUENCE)
        return error_set(error, STATUS_BAD_INPUT, "line %d: model must be a list of ops",
                         node->line);
    description->ops = arena_calloc(arena, count_ops(node) + 1, sizeof *description->ops);
    if (description->ops == NULL)
        return error_no_memory(error, "a model description");
    for (size_t i = 0; i < node->count; i++) {
        const struct yaml_node *item = node->values[i];
        bool is_layers = item->kind == YAML_MAPPING && yaml_find(item, "layers") != NULL;
        if (is_layers && item->count == 1)
            TRY(parse_layers(description, item->values[0], error));
        else
            TRY(parse_op(description, item, false, error));
    }
    return check_order(description, node->line, error);
}
