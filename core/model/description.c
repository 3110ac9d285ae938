/* Reads the top level of a model description and the parts that are simple tables: match, refuse,
 * ropes, layer kinds, ignored names. Config and tensors are in description_config.c, ops in
 * description_ops.c. Every reader checks kinds and keys itself, so that a slip in a user's own file
 * is named by line instead of being read as something else. */
#include "core/model/description.h"

#include <stdio.h>
#include <string.h>

const char *const description_known_names[KNOWN_COUNT] = {
    "layers", "width", "heads", "kv_heads", "head_dim", "ffn_width", "vocab", "context",
};

/* "a, b, c" into a buffer, for messages. */
static const char *list_names(const char *const *names, char *buffer, size_t buffer_bytes) {
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; names[i] != NULL && used < buffer_bytes; i++) {
        int wrote =
            snprintf(buffer + used, buffer_bytes - used, "%s%s", i == 0 ? "" : ", ", names[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    return buffer;
}

static bool is_among(const char *text, const char *const *names) {
    for (size_t i = 0; names[i] != NULL; i++)
        if (strcmp(text, names[i]) == 0)
            return true;
    return false;
}

static enum status expect_kind(const struct yaml_node *node, enum yaml_kind kind, const char *what,
                               struct error *error) {
    static const char *const kinds[] = {"a single value", "a list", "a mapping"};
    if (node->kind == kind)
        return STATUS_OK;
    return error_set(error, STATUS_BAD_INPUT, "line %d: %s must be %s", node->line, what,
                     kinds[kind]);
}

enum status description_check_keys(const struct yaml_node *node, const char *what,
                                   const char *const *known, struct error *error) {
    char list[256];
    TRY(expect_kind(node, YAML_MAPPING, what, error));
    for (size_t i = 0; i < node->count; i++)
        if (!is_among(node->keys[i]->scalar, known))
            return error_set(error, STATUS_BAD_INPUT, "line %d: %s has no key '%s' (there are: %s)",
                             node->keys[i]->line, what, node->keys[i]->scalar,
                             list_names(known, list, sizeof list));
    return STATUS_OK;
}

enum status description_read_text(const struct yaml_node *node, const char *what, int line,
                                  const char **text, struct error *error) {
    if (node == NULL)
        return error_set(error, STATUS_BAD_INPUT, "line %d: '%s' is missing", line, what);
    if (node->kind != YAML_SCALAR || node->scalar_length == 0 ||
        strlen(node->scalar) != node->scalar_length)
        return error_set(error, STATUS_BAD_INPUT, "line %d: '%s' must be a text", node->line, what);
    *text = node->scalar;
    return STATUS_OK;
}

static int find_config(const void *context, struct view name) {
    const struct description *description = context;
    for (int i = 0; i < description->config_count; i++)
        if (view_is(name, description->configs[i].name))
            return i;
    return -1;
}

enum status description_read_expression(const struct description *description,
                                        const struct yaml_node *node, const char *what,
                                        struct expression *expression, struct error *error) {
    const char *text = NULL;
    struct expression_names names = {description, find_config};
    TRY(description_read_text(node, what, node == NULL ? 0 : node->line, &text, error));
    if (expression_parse(text, &names, expression, error) != STATUS_OK)
        return error_context(error, "line %d: '%s': '%s'", node->line, what, text);
    return STATUS_OK;
}

enum status description_read_slot(struct description *description, const struct yaml_node *node,
                                  int *slot, struct error *error) {
    const char *text = NULL;
    TRY(description_read_text(node, "tensor slot", node->line, &text, error));
    for (int i = 0; i < description->slot_count; i++) {
        if (strcmp(description->slots[i].name, text) == 0) {
            description->slots[i].used = true;
            *slot = i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_BAD_INPUT, "line %d: '%s' is not a slot under 'tensors'",
                     node->line, text);
}

enum status description_read_choice(const struct yaml_node *node, const char *what,
                                    const char *const *names, int *choice, struct error *error) {
    const char *text = NULL;
    char list[256];
    TRY(description_read_text(node, what, node->line, &text, error));
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], text) == 0) {
            *choice = i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "line %d: '%s' is not a value of '%s' (there are: %s)", node->line, text, what,
                     list_names(names, list, sizeof list));
}

enum status description_read_texts(const struct yaml_node *node, const char *what,
                                   struct arena *arena, const char ***texts, size_t *count,
                                   struct error *error) {
    bool single = node->kind == YAML_SCALAR;
    if (node->kind == YAML_MAPPING)
        return error_set(error, STATUS_BAD_INPUT, "line %d: '%s' must be a text or a list of texts",
                         node->line, what);
    *count = single ? 1 : node->count;
    *texts = arena_calloc(arena, *count + 1, sizeof **texts);
    if (*texts == NULL)
        return error_no_memory(error, "a model description");
    for (size_t i = 0; i < *count; i++) {
        const struct yaml_node *item = single ? node : node->values[i];
        TRY(description_read_text(item, what, item->line, &(*texts)[i], error));
    }
    return STATUS_OK;
}

