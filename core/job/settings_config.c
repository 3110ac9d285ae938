/* YAML job files and suggestions for mistyped options. A job file holds options by their long
 * names; lists are repeated options; `input` lists documents. */
#include "core/job/settings.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/file_map.h"
#include "core/base/yaml.h"

/* What other programs call our options. */
static const struct {
    const char *theirs;
    const char *ours;
} familiar[] = {
    {"ctx-size", "context"},
    {"n-predict", "max-tokens"},
    {"predict", "max-tokens"},
    {"temp", "temperature"},
    {"max-model-len", "context"},
    {"max-new-tokens", "max-tokens"},
    {"cache-type-k", "kv-dtype"},
    {"cache-type-v", "kv-dtype"},
    {"kv-cache-dtype", "kv-dtype"},
    {"input-file", "files-from"},
    {"file", "files-from"},
    {"batch-size", "batch-tokens"},
    {"ubatch-size", "batch-tokens"},
    {"parallel", "max-sequences"},
    {"max-num-seqs", "max-sequences"},
    {"max-num-batched-tokens", "batch-tokens"},
    {"output-file", "output"},
    {"system-prompt", "system"},
    {"enable-prefix-caching", "prefix-cache"},
    {"repetition-penalty", "repeat-penalty"},
    {"gpu-layers", "device"},
    {"ngl", "device"},
    {"n-gpu-layers", "device"},
};

/* Edits (insert, delete, replace) to get from a to b; long names are not compared. */
static int edit_distance(const char *a, const char *b) {
    enum { LENGTH_MAX = 32 };
    int row[LENGTH_MAX + 1];
    int a_length = (int)strlen(a), b_length = (int)strlen(b);
    if (a_length > LENGTH_MAX || b_length > LENGTH_MAX)
        return LENGTH_MAX;
    for (int j = 0; j <= b_length; j++)
        row[j] = j;
    for (int i = 1; i <= a_length; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= b_length; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_length];
}

const char *settings_config_suggest_familiar(const char *name) {
    for (size_t i = 0; i < sizeof familiar / sizeof familiar[0]; i++) {
        if (strcmp(name, familiar[i].theirs) == 0)
            return familiar[i].ours;
    }
    return NULL;
}

const char *settings_config_suggest(const char *name) {
    const char *ours = settings_config_suggest_familiar(name);
    if (ours)
        return ours;
    const char *closest = NULL;
    int distance_max = strlen(name) > 5 ? 3 : 2;
    for (size_t i = 0; i < settings_option_count(); i++) {
        int distance = edit_distance(name, settings_option_at(i)->name);
        if (distance < distance_max) {
            distance_max = distance;
            closest = settings_option_at(i)->name;
        }
    }
    return closest;
}

static enum status assign_node(struct settings *settings, const struct option *option,
                               const struct yaml_node *node, struct arena *arena,
                               struct error *error) {
    if (node->kind == YAML_SCALAR)
        return settings_assign(settings, option, node->scalar, arena, error);
    if (node->kind == YAML_SEQUENCE && option->kind == OPTION_TEXT_LIST) {
        for (size_t i = 0; i < node->count; i++) {
            if (node->values[i]->kind != YAML_SCALAR)
                return error_set(error, STATUS_BAD_INPUT, "'%s' must be a list of texts",
                                 option->name);
            TRY(settings_assign(settings, option, node->values[i]->scalar, arena, error));
        }
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT, "'%s' must be a single value", option->name);
}

static enum status add_inputs(const struct yaml_node *node, struct path_list *inputs,
                              struct arena *arena, struct error *error) {
    size_t count = node->kind == YAML_SCALAR ? 1 : node->count;
    if (node->kind == YAML_MAPPING)
        return error_set(error, STATUS_BAD_INPUT, "'input' must be a path or a list of paths");
    for (size_t i = 0; i < count; i++) {
        const struct yaml_node *item = node->kind == YAML_SCALAR ? node : node->values[i];
        if (item->kind != YAML_SCALAR)
            return error_set(error, STATUS_BAD_INPUT, "'input' must be a path or a list of paths");
        TRY(settings_add_path(inputs, item->scalar, arena, error));
    }
    return STATUS_OK;
}

static enum status unknown_key(const char *key, struct error *error) {
    const char *suggestion = settings_config_suggest(key);
    if (suggestion && strcmp(suggestion, key) != 0)
        return error_set(error, STATUS_BAD_INPUT, "unknown key '%s': did you mean '%s'?", key,
                         suggestion);
    return error_set(error, STATUS_BAD_INPUT, "unknown key '%s'", key);
}

/* Where a job file's options go. */
struct target {
    struct settings *settings;
    const bool *is_set; /* by the command line, which wins */
    struct path_list *inputs;
    unsigned command;
    struct arena *arena;
};

static enum status apply_pair(const struct target *target, const struct yaml_node *key,
                              const struct yaml_node *value, struct error *error) {
    if (strcmp(key->scalar, "input") == 0)
        return add_inputs(value, target->inputs, target->arena, error);
    size_t index = 0;
    const struct option *option = settings_option_find(key->scalar, key->scalar_length, &index);
    if (!option || strcmp(option->name, "config") == 0 || strcmp(option->name, "help") == 0 ||
        strcmp(option->name, "version") == 0)
        return unknown_key(key->scalar, error);
    /* A job file may serve run and plan alike: options of another command are checked, not used. */
    bool used = (option->commands & target->command) != 0 && !target->is_set[index];
    struct settings ignored = *target->settings;
    return assign_node(used ? target->settings : &ignored, option, value, target->arena, error);
}

static enum status apply_document(const struct target *target, const struct yaml_node *root,
                                  struct error *error) {
    if (root->kind != YAML_MAPPING)
        return error_set(error, STATUS_BAD_INPUT, "a job file is a mapping of option names");
    for (size_t i = 0; i < root->count; i++) {
        if (apply_pair(target, root->keys[i], root->values[i], error) != STATUS_OK)
            return error_context(error, "line %d", root->keys[i]->line);
    }
    return STATUS_OK;
}

enum status settings_config_load(struct settings *settings, const char *path, const bool *is_set,
                                 struct path_list *inputs, unsigned command, struct arena *arena,
                                 struct error *error) {
    const struct target target = {settings, is_set, inputs, command, arena};
    struct file_map map;
    TRY(file_map_open(&map, path, error));
    struct yaml_node *root = NULL;
    enum status status = yaml_parse((const char *)map.bytes, map.length, arena, &root, error);
    if (status == STATUS_OK)
        status = apply_document(&target, root, error);
    file_map_close(&map);
    if (status != STATUS_OK)
        return error_context(error, "'%s'", path);
    return STATUS_OK;
}
