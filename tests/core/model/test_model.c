/* Models: what a well-formed file gives, and files that lack, add or twist something. All are made
 * from one small llama, whose recipe a test edits before it is written. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/model.h"
#include "core/model/model_name.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/folder.h"
#include "tests/support/gguf_builder.h"

enum { ENTRIES_MAX = 40 };

struct number {
    const char *key;
    uint32_t type; /* of enum gguf_type: U32, F32 or STRING */
    double value;
    const char *text;
};

struct weight {
    const char *name;
    uint32_t dim_count;
    uint64_t dims[2];
};

struct recipe {
    struct number numbers[ENTRIES_MAX];
    int number_count;
    struct weight weights[ENTRIES_MAX];
    int weight_count;
};

static const struct recipe small = {
    .numbers =
        {
            {"general.architecture", GGUF_STRING, 0, "llama"},
            {"llama.block_count", GGUF_U32, 2, NULL},
            {"llama.embedding_length", GGUF_U32, 32, NULL},
            {"llama.attention.head_count", GGUF_U32, 4, NULL},
            {"llama.attention.head_count_kv", GGUF_U32, 2, NULL},
            {"llama.feed_forward_length", GGUF_U32, 48, NULL},
            {"llama.context_length", GGUF_U32, 128, NULL},
            {"llama.attention.layer_norm_rms_epsilon", GGUF_F32, 1e-5, NULL},
        },
    .number_count = 8,
    .weights =
        {
            {"token_embd.weight", 2, {32, 16}},        {"output_norm.weight", 1, {32, 1}},
            {"blk.0.attn_norm.weight", 1, {32, 1}},    {"blk.0.attn_q.weight", 2, {32, 32}},
            {"blk.0.attn_k.weight", 2, {32, 16}},      {"blk.0.attn_v.weight", 2, {32, 16}},
            {"blk.0.attn_output.weight", 2, {32, 32}}, {"blk.0.ffn_norm.weight", 1, {32, 1}},
            {"blk.0.ffn_gate.weight", 2, {32, 48}},    {"blk.0.ffn_up.weight", 2, {32, 48}},
            {"blk.0.ffn_down.weight", 2, {48, 32}},    {"blk.1.attn_norm.weight", 1, {32, 1}},
            {"blk.1.attn_q.weight", 2, {32, 32}},      {"blk.1.attn_k.weight", 2, {32, 16}},
            {"blk.1.attn_v.weight", 2, {32, 16}},      {"blk.1.attn_output.weight", 2, {32, 32}},
            {"blk.1.ffn_norm.weight", 1, {32, 1}},     {"blk.1.ffn_gate.weight", 2, {32, 48}},
            {"blk.1.ffn_up.weight", 2, {32, 48}},      {"blk.1.ffn_down.weight", 2, {48, 32}},
        },
    .weight_count = 20,
};

TestSuite(model, .init = folder_enter, .fini = folder_leave);

static struct number *number_of(struct recipe *recipe, const char *key) {
    for (int i = 0; i < recipe->number_count; i++)
        if (strcmp(recipe->numbers[i].key, key) == 0)
            return &recipe->numbers[i];
    recipe->numbers[recipe->number_count] = (struct number){.key = key};
    return &recipe->numbers[recipe->number_count++];
}

static void set(struct recipe *recipe, const char *key, uint32_t type, double value) {
    *number_of(recipe, key) = (struct number){key, type, value, NULL};
}

static void set_text(struct recipe *recipe, const char *key, const char *text) {
    *number_of(recipe, key) = (struct number){key, GGUF_STRING, 0, text};
}

static struct weight *weight_of(struct recipe *recipe, const char *name) {
    for (int i = 0; i < recipe->weight_count; i++)
        if (strcmp(recipe->weights[i].name, name) == 0)
            return &recipe->weights[i];
    recipe->weights[recipe->weight_count] = (struct weight){.name = name};
    return &recipe->weights[recipe->weight_count++];
}