static enum status parse_match(struct description *description, const struct yaml_node *node,
                               struct arena *arena, struct error *error) {
    static const char *const formats[] = {"gguf", NULL};
    static const char *const keys[] = {"general.architecture", NULL};
    TRY(description_check_keys(node, "match", formats, error));
    const struct yaml_node *gguf = yaml_find(node, "gguf");
    if (gguf == NULL)
        return STATUS_OK;
    TRY(description_check_keys(gguf, "match for gguf", keys, error));
    const struct yaml_node *names = yaml_find(gguf, "general.architecture");
    if (names == NULL)
        return STATUS_OK;
    return description_read_texts(names, "general.architecture", arena, &description->architectures,
                                  &description->architecture_count, error);
}

static enum status parse_refuse(struct description *description, const struct yaml_node *node,
                                struct arena *arena, struct error *error) {
    TRY(expect_kind(node, YAML_MAPPING, "refuse", error));
    description->refusals = arena_calloc(arena, node->count + 1, sizeof *description->refusals);
    if (description->refusals == NULL)
        return error_no_memory(error, "a model description");
    for (size_t i = 0; i < node->count; i++) {
        description->refusals[i].key = node->keys[i]->scalar;
        TRY(description_read_text(node->values[i], "reason", node->values[i]->line,
                                  &description->refusals[i].reason, error));
    }
    description->refusal_count = node->count;
    return STATUS_OK;
}

/* An optional number of a rope or layer kind: absent leaves the default that is already there. */
static enum status read_optional(const struct description *description,
                                 const struct yaml_node *mapping, const char *key,
                                 struct expression *expression, struct error *error) {
    const struct yaml_node *node = yaml_find(mapping, key);
    if (node == NULL)
        return STATUS_OK;
    return description_read_expression(description, node, key, expression, error);
}

static enum status read_required(const struct description *description,
                                 const struct yaml_node *mapping, const char *key,
                                 struct expression *expression, struct error *error) {
    if (yaml_find(mapping, key) == NULL)
        return error_set(error, STATUS_BAD_INPUT, "line %d: '%s' is missing", mapping->line, key);
    return read_optional(description, mapping, key, expression, error);
}

static enum status parse_scaling(const struct description *description,
                                 struct description_rope *rope, const struct yaml_node *node,
                                 struct error *error) {
    static const char *const keys[] = {
        "type", "factor", "original_context", "gain", "beta_fast", "beta_slow", NULL};
    TRY(description_check_keys(node, "scaling", keys, error));
    TRY(description_read_text(yaml_find(node, "type"), "type", node->line, &rope->scaling_type,
                              error));
    rope->gain = expression_constant(1);
    rope->beta_fast = expression_constant(32);
    rope->beta_slow = expression_constant(1);
    TRY(read_required(description, node, "factor", &rope->factor, error));
    TRY(read_required(description, node, "original_context", &rope->original_context, error));
    TRY(read_optional(description, node, "gain", &rope->gain, error));
    TRY(read_optional(description, node, "beta_fast", &rope->beta_fast, error));
    return read_optional(description, node, "beta_slow", &rope->beta_slow, error);
}

static enum status parse_rope(struct description *description, struct description_rope *rope,
                              const struct yaml_node *node, struct error *error) {
    static const char *const keys[] = {"pairing", "dims", "base", "divisors", "scaling", NULL};
    static const char *const pairings[] = {"none", "adjacent", "halves", NULL};
    int pairing = 0;
    TRY(description_check_keys(node, "rope", keys, error));
    const struct yaml_node *pairing_node = yaml_find(node, "pairing");
    if (pairing_node == NULL)
        return error_set(error, STATUS_BAD_INPUT, "line %d: 'pairing' is missing", node->line);
    TRY(description_read_choice(pairing_node, "pairing", pairings, &pairing, error));
    rope->pairing = (enum rope_pairing)pairing;
    TRY(read_required(description, node, "dims", &rope->dims, error));
    TRY(read_required(description, node, "base", &rope->base, error));
    const struct yaml_node *divisors = yaml_find(node, "divisors");
    rope->divisors = -1;
    if (divisors != NULL)
        TRY(description_read_slot(description, divisors, &rope->divisors, error));
    const struct yaml_node *scaling = yaml_find(node, "scaling");
    return scaling == NULL ? STATUS_OK : parse_scaling(description, rope, scaling, error);
}

