/* Descriptions: the built-in ones parse; each kind of slip in a user's own is named with its line.
 * Slips are made by replacing one piece of the built-in llama description. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/model/description.h"
#include "core/model/families.h"

static struct arena arena;

static void begin(void) {
    arena_init(&arena, 1 << 16, 1 << 24);
}

static void end(void) {
    arena_deinit(&arena);
}

TestSuite(description, .init = begin, .fini = end);

static const struct family_source *family(const char *name) {
    for (size_t i = 0; i < families_count; i++)
        if (strcmp(families_table[i].name, name) == 0)
            return &families_table[i];
    cr_assert_fail("no family '%s'", name);
    return NULL;
}

static enum status parse(const char *yaml, size_t length, struct description **description,
                         struct error *error) {
    *description = NULL;
    return description_parse(yaml, length, &arena, description, error);
}

/* llama.yaml with the first `old` replaced; the line (1-based) where it stood goes to *line. */
static char *edited(const char *old, const char *new, int *line) {
    const struct family_source *source = family("llama");
    char *text = malloc(source->length + strlen(new) + 1);
    memcpy(text, source->bytes, source->length);
    text[source->length] = '\0';
    char *found = strstr(text, old);
    cr_assert_not_null(found, "'%s' is not in llama.yaml", old);
    *line = 1;
    for (char *at = text; at < found; at++)
        *line += *at == '\n';
    size_t rest = strlen(found + strlen(old)) + 1;
    memmove(found + strlen(new), found + strlen(old), rest);
    memcpy(found, new, strlen(new));
    return text;
}

Test(description, all_families_parse_and_match_themselves) {
    static const char *const expected[] = {"gemma3", "llama", "qwen2", "qwen3"};
    cr_assert_eq(families_count, 4);
    for (size_t i = 0; i < families_count; i++) {
        struct description *description;
        struct error error = {0};
        const struct family_source *source = &families_table[i];
        cr_expect_str_eq(source->name, expected[i]);
        enum status status = parse(source->bytes, source->length, &description, &error);
        cr_assert_eq(status, STATUS_OK, "%s: %s", source->name, error.text);
        cr_expect_str_eq(description->family, source->name);
        cr_expect(description_matches(description, source->name));
        cr_expect_not(description_matches(description, "falcon"));
    }
}

Test(description, llama_is_read_in_full) {
    struct description *description;
    struct error error = {0};
    const struct family_source *source = family("llama");
    cr_assert_eq(parse(source->bytes, source->length, &description, &error), STATUS_OK);
    cr_expect_eq(description->op_count, 9);
    cr_expect_eq(description->layer_first, 1);
    cr_expect_eq(description->layer_end, 7);
    cr_expect_eq(description->ops[2].kind, OP_ATTENTION);
    cr_expect_eq(description->ropes[0].pairing, ROPE_ADJACENT);
    cr_expect_eq(description->refusal_count, 1);
    cr_expect_eq(description->ignored_count, 2);
    const struct description_config *layers = &description->configs[description->known[0]];
    cr_expect_str_eq(layers->name, "layers");
    cr_expect_str_eq(layers->keys[0], "{arch}.block_count");
}

struct slip {
    const char *old, *new, *message;
    int line_shift; /* where the error is, from where the edit is */
};

static void expect_slips(const struct slip *slips, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct description *description;
        struct error error = {0};
        char place[32];
        int line;
        char *yaml = edited(slips[i].old, slips[i].new, &line);
        snprintf(place, sizeof place, "line %d:", line + slips[i].line_shift);
        enum status status = parse(yaml, strlen(yaml), &description, &error);
        cr_expect_eq(status, STATUS_BAD_INPUT, "'%s' was accepted", slips[i].new);
        cr_expect_not_null(strstr(error.text, slips[i].message), "'%s': %s", slips[i].new,
                           error.text);
        cr_expect_not_null(strstr(error.text, place), "'%s': not %s but %s", slips[i].new, place,
                           error.text);
        free(yaml);
    }
}
#define EXPECT_SLIPS(slips) expect_slips(slips, sizeof(slips) / sizeof *(slips))

Test(description, slips_at_the_top) {
    static const struct slip slips[] = {
        {"refuse:", "refuses:", "a model description has no key 'refuses' (there are: family,", 0},
        {"family: llama", "family: [llama]", "'family' must be a text", 0},
        {"match: {gguf:", "match: {onnx:", "match has no key 'onnx' (there are: gguf)", 0},
        {"{general.architecture: llama}", "{general.name: llama}", "no key 'general.name'", 0},
        {"mixtures of experts", "[mixtures]", "'reason' must be a text", 0},
        {"  all: {rope: main}", "  all: {rope: other}", "'other' is not under 'ropes'", 0},
        {"  all: {rope: main}", "  all: {windows: 4, rope: main}", "layer kind has no key", 0},
        {"  all: {rope: main}", "  all: {window: 4}", "'rope' is missing", 0},
        {"  all: {rope: main}", "  all: {every: depth, rope: main}", "'depth' is not in", 0},
    };
    EXPECT_SLIPS(slips);
}

Test(description, slips_in_config) {
    static const struct slip slips[] = {
        {"{gguf: \"{arch}.block_count\"}", "{ggml: x}", "config entry has no key 'ggml'", 0},
        {"{gguf: \"{arch}.block_count\"}", "{}", "'layers' needs gguf, rows or default", 0},
        {"{gguf: \"{arch}.block_count\"}", "{gguf: {a: b}}", "must be a text or a list of texts",
         0},
        {"{gguf: \"{arch}.block_count\"}", "block_count", "a config entry must be a mapping", 0},
        {"default: width / heads", "default: width / depth", "'depth' is not in the config", 0},
        {"default: heads", "default: head_dim", "'head_dim' is not in the config above", 0},
        {"default: heads", "default: kv_heads", "'kv_heads' is not in the config above", 0},
        {"default: heads", "when: {layers: 2}, default: 1", "need each other", 0},
        {"default: heads", "when: {depth: 2}, then: 1", "'depth' is not in the config", 0},
        {"default: heads", "when: {layers: two}, then: 1", "must be {name: number}", 0},
        {"default: heads", "when: {2: 2}, then: 1", "must be {name: number}", 0},
        {"  vocab:", "  vocabulary:", "config has no 'vocab'", -6},
    };
    EXPECT_SLIPS(slips);
}

