/* Reads the two large tables of a model description: config (where numbers come from) and tensors
 * (slots with names and shapes). An expression sees only the names above it, so values never form a
 * circle. */
#include <string.h>

#include "core/model/description.h"

/* when: {NAME: NUMBER} with then: EXPRESSION. */
static enum status read_case(const struct description *description,
                             struct description_config *config, const struct yaml_node *when,
                             const struct yaml_node *then, struct error *error) {
    struct expression name;
    if (when == NULL && then == NULL)
        return STATUS_OK;
    if (when == NULL || then == NULL)
        return error_set(error, STATUS_BAD_INPUT, "line %d: 'when' and 'then' need each other",
                         config->line);
    if (when->kind != YAML_MAPPING || when->count != 1 ||
        !yaml_to_double(when->values[0], &config->when_value))
        return error_set(error, STATUS_BAD_INPUT, "line %d: 'when' must be {name: number}",
                         when->line);
    TRY(description_read_expression(description, when->keys[0], "when", &name, error));
    config->when = name.left.name;
    if (name.left.name < 0 || name.left.root || name.operation != 0)
        return error_set(error, STATUS_BAD_INPUT, "line %d: 'when' must be {name: number}",
                         when->line);
    return description_read_expression(description, then, "then", &config->then, error);
}

static enum status parse_entry(const struct description *description,
                               struct description_config *config, const struct yaml_node *node,
                               struct arena *arena, struct error *error) {
    static const char *const keys[] = {"gguf", "rows", "when", "then", "default", NULL};
    TRY(description_check_keys(node, "a config entry", keys, error));
    const struct yaml_node *gguf = yaml_find(node, "gguf");
    const struct yaml_node *rows = yaml_find(node, "rows");
    const struct yaml_node *fallback = yaml_find(node, "default");
    if (gguf == NULL && rows == NULL && fallback == NULL)
        return error_set(error, STATUS_BAD_INPUT, "line %d: '%s' needs gguf, rows or default",
                         node->line, config->name);
    if (gguf != NULL)
        TRY(description_read_texts(gguf, "gguf", arena, &config->keys, &config->key_count, error));
    if (rows != NULL)
        TRY(description_read_text(rows, "rows", rows->line, &config->rows_of, error));
    TRY(read_case(description, config, yaml_find(node, "when"), yaml_find(node, "then"), error));
    config->has_fallback = fallback != NULL;
    if (fallback == NULL)
        return STATUS_OK;
    return description_read_expression(description, fallback, "default", &config->fallback, error);
}

static enum status find_known(struct description *description, int line, struct error *error) {
    for (int known = 0; known < KNOWN_COUNT; known++) {
        int index = 0;
        while (index < description->config_count &&
               strcmp(description->configs[index].name, description_known_names[known]) != 0)
            index++;
        if (index == description->config_count)
            return error_set(error, STATUS_BAD_INPUT, "line %d: config has no '%s'", line,
                             description_known_names[known]);
        description->known[known] = index;
    }
    return STATUS_OK;
}

enum status description_config_parse(struct description *description, const struct yaml_node *node,
                                     struct arena *arena, struct error *error) {
    if (node->kind != YAML_MAPPING)
        return error_set(error, STATUS_BAD_INPUT, "line %d: config must be a mapping", node->line);
    description->configs = arena_calloc(arena, node->count + 1, sizeof *description->configs);
    if (description->configs == NULL)
        return error_no_memory(error, "a model description");
    for (size_t i = 0; i < node->count; i++) {
        struct description_config *config = &description->configs[i];
        *config = (struct description_config){
            .name = node->keys[i]->scalar, .line = node->keys[i]->line, .when = -1};
        TRY(parse_entry(description, config, node->values[i], arena, error));
        description->config_count++; /* only now: an entry cannot refer to itself */
    }
    return find_known(description, node->line, error);
}

static enum status read_shape(const struct description *description, struct description_slot *slot,
                              const struct yaml_node *node, struct error *error) {
    if (node == NULL || node->kind != YAML_SEQUENCE || node->count < 1 || node->count > 2)
        return error_set(error, STATUS_BAD_INPUT,
                         "line %d: slot '%s' needs a shape: [rows, row length] or [length]",
                         slot->line, slot->name);
    slot->dim_count = (int)node->count;
    for (size_t i = 0; i < node->count; i++)
        TRY(description_read_expression(description, node->values[i], "shape", &slot->shape[i],
                                        error));
    return STATUS_OK;
}

static enum status read_absence(struct description *description, struct description_slot *slot,
                                const struct yaml_node *node, struct error *error) {
    const struct yaml_node *optional = yaml_find(node, "optional");
    const struct yaml_node *tied_to = yaml_find(node, "tied_to");
    slot->tied_to = -1;
    if (optional != NULL && !yaml_to_bool(optional, &slot->optional))
        return error_set(error, STATUS_BAD_INPUT, "line %d: 'optional' must be true or false",
                         optional->line);
    if (tied_to == NULL)
        return STATUS_OK;
    TRY(description_read_slot(description, tied_to, &slot->tied_to, error));
    const struct description_slot *other = &description->slots[slot->tied_to];
    if (other->optional || other->tied_to >= 0 || other->per_layer)
        return error_set(error, STATUS_BAD_INPUT,
                         "line %d: '%s' can stand for nothing: it is optional, tied or per layer",
                         tied_to->line, other->name);
    return STATUS_OK;
}

static enum status parse_slot(struct description *description, struct description_slot *slot,
                              const struct yaml_node *node, struct error *error) {
    static const char *const keys[] = {"gguf", "shape", "optional", "tied_to", NULL};
    TRY(description_check_keys(node, "a tensor slot", keys, error));
    TRY(description_read_text(yaml_find(node, "gguf"), "gguf", slot->line, &slot->pattern, error));
    slot->per_layer = strncmp(slot->name, "layer.", 6) == 0;
    const char *placeholder = strstr(slot->pattern, "{i}");
    if (slot->per_layer != (placeholder != NULL))
        return error_set(error, STATUS_BAD_INPUT,
                         "line %d: slot '%s': names of slots begin with 'layer.' exactly when "
                         "tensor names hold {i}",
                         slot->line, slot->name);
    TRY(read_shape(description, slot, yaml_find(node, "shape"), error));
    return read_absence(description, slot, node, error);
}

enum status description_config_parse_tensors(struct description *description,
                                             const struct yaml_node *node, struct arena *arena,
                                             struct error *error) {
    if (node->kind != YAML_MAPPING)
        return error_set(error, STATUS_BAD_INPUT, "line %d: tensors must be a mapping", node->line);
    description->slots = arena_calloc(arena, node->count + 1, sizeof *description->slots);
    if (description->slots == NULL)
        return error_no_memory(error, "a model description");
    for (size_t i = 0; i < node->count; i++) {
        struct description_slot *slot = &description->slots[i];
        slot->name = node->keys[i]->scalar;
        slot->line = node->keys[i]->line;
        TRY(parse_slot(description, slot, node->values[i], error));
        description->slot_count++;
    }
    return STATUS_OK;
}