static void add_number(struct gguf_builder *builder, const struct number *number) {
    if (number->type == GGUF_STRING)
        gguf_builder_string(builder, number->key, number->text);
    else if (number->type == GGUF_F32)
        gguf_builder_value(builder, number->key, GGUF_F32, &(float){(float)number->value}, 4);
    else
        gguf_builder_u32(builder, number->key, (uint32_t)number->value);
}

/* F32 tensors whose values are all 1.5. */
static void add_weight(struct gguf_builder *builder, const struct weight *weight) {
    size_t count = (size_t)(weight->dims[0] * weight->dims[1]);
    float *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = 1.5f;
    gguf_builder_tensor(builder, weight->name, weight->dim_count, weight->dims, QUANT_F32, values,
                        count * sizeof *values);
    free(values);
}

static void start(struct gguf_builder *builder, const struct recipe *recipe) {
    gguf_builder_init(builder);
    for (int i = 0; i < recipe->number_count; i++)
        if (recipe->numbers[i].key[0] != '\0')
            add_number(builder, &recipe->numbers[i]);
    for (int i = 0; i < recipe->weight_count; i++)
        if (recipe->weights[i].name[0] != '\0')
            add_weight(builder, &recipe->weights[i]);
}

static void write_model(const struct recipe *recipe, const char *path) {
    struct gguf_builder builder;
    start(&builder, recipe);
    gguf_builder_write(&builder, path);
    gguf_builder_deinit(&builder);
}

static struct model *open_recipe(const struct recipe *recipe) {
    struct model *model;
    struct error error = {0};
    write_model(recipe, "Small Llama-Q4_K_M.gguf");
    cr_assert_eq(model_open("Small Llama-Q4_K_M.gguf", NULL, &model, &error), STATUS_OK, "%s",
                 error.text);
    return model;
}

static void expect_refused(const struct recipe *recipe, enum status wanted, const char *message) {
    struct model *model;
    struct error error = {0};
    write_model(recipe, "m.gguf");
    enum status status = model_open("m.gguf", NULL, &model, &error);
    cr_expect_eq(status, wanted, "%s: %s, not %s", message, error_status_name(status),
                 error_status_name(wanted));
    cr_expect_not_null(strstr(error.text, message), "wanted '%s', got '%s'", message, error.text);
    cr_expect_not_null(strstr(error.text, "'m.gguf'"), "%s", error.text);
    cr_expect_null(model);
}

Test(model, a_small_llama_is_compiled_in_full) {
    struct model *model = open_recipe(&small);
    cr_expect_str_eq(model->family, "llama");
    cr_expect_str_eq(model->name, "small-llama");
    cr_expect_eq(model->layer_count, 2);
    cr_expect_eq(model->head_dim, 8);
    cr_expect_eq(model->vocab_count, 16);
    cr_expect_eq(model->context_max, 128);
    cr_expect_eq(model->op_count, 1 + 2 * 6 + 2);
    cr_expect_eq(model->linear_count, 2 * 4 + 1);
    cr_expect_eq(model->kv_group_count, 1);
    cr_expect_eq(model->kv_groups[0].layer_count, 2);
    int64_t layer = 2 * 32 + 2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 48;
    cr_expect_eq(model->parameter_count, 16 * 32 + 32 + 2 * layer);
    cr_expect_eq(model->weight_bytes, 4 * (uint64_t)model->parameter_count);
    cr_expect_eq(model_kv_bytes_per_token(model, 2), 2u * 2 * 8 * 2);
    model_close(model);
}