Test(description, slips_in_ropes) {
    static const struct slip slips[] = {
        {"pairing: adjacent", "pairing: neox", "'neox' is not a value of 'pairing' (there are:", 0},
        {"    pairing: adjacent\n", "", "'pairing' is missing", 0},
        {"    dims: rope_dims\n", "", "'dims' is missing", -1},
        {"divisors: rope_freqs", "divisors: freqs", "'freqs' is not a slot under 'tensors'", 0},
        {"base: rope_base", "bases: rope_base", "rope has no key 'bases'", 0},
        {"{type: \"{arch}.rope.scaling.type\", factor: rope_factor,", "{factor: rope_factor,",
         "'type' is missing", 0},
        {"factor: rope_factor, ", "", "'factor' is missing", 0},
    };
    EXPECT_SLIPS(slips);
}

Test(description, slips_in_tensors) {
    static const struct slip slips[] = {
        {"shape: [vocab, width]}", "shapes: [vocab, width]}", "a tensor slot has no key", 0},
        {"shape: [vocab, width]}", "shape: [vocab, width, 2]}", "needs a shape", 0},
        {"shape: [vocab, width]}", "shape: [vocab, depth]}", "'depth' is not in the config", 0},
        {"tied_to: embedding", "tied_to: final_norm", "'final_norm' is not a slot", 0},
        {"tied_to: embedding", "optional: perhaps", "'optional' must be true or false", 0},
        {"\"blk.{i}.attn_norm.weight\"", "\"blk.attn_norm.weight\"", "exactly when", 0},
        {"  head:  ", "  layer.head:  ", "exactly when", 0},
        {"  final_norm:", "  spare: {gguf: spare, shape: [width]}\n  final_norm:",
         "no op or rope uses slot 'spare'", 0},
    };
    EXPECT_SLIPS(slips);
}

Test(description, slips_in_ops) {
    static const struct slip slips[] = {
        {"op: add_residual", "op: add", "'add' is not a value of 'op' (there are: embed, norm,", 0},
        {"{op: add_residual}", "{residual: 1}", "an op must be a mapping with 'op'", 0},
        {"{op: add_residual}", "add_residual", "an op must be a mapping with 'op'", 0},
        {"{op: add_residual}", "{op: add_residual, scale: 2}", "op add_residual has no key", 0},
        {"weight: layer.mlp_norm", "weights: layer.mlp_norm", "op norm has no key 'weights'", 0},
        {"weight: layer.mlp_norm,", "", "op 'norm' needs 'weight'", 0},
        {"weight: layer.mlp_norm", "weight: layer.norm", "'layer.norm' is not a slot", 0},
        {"activation: silu", "activation: relu", "'relu' is not a value of 'activation'", 0},
        {"activation: silu, ", "", "op 'mlp' needs 'activation'", 0},
        {"k: layer.k, v:", "v:", "needs either q, k and v, or qkv", 0},
        {"gate: layer.gate, ", "", "needs either gate and up, or gate_up", 0},
        {"weight: final_norm", "weight: layer.mlp_norm", "belongs to a layer, the op does not", 0},
        {"scale: 1 / sqrt(head_dim)", "softcap: 1", "op 'attention' needs 'scale'", -1},
        {"  - {op: embed, table: embedding}\n", "", "must begin with its only 'embed'", 0},
        {"  - {op: logits, head: head}", "  - {op: add_residual}", "end with its only", -11},
        {"  - layers:", "  - layer:", "an op must be a mapping with 'op'", 0},
    };
    EXPECT_SLIPS(slips);
}

Test(description, one_attention_a_layer) {
    struct description *description;
    struct error error = {0};
    int line;
    char *yaml = edited("    - {op: add_residual}",
                        "    - {op: attention, q: layer.q, k: layer.k, v: layer.v, out: layer.out, "
                        "scale: 1}",
                        &line);
    cr_expect_eq(parse(yaml, strlen(yaml), &description, &error), STATUS_BAD_INPUT);
    cr_expect_not_null(strstr(error.text, "must have one 'attention', inside"), "%s", error.text);
    free(yaml);
}

Test(description, a_description_cut_at_any_byte_is_an_error) {
    const struct family_source *source = family("gemma3");
    for (size_t length = 0; length < source->length - 1; length += 13) {
        struct description *description;
        struct error error = {0};
        arena_reset(&arena);
        enum status status = parse(source->bytes, length, &description, &error);
        cr_expect_neq(status, STATUS_OK, "%zu bytes", length);
        cr_expect_neq(error.text[0], '\0');
    }
}

Test(description, any_single_byte_changed_never_faults) {
    const struct family_source *source = family("llama");
    char *copy = malloc(source->length);
    for (size_t i = 0; i < source->length; i += 7) {
        struct description *description;
        struct error error = {0};
        memcpy(copy, source->bytes, source->length);
        copy[i] = "{}[]:,'\"\n \0x9"[i % 14];
        arena_reset(&arena);
        enum status status = parse(copy, source->length, &description, &error);
        cr_expect((status == STATUS_OK) == (error.text[0] == '\0'), "byte %zu", i);
    }
    free(copy);
}