static enum status parse_ropes(struct description *description, const struct yaml_node *node,
                               struct arena *arena, struct error *error) {
    TRY(expect_kind(node, YAML_MAPPING, "ropes", error));
    description->ropes = arena_calloc(arena, node->count + 1, sizeof *description->ropes);
    if (description->ropes == NULL)
        return error_no_memory(error, "a model description");
    for (size_t i = 0; i < node->count; i++) {
        struct description_rope *rope = &description->ropes[i];
        rope->name = node->keys[i]->scalar;
        rope->line = node->keys[i]->line;
        TRY(parse_rope(description, rope, node->values[i], error));
        description->rope_count++;
    }
    return STATUS_OK;
}

static enum status parse_kind(struct description *description, struct description_layer_kind *kind,
                              const struct yaml_node *node, struct error *error) {
    static const char *const keys[] = {"every", "window", "rope", NULL};
    const char *rope = NULL;
    TRY(description_check_keys(node, "layer kind", keys, error));
    kind->every = expression_constant(1);
    kind->window = expression_constant(0);
    TRY(read_optional(description, node, "every", &kind->every, error));
    TRY(read_optional(description, node, "window", &kind->window, error));
    TRY(description_read_text(yaml_find(node, "rope"), "rope", node->line, &rope, error));
    for (kind->rope = 0; kind->rope < description->rope_count; kind->rope++)
        if (strcmp(description->ropes[kind->rope].name, rope) == 0)
            return STATUS_OK;
    return error_set(error, STATUS_BAD_INPUT, "line %d: '%s' is not under 'ropes'", node->line,
                     rope);
}

static enum status parse_kinds(struct description *description, const struct yaml_node *node,
                               struct arena *arena, struct error *error) {
    TRY(expect_kind(node, YAML_MAPPING, "layer_kinds", error));
    description->kinds = arena_calloc(arena, node->count + 1, sizeof *description->kinds);
    if (description->kinds == NULL)
        return error_no_memory(error, "a model description");
    for (size_t i = 0; i < node->count; i++) {
        struct description_layer_kind *kind = &description->kinds[i];
        kind->name = node->keys[i]->scalar;
        kind->line = node->keys[i]->line;
        TRY(parse_kind(description, kind, node->values[i], error));
        description->kind_count++;
    }
    return STATUS_OK;
}

static enum status check_slots_used(const struct description *description, struct error *error) {
    for (int i = 0; i < description->slot_count; i++)
        if (!description->slots[i].used)
            return error_set(error, STATUS_BAD_INPUT, "line %d: no op or rope uses slot '%s'",
                             description->slots[i].line, description->slots[i].name);
    return STATUS_OK;
}

static enum status parse_required(struct description *description, const struct yaml_node *root,
                                  struct arena *arena, struct error *error) {
    static const char *const required[] = {"config", "tensors", "ropes", "layer_kinds", "model"};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (yaml_find(root, required[i]) == NULL)
            return error_set(error, STATUS_BAD_INPUT, "line %d: '%s' is missing", root->line,
                             required[i]);
    TRY(description_config_parse(description, yaml_find(root, "config"), arena, error));
    TRY(description_config_parse_tensors(description, yaml_find(root, "tensors"), arena, error));
    TRY(parse_ropes(description, yaml_find(root, "ropes"), arena, error));
    TRY(parse_kinds(description, yaml_find(root, "layer_kinds"), arena, error));
    TRY(description_ops_parse(description, yaml_find(root, "model"), arena, error));
    return check_slots_used(description, error);
}

static enum status parse_root(struct description *description, const struct yaml_node *root,
                              struct arena *arena, struct error *error) {
    static const char *const keys[] = {"family",      "match",   "refuse",  "config", "ropes",
                                       "layer_kinds", "tensors", "ignored", "model",  NULL};
    TRY(description_check_keys(root, "a model description", keys, error));
    TRY(description_read_text(yaml_find(root, "family"), "family", root->line, &description->family,
                              error));
    const struct yaml_node *match = yaml_find(root, "match");
    if (match != NULL)
        TRY(parse_match(description, match, arena, error));
    const struct yaml_node *refuse = yaml_find(root, "refuse");
    if (refuse != NULL)
        TRY(parse_refuse(description, refuse, arena, error));
    const struct yaml_node *ignored = yaml_find(root, "ignored");
    if (ignored != NULL)
        TRY(description_read_texts(ignored, "ignored", arena, &description->ignored,
                                   &description->ignored_count, error));
    return parse_required(description, root, arena, error);
}

enum status description_parse(const char *bytes, size_t length, struct arena *arena,
                              struct description **description, struct error *error) {
    struct yaml_node *root;
    TRY(yaml_parse(bytes, length, arena, &root, error));
    *description = arena_calloc(arena, 1, sizeof **description);
    if (*description == NULL)
        return error_no_memory(error, "a model description");
    return parse_root(*description, root, arena, error);
}

bool description_matches(const struct description *description, const char *architecture) {
    for (size_t i = 0; i < description->architecture_count; i++)
        if (strcmp(description->architectures[i], architecture) == 0)
            return true;
    return false;
}
