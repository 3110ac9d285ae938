/* Template and document are tokenised as one string: ids equal Hugging Face's on the rendered text,
 * and a document's look-alikes of special tokens stay text (goldens: scripts/make_joint_golden.py).
 * Needs SmolLM2's vocabulary: SHEAF_MODEL_SMOLLM2 names its GGUF file. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/job/length.h"
#include "core/job/prompt.h"
#include "core/model/model_tokenizer.h"

static const char *const goldens_path =
    SHEAF_SOURCE_DIR "/tests/golden/templates/joint_smollm2.json";

struct joint {
    struct gguf *gguf;
    struct tokenizer *tokenizer;
    struct tokenizer_scratch *scratch;
    struct chat_template *chat;
    struct prompt_template *prompt;
    struct prompt_scratch *prompt_scratch;
    struct marked_text text;
    struct token_list list;
    struct error error;
};

static void open_joint(struct joint *joint, const char *model) {
    *joint = (struct joint){0};
    struct error *error = &joint->error;
    cr_assert_eq(gguf_open(model, &joint->gguf, error), STATUS_OK, "%s", error->text);
    cr_assert_eq(model_tokenizer_create(joint->gguf, &joint->tokenizer, error), STATUS_OK);
    cr_assert_eq(chat_template_parse(model_tokenizer_template(joint->gguf), &joint->chat, error),
                 STATUS_OK, "%s", error->text);
    cr_assert_eq(prompt_compile("Summarize: {document}", false, &joint->prompt, error), STATUS_OK);
    joint->scratch = tokenizer_scratch_create();
    joint->prompt_scratch = prompt_scratch_create();
    cr_assert(joint->scratch && joint->prompt_scratch);
    marked_text_init(&joint->text, 1 << 24);
}

static void close_joint(struct joint *joint) {
    marked_text_deinit(&joint->text);
    token_list_deinit(&joint->list);
    prompt_scratch_destroy(joint->prompt_scratch);
    tokenizer_scratch_destroy(joint->scratch);
    prompt_destroy(joint->prompt);
    chat_template_destroy(joint->chat);
    tokenizer_destroy(joint->tokenizer);
    gguf_close(joint->gguf);
}

static void encode(struct joint *joint, const json_t *text) {
    struct document document;
    struct prompt_setting setting = {.chat = joint->chat};
    struct tokenizer_options options = {0};
    document_init(&document);
    text_append(&document.text, json_string_value(text), json_string_length(text));
    cr_assert_eq(prompt_render(joint->prompt, &setting, &document, joint->prompt_scratch,
                               &joint->text, &joint->error),
                 STATUS_OK, "%s", joint->error.text);
    cr_assert_eq(tokenizer_encode(joint->tokenizer, &joint->text, &options, joint->scratch,
                                  &joint->list, &joint->error),
                 STATUS_OK, "%s", joint->error.text);
    document_deinit(&document);
}

static void expect_ids(const struct joint *joint, const json_t *test) {
    const json_t *ids = json_object_get(test, "ids");
    const char *text = json_string_value(json_object_get(test, "document"));
    cr_expect_eq(joint->list.count, json_array_size(ids), "<%s>", text);
    for (size_t i = 0; i < joint->list.count && i < json_array_size(ids); i++) {
        if (joint->list.ids[i] == json_integer_value(json_array_get(ids, i)))
            continue;
        cr_expect_fail("<%s>: id %zu is %d", text, i, joint->list.ids[i]);
        return;
    }
}

/* Cut as short as can be, the template's and the prompt's tokens are all still there. */
static void expect_cut(struct joint *joint, enum too_long policy) {
    struct length_outcome outcome;
    long long before = (long long)joint->list.count;
    cr_assert_eq(
        length_apply(&joint->list, &joint->text, policy, 1 << 20, 1, &outcome, &joint->error),
        STATUS_OK);
    long long others = before - outcome.document_tokens;
    if (outcome.document_tokens < 8)
        return;
    cr_assert_eq(
        length_apply(&joint->list, &joint->text, policy, others + 6, 1, &outcome, &joint->error),
        STATUS_OK, "%s", joint->error.text);
    cr_expect_eq(outcome.prompt_tokens - outcome.used_tokens, others);
    cr_expect_leq(outcome.used_tokens, 5);
    cr_expect_geq(outcome.used_tokens, 1);
}

Test(joint_prompt, ids_are_those_of_the_joint_string) {
    const char *model = getenv("SHEAF_MODEL_SMOLLM2");
    if (!model)
        cr_skip("SHEAF_MODEL_SMOLLM2 is not set");
    struct joint joint;
    json_t *goldens = json_load_file(goldens_path, JSON_ALLOW_NUL, NULL);
    cr_assert_not_null(goldens);
    open_joint(&joint, model);
    size_t index;
    json_t *test;
    json_array_foreach(goldens, index, test) {
        encode(&joint, json_object_get(test, "document"));
        expect_ids(&joint, test);
        enum too_long policy = TOO_LONG_KEEP_HEAD + index % 3;
        expect_cut(&joint, policy);
    }
    close_joint(&joint);
    json_decref(goldens);
}
