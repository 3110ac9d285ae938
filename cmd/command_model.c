/* `sheaf model info`: what a model file holds, as sheaf understands it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/commands.h"
#include "cmd/exit_code.h"
#include "cmd/runtime.h"
#include "core/base/json.h"
#include "core/model/model_tokenizer.h"

enum { TYPES_MAX = 32 };

struct type_count {
    const char *name;
    long long tensors;
    uint64_t bytes;
};

static int count_types(const struct gguf *gguf, struct type_count *types) {
    int count = 0;
    for (size_t i = 0; i < gguf_tensor_count(gguf); i++) {
        const struct tensor *tensor = gguf_tensor_at(gguf, i);
        int place = 0;
        while (place < count && strcmp(types[place].name, tensor->type->name) != 0)
            place++;
        if (place == TYPES_MAX)
            continue;
        if (place == count)
            types[count++] = (struct type_count){.name = tensor->type->name};
        types[place].tensors++;
        types[place].bytes += tensor->byte_count;
    }
    return count;
}

static json_t *kv_array(const struct model *model) {
    json_t *groups = json_array();
    for (int i = 0; i < model->kv_group_count; i++)
        json_array_append_new(groups, json_pack("{s:i, s:i, s:I}", "layers",
                                                model->kv_groups[i].layer_count, "window",
                                                model->kv_groups[i].window, "bytes_per_token_bf16",
                                                (json_int_t)model_kv_bytes_per_token(model, 2)));
    return groups;
}

static json_t *describe(const struct runtime *runtime) {
    const struct model *model = runtime->model;
    struct type_count types[TYPES_MAX];
    int type_count = count_types(model->gguf, types);
    json_t *tensors = json_object();
    for (int i = 0; i < type_count; i++)
        json_object_set_new(tensors, types[i].name,
                            json_pack("{s:I, s:I}", "tensors", (json_int_t)types[i].tensors,
                                      "bytes", (json_int_t)types[i].bytes));
    const struct tokenizer *tokenizer = runtime->tokenizer;
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:s, "
        "s:i, s:i, s:b}",
        "name", model->name, "family", model->family, "path", runtime->model_path, "sha256",
        runtime->sha256, "parameters", (json_int_t)model->parameter_count, "weight_bytes",
        (json_int_t)model->weight_bytes, "layers", model->layer_count, "width", model->width,
        "heads", model->head_count, "kv_heads", model->kv_head_count, "head_dim", model->head_dim,
        "ffn_width", model->ffn_width, "vocabulary", model->vocab_count, "context",
        model->context_max, "kv_groups", kv_array(model), "tensors", tensors, "splitter",
        tokenizer_splitter_name(tokenizer), "bos", tokenizer_bos(tokenizer), "eos",
        tokenizer_eos(tokenizer), "chat_template",
        model_tokenizer_template(model->gguf).length > 0);
}

static void print_plain(const json_t *description) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)description, key, value) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_PRESERVE_ORDER);
        bool is_text = json_is_string(value);
        printf("%-13s %s\n", key, is_text ? json_string_value(value) : text ? text : "");
        free(text);
    }
}

static enum status open_all(struct runtime *runtime, struct error *error) {
    TRY(runtime_open_model(runtime, error));
    TRY(runtime_open_tokenizer(runtime, error));
    return model_id_sha256(runtime->model->gguf, runtime->sha256, error);
}

int command_model(const struct settings *settings, const struct path_list *inputs,
                  struct arena *arena) {
    struct error error;
    if (inputs->count != 1 || strcmp(inputs->items[0], "info") != 0) {
        fprintf(stderr, "sheaf: say 'sheaf model info --model FILE'\n");
        return EXIT_NOT_STARTED;
    }
    struct runtime runtime;
    runtime_init(&runtime, settings, arena);
    enum status status = open_all(&runtime, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "sheaf: %s\n", error.text);
    } else {
        json_t *description = describe(&runtime);
        if (settings->json)
            json_dumpf(description, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
        else
            print_plain(description);
        if (settings->json)
            printf("\n");
        json_decref(description);
    }
    runtime_deinit(&runtime);
    return status == STATUS_OK ? EXIT_ALL_DONE : EXIT_NOT_STARTED;
}
