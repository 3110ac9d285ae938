/* Opens a model: the GGUF file, the description that fits its architecture (a built-in one or the
 * user's), and the build steps of model_build.h in order. */
#include "core/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/file_map.h"
#include "core/base/text.h"
#include "core/model/families.h"
#include "core/model/model_build.h"
#include "core/model/model_name.h"

enum {
    ARENA_CHUNK_BYTES = 64 << 10,
    ARENA_BYTES_MAX = 1 << 30,
    DESCRIPTION_BYTES_MAX = 1 << 20,
};

static enum status read_architecture(const struct gguf *gguf, struct arena *scratch,
                                     const char **architecture, struct error *error) {
    const struct gguf_value *value = gguf_find(gguf, "general.architecture");
    struct view name;
    if (value == NULL || !gguf_read_string(value, &name) || name.length == 0 || name.length > 64)
        return error_set(error, STATUS_CORRUPT,
                         "metadata 'general.architecture' must be a text of 1 to 64 bytes");
    for (size_t i = 0; i < name.length; i++)
        if (name.bytes[i] <= ' ' || name.bytes[i] > '~')
            return error_set(error, STATUS_CORRUPT,
                             "metadata 'general.architecture' must be plain ASCII");
    *architecture = arena_copy_text(scratch, name.bytes, name.length);
    return *architecture == NULL ? error_no_memory(error, "the model") : STATUS_OK;
}

/* "gemma3, llama, qwen2", for the message about an unknown architecture. */
static void list_families(struct text *list) {
    for (size_t i = 0; i < families_count; i++)
        if (!text_append_format(list, "%s%s", i == 0 ? "" : ", ", families_table[i].name))
            return;
}

static enum status unknown_architecture(const char *architecture, struct error *error) {
    struct text list;
    text_init(&list, 512);
    list_families(&list);
    enum status status =
        error_set(error, STATUS_UNSUPPORTED,
                  "architecture '%s' is unknown (built in: %s); --architecture FILE reads a "
                  "description of your own",
                  architecture, list.bytes == NULL ? "none" : list.bytes);
    text_deinit(&list);
    return status;
}

static enum status find_builtin(const char *architecture, struct arena *scratch,
                                const struct description **description, struct error *error) {
    for (size_t i = 0; i < families_count; i++) {
        const struct family_source *source = &families_table[i];
        struct description *parsed;
        if (description_parse(source->bytes, source->length, scratch, &parsed, error) != STATUS_OK)
            return error_context(error, "built-in description '%s'", source->name);
        if (description_matches(parsed, architecture)) {
            *description = parsed;
            return STATUS_OK;
        }
    }
    return unknown_architecture(architecture, error);
}

static enum status parse_file(const struct file_map *map, struct arena *scratch,
                              struct description **description, struct error *error) {
    if (map->length == 0)
        return error_set(error, STATUS_BAD_INPUT, "the file is empty");
    if (map->length > DESCRIPTION_BYTES_MAX)
        return error_set(error, STATUS_OVER_LIMIT, "a model description has at most %d bytes",
                         DESCRIPTION_BYTES_MAX);
    return description_parse((const char *)map->bytes, map->length, scratch, description, error);
}

static enum status read_own(const char *path, const char *architecture, struct arena *scratch,
                            const struct description **description, struct error *error) {
    struct file_map map;
    struct description *parsed = NULL;
    TRY(file_map_open(&map, path, error));
    enum status status = parse_file(&map, scratch, &parsed, error);
    file_map_close(&map);
    if (status != STATUS_OK)
        return error_context(error, "'%s'", path);
    if (parsed->architecture_count > 0 && !description_matches(parsed, architecture))
        return error_set(error, STATUS_BAD_INPUT,
                         "'%s': the description is for architecture '%s', the model says '%s'",
                         path, parsed->architectures[0], architecture);
    *description = parsed;
    return STATUS_OK;
}

static enum status build_steps(struct model_build *build, struct error *error) {
    TRY(model_config_read(build, error));
    TRY(model_tensors_bind(build, error));
    TRY(model_rope_build(build, error));
    return model_compile_ops(build, error);
}

static enum status build_model(struct model *model, const char *path, const char *architecture_path,
                               struct arena *scratch, struct error *error) {
    struct model_build build = {.model = model, .scratch = scratch};
    TRY(gguf_open(path, &model->gguf, error));
    if (read_architecture(model->gguf, scratch, &build.architecture, error) != STATUS_OK)
        return error_context(error, "'%s'", path);
    if (architecture_path != NULL)
        TRY(read_own(architecture_path, build.architecture, scratch, &build.description, error));
    else if (find_builtin(build.architecture, scratch, &build.description, error) != STATUS_OK)
        return error_context(error, "'%s'", path);
    model_name_from_path(path, model->name, sizeof model->name);
    strncpy(model->family, build.description->family, sizeof model->family - 1);
    if (build_steps(&build, error) != STATUS_OK)
        return error_context(error, "'%s'", path);
    return STATUS_OK;
}

enum status model_open(const char *path, const char *architecture_path, struct model **model,
                       struct error *error) {
    struct arena scratch;
    *model = NULL;
    struct model *opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        return error_no_memory(error, "the model");
    arena_init(&opened->arena, ARENA_CHUNK_BYTES, ARENA_BYTES_MAX);
    arena_init(&scratch, ARENA_CHUNK_BYTES, ARENA_BYTES_MAX);
    enum status status = build_model(opened, path, architecture_path, &scratch, error);
    arena_deinit(&scratch);
    if (status != STATUS_OK) {
        model_close(opened);
        return status;
    }
    *model = opened;
    return STATUS_OK;
}

void model_close(struct model *model) {
    if (model == NULL)
        return;
    gguf_close(model->gguf);
    arena_deinit(&model->arena);
    free(model);
}

void model_linears_of(const struct op *op, const struct linear *linears[3]) {
    linears[0] = linears[1] = linears[2] = NULL;
    if (op->kind == OP_ATTENTION)
        linears[0] = &op->attention.qkv, linears[1] = &op->attention.out;
    else if (op->kind == OP_MLP)
        linears[0] = &op->mlp.gate_up, linears[1] = &op->mlp.down;
    else if (op->kind == OP_LOGITS)
        linears[0] = &op->logits.head;
}

uint64_t model_kv_bytes_per_token(const struct model *model, int element_bytes) {
    return 2 * (uint64_t)model->kv_head_count * (uint64_t)model->head_dim * (uint64_t)element_bytes;
}