Test(model, ops_carry_what_backends_need) {
    struct model *model = open_recipe(&small);
    const struct op *second = &model->ops[1 + 6 + 1];
    cr_assert_eq(second->kind, OP_ATTENTION);
    cr_expect_eq(second->layer, 1);
    cr_expect_eq(second->attention.layer_in_group, 1);
    cr_expect_eq(second->attention.qkv.id, 4);
    cr_expect_eq(second->attention.qkv.out, 64);
    cr_expect_str_eq(second->attention.qkv.parts[2]->name, "blk.1.attn_v.weight");
    cr_expect_null(second->attention.qkv.biases[0]);
    cr_expect_eq(second->attention.scale, 1 / sqrtf(8));
    cr_expect_eq(second->attention.rope->pairing, ROPE_ADJACENT);
    cr_expect_eq(second->attention.rope->dims, 8);
    cr_expect_eq(second->attention.rope->frequencies[0], 1);
    cr_expect_float_eq(second->attention.rope->frequencies[1], 0.1, 1e-12);
    const struct op *last = &model->ops[model->op_count - 1];
    cr_assert_eq(last->kind, OP_LOGITS);
    cr_expect_eq(last->layer, -1);
    cr_expect_str_eq(last->logits.head.parts[0]->name, "token_embd.weight", "tied");
    cr_expect_eq(last->logits.head.id, 8);
    model_close(model);
}

Test(model, optional_tensors_are_taken_when_there) {
    struct recipe recipe = small;
    *weight_of(&recipe, "output.weight") = (struct weight){"output.weight", 2, {32, 16}};
    *weight_of(&recipe, "blk.0.attn_q.bias") = (struct weight){"blk.0.attn_q.bias", 1, {32, 1}};
    *weight_of(&recipe, "rope_freqs.weight") = (struct weight){"rope_freqs.weight", 1, {4, 1}};
    struct model *model = open_recipe(&recipe);
    const struct op *attention = &model->ops[2];
    cr_expect_str_eq(attention->attention.qkv.biases[0]->name, "blk.0.attn_q.bias");
    cr_expect_float_eq(attention->attention.rope->frequencies[1], 0.1 / 1.5, 1e-12);
    cr_expect_str_eq(model->ops[model->op_count - 1].logits.head.parts[0]->name, "output.weight");
    model_close(model);
}

Test(model, missing_tensors_are_named_with_their_shape) {
    for (int i = 0; i < small.weight_count; i++) {
        struct recipe recipe = small;
        char message[128];
        snprintf(message, sizeof message, "tensor '%s' is missing", recipe.weights[i].name);
        recipe.weights[i].name = "";
        expect_refused(&recipe, STATUS_CORRUPT, message);
    }
    struct recipe recipe = small;
    weight_of(&recipe, "blk.1.attn_k.weight")->name = "";
    expect_refused(&recipe, STATUS_CORRUPT,
                   "description 'llama' expects it (slot 'layer.k') with shape [16, 32]");
}

Test(model, misshapen_tensors_are_named_with_both_shapes) {
    struct recipe recipe = small;
    weight_of(&recipe, "blk.1.ffn_down.weight")->dims[0] = 32;
    expect_refused(&recipe, STATUS_CORRUPT,
                   "tensor 'blk.1.ffn_down.weight' (slot 'layer.down'): shape [32, 48] was "
                   "expected, found [32, 32]");
    recipe = small;
    *weight_of(&recipe, "output_norm.weight") = (struct weight){"output_norm.weight", 2, {32, 2}};
    expect_refused(&recipe, STATUS_CORRUPT, "shape [32] was expected, found [2, 32]");
}

Test(model, foreign_tensors_are_named) {
    struct recipe recipe = small;
    *weight_of(&recipe, "blk.0.x") = (struct weight){"blk.0.x", 1, {32, 1}};
    expect_refused(&recipe, STATUS_CORRUPT,
                   "tensor 'blk.0.x' is in the file, but description 'llama' has no slot for it");
    recipe.weights[recipe.weight_count - 1].name = "blk.2.attn_norm.weight";
    expect_refused(&recipe, STATUS_CORRUPT, "tensor 'blk.2.attn_norm.weight' is in the file");
    recipe.weights[recipe.weight_count - 1].name = "blk.01.attn_rot_embd";
    expect_refused(&recipe, STATUS_CORRUPT, "tensor 'blk.01.attn_rot_embd' is in the file");
    recipe.weights[recipe.weight_count - 1].name = "blk.1.attn_rot_embd";
    model_close(open_recipe(&recipe));
}

Test(model, hostile_metadata_is_refused) {
    static const struct {
        const char *key;
        uint32_t type;
        double value;
        const char *message;
    } cases[] = {
        {"llama.block_count", GGUF_U32, 0, "'layers' must be from 1 to 4096, found 0"},
        {"llama.block_count", GGUF_U32, 4097, "'layers' must be from 1 to 4096, found 4097"},
        {"llama.block_count", GGUF_U32, 4294967295.0, "'layers' must be from 1 to 4096"},
        {"llama.block_count", GGUF_F32, 1.5, "'layers' must be a whole number, found 1.5"},
        {"llama.block_count", GGUF_F32, NAN, "'layers' must be from 1 to 4096, found"},
        {"llama.block_count", GGUF_F32, -INFINITY, "'layers' must be from 1 to 4096"},
        {"llama.block_count", GGUF_U32, 1, "tensor 'blk.1.attn_norm.weight' is in the file"},
        {"llama.block_count", GGUF_U32, 3, "tensor 'blk.2.attn_norm.weight' is missing"},
        {"llama.embedding_length", GGUF_U32, 33, "'width' must be a multiple of 2, found 33"},
        {"llama.embedding_length", GGUF_U32, 1 << 30, "'width' must be from 2 to 131072"},
        {"llama.attention.head_count", GGUF_U32, 0, "'heads' must be from 1 to 1024"},
        {"llama.attention.head_count", GGUF_U32, 3, "'head_dim' must be a multiple of 2"},
        {"llama.attention.head_count_kv", GGUF_U32, 3, "'heads' must be a multiple of 'kv_heads'"},
        {"llama.attention.key_length", GGUF_U32, 1024, "'head_dim' must be from 2 to 512"},
        {"llama.attention.key_length", GGUF_U32, 7, "'head_dim' must be a multiple of 2"},
        {"llama.feed_forward_length", GGUF_U32, 4294967295.0, "'ffn_width' must be from 2 to"},
        {"llama.context_length", GGUF_U32, 0, "'context' must be from 1 to 16777216"},
        {"llama.rope.dimension_count", GGUF_U32, 10, "'dims' must be from 2 to 8, found 10"},
        {"llama.rope.dimension_count", GGUF_U32, 3, "'dims' must be a multiple of 2"},
        {"llama.rope.freq_base", GGUF_F32, 0, "'base' must be from 1.0001"},
        {"llama.rope.freq_base", GGUF_F32, -10, "'base' must be from 1.0001"},
        {"llama.rope.freq_base", GGUF_F32, INFINITY, "'rope_base' must be from"},
        {"llama.rope.scaling.factor", GGUF_F32, 0, "'factor' must be from 1e-06"},
        {"llama.attention.layer_norm_rms_epsilon", GGUF_F32, -1, "'epsilon' must be from 0 to 1"},
        {"llama.attention.layer_norm_rms_epsilon", GGUF_F32, NAN, "'norm_epsilon' must be from"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct recipe recipe = small;
        set(&recipe, cases[i].key, cases[i].type, cases[i].value);
        expect_refused(&recipe, STATUS_CORRUPT, cases[i].message);
    }
}

Test(model, missing_and_mistyped_metadata_are_named) {
    for (int i = 1; i < small.number_count; i++) {
        struct recipe recipe = small;
        char message[128];
        if (strcmp(recipe.numbers[i].key, "llama.attention.head_count_kv") == 0)
            continue; /* has a default */
        snprintf(message, sizeof message, "metadata '%s' is missing", recipe.numbers[i].key);
        recipe.numbers[i].key = "";
        expect_refused(&recipe, STATUS_CORRUPT, message);
    }
    struct recipe recipe = small;
    set_text(&recipe, "llama.block_count", "two");
    expect_refused(&recipe, STATUS_CORRUPT, "metadata 'llama.block_count' must be a number");
    recipe = small;
    set(&recipe, "general.architecture", GGUF_U32, 1);
    expect_refused(&recipe, STATUS_CORRUPT, "'general.architecture' must be a text");
    set_text(&recipe, "general.architecture", "lla\nma");
    expect_refused(&recipe, STATUS_CORRUPT, "'general.architecture' must be plain ASCII");
}

Test(model, per_layer_arrays_must_agree) {
    struct gguf_builder builder;
    struct recipe recipe = small;
    struct model *model;
    struct error error = {0};
    number_of(&recipe, "llama.attention.head_count_kv")->key = "";
    start(&builder, &recipe);
    gguf_builder_array(&builder, "llama.attention.head_count_kv", GGUF_I32, 2,
                       (const int32_t[]){2, 2}, 8);
    gguf_builder_write(&builder, "same.gguf");
    gguf_builder_deinit(&builder);
    cr_assert_eq(model_open("same.gguf", NULL, &model, &error), STATUS_OK, "%s", error.text);
    cr_expect_eq(model->kv_head_count, 2);
    model_close(model);
    start(&builder, &recipe);
    gguf_builder_array(&builder, "llama.attention.head_count_kv", GGUF_I32, 2,
                       (const int32_t[]){2, 1}, 8);
    gguf_builder_write(&builder, "other.gguf");
    gguf_builder_deinit(&builder);
    cr_expect_eq(model_open("other.gguf", NULL, &model, &error), STATUS_UNSUPPORTED);
    cr_expect_not_null(strstr(error.text, "differs between layers (2, then 1 in layer 1)"), "%s",
                       error.text);
}

Test(model, what_is_not_supported_is_named) {
    struct recipe recipe = small;
    set_text(&recipe, "general.architecture", "falcon");
    expect_refused(&recipe, STATUS_UNSUPPORTED,
                   "architecture 'falcon' is unknown (built in: gemma3, llama, qwen2, qwen3); "
                   "--architecture FILE");
    recipe = small;
    set(&recipe, "llama.expert_count", GGUF_U32, 8);
    expect_refused(&recipe, STATUS_UNSUPPORTED, "mixtures of experts are not supported");
    set(&recipe, "llama.expert_count", GGUF_U32, 0);
    model_close(open_recipe(&recipe));
    set_text(&recipe, "llama.rope.scaling.type", "longrope");
    expect_refused(&recipe, STATUS_UNSUPPORTED,
                   "rope scaling 'longrope' is not supported (there are: none, linear, yarn)");
}

Test(model, rope_scaling_follows_the_file) {
    static const struct {
        const char *type, *key;
        double value, wanted;
    } cases[] = {
        {NULL, "llama.rope.scale_linear", 4, 0.025},
        {NULL, "llama.rope.scaling.factor", 4, 0.025},
        {"linear", "llama.rope.scaling.factor", 2, 0.05},
        {"none", "llama.rope.scaling.factor", 2, 0.1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct recipe recipe = small;
        if (cases[i].type != NULL)
            set_text(&recipe, "llama.rope.scaling.type", cases[i].type);
        set(&recipe, cases[i].key, GGUF_F32, cases[i].value);
        struct model *model = open_recipe(&recipe);
        const struct rope *rope = model->ops[2].attention.rope;
        cr_expect_float_eq(rope->frequencies[1], cases[i].wanted, 1e-12);
        cr_expect_eq(rope->magnitude, 1);
        model_close(model);
    }
}

/* The user's own file: taken whatever is built in, checked against its match list. */
Test(model, own_descriptions) {
    struct model *model;
    struct error error = {0};
    const char *own = SHEAF_SOURCE_DIR "/core/model/families/llama.yaml";
    const char *other = SHEAF_SOURCE_DIR "/core/model/families/qwen2.yaml";
    write_model(&small, "m.gguf");
    cr_assert_eq(model_open("m.gguf", own, &model, &error), STATUS_OK, "%s", error.text);
    model_close(model);
    cr_expect_eq(model_open("m.gguf", other, &model, &error), STATUS_BAD_INPUT);
    cr_expect_not_null(strstr(error.text, "is for architecture 'qwen2', the model says 'llama'"),
                       "%s", error.text);
    cr_expect_eq(model_open("m.gguf", "none.yaml", &model, &error), STATUS_NOT_FOUND);
    cr_expect_not_null(strstr(error.text, "none.yaml"), "%s", error.text);
    folder_write_text("bad.yaml", "family: x\nfamiliar: y\n");
    cr_expect_eq(model_open("m.gguf", "bad.yaml", &model, &error), STATUS_BAD_INPUT);
    cr_expect_not_null(strstr(error.text, "'bad.yaml': line 2: "), "%s", error.text);
    folder_write_text("empty.yaml", "");
    cr_expect_neq(model_open("m.gguf", "empty.yaml", &model, &error), STATUS_OK);
    cr_expect_not_null(strstr(error.text, "empty.yaml"), "%s", error.text);
}

Test(model, every_failed_allocation_is_an_error) {
    bool failed;
    int n = 0;
    write_model(&small, "m.gguf");
    do {
        struct model *model;
        struct error error = {0};
        failing_malloc_arm(++n);
        enum status status = model_open("m.gguf", NULL, &model, &error);
        failed = failing_malloc_disarm();
        cr_assert_eq(status, failed ? STATUS_NO_MEMORY : STATUS_OK, "allocation %d: %s", n,
                     error.text);
        model_close(model);
    } while (failed);
    cr_expect_gt(n, 5, "%d allocations", n - 1);
}

/* Whatever a damaged header says, it is refused with a reason or makes a model of checked numbers.
 */
Test(model, any_header_byte_changed_never_faults) {
    struct gguf_builder builder;
    size_t length, header;
    start(&builder, &small);
    uint8_t *bytes = gguf_builder_finish(&builder, &length, &header);
    for (size_t i = 0; i < header; i++) {
        static const uint8_t changes[] = {0x01, 0x80, 0xff, 0x20, 0x07};
        struct model *model;
        struct error error = {0};
        bytes[i] ^= changes[i % sizeof changes];
        folder_write("m.gguf", bytes, length);
        enum status status = model_open("m.gguf", NULL, &model, &error);
        cr_expect((status == STATUS_OK) == (model != NULL));
        cr_expect((status == STATUS_OK) == (error.text[0] == '\0'), "byte %zu: %s", i, error.text);
        model_close(model);
        bytes[i] ^= changes[i % sizeof changes];
    }
    free(bytes);
    gguf_builder_deinit(&builder);
}

Test(model, names_come_from_file_names) {
    static const struct {
        const char *path, *name;
    } cases[] = {
        {"/m/SmolLM2-135M-Instruct-Q4_1.gguf", "smollm2-135m-instruct"},
        {"qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "qwen2.5-coder-0.5b-instruct"},
        {"a/b/Meta Llama 3.1.IQ4_XS.gguf", "meta-llama-3.1"},
        {"gemma-3-270m-BF16-00001-of-00002.GGUF", "gemma-3-270m"},
        {"llama-3", "llama-3"},
        {"Q4_0.gguf", "q4_0"},
        {".gguf", ".gguf"},
        {"q-fp16.gguf", "q"},
        {"phi-quiet.gguf", "phi-quiet"},
    };
    char name[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model_name_from_path(cases[i].path, name, sizeof name);
        cr_expect_str_eq(name, cases[i].name, "%s gives %s", cases[i].path, name);
    }
    char few[5];
    model_name_from_path("abc\xc3\xa9", few, sizeof few);
    cr_expect_str_eq(few, "abc", "no half character");
}
