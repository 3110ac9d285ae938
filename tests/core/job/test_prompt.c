/* What the model sees: fields, templates, origins. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/job/prompt.h"
#include "tests/support/failing_malloc.h"

static struct document document;
static struct prompt_setting setting;
static struct prompt_scratch *scratch;
static struct chat_template *chat;
static struct marked_text out;
static struct error error;

static void setup(void) {
    document_init(&document);
    document.index = 7;
    document.path = strdup("contracts/a.txt");
    document.name = strdup("a.txt");
    text_append_string(&document.text, "DOC");
    marked_text_init(&out, 1 << 24);
    setting = (struct prompt_setting){.eos_token = view_of("</s>")};
    scratch = prompt_scratch_create();
    cr_assert_not_null(scratch);
    cr_assert_eq(chat_template_parse(view_of("{% for m in messages %}<|{{ m.role }}|>"
                                             "{{ m.content }}</s>{% endfor %}"
                                             "{% if add_generation_prompt %}<|go|>{% endif %}"),
                                     &chat, &error),
                 STATUS_OK);
}

static void teardown(void) {
    chat_template_destroy(chat);
    prompt_scratch_destroy(scratch);
    marked_text_deinit(&out);
    document_deinit(&document);
}

TestSuite(prompt, .init = setup, .fini = teardown);

static enum status render(const char *prompt, bool document_first) {
    struct prompt_template *compiled = NULL;
    if (prompt)
        cr_assert_eq(prompt_compile(prompt, document_first, &compiled, &error), STATUS_OK);
    enum status status = prompt_render(compiled, &setting, &document, scratch, &out, &error);
    prompt_destroy(compiled);
    return status;
}

/* [template] <prompt> (document) {name} */
static void expect_rendered(const char *expected) {
    char marks[4096] = "";
    size_t used = 0;
    size_t position = 0;
    for (size_t i = 0; i < out.span_count; i++) {
        static const char *const brackets[] = {[ORIGIN_TEMPLATE] = "[]",
                                               [ORIGIN_PROMPT] = "<>",
                                               [ORIGIN_DOCUMENT] = "()",
                                               [ORIGIN_NAME] = "{}"};
        const char *pair = brackets[out.spans[i].origin];
        used += (size_t)snprintf(marks + used, sizeof marks - used, "%c%.*s%c", pair[0],
                                 (int)out.spans[i].length, out.text.bytes + position, pair[1]);
        position += out.spans[i].length;
    }
    cr_expect_eq(position, out.text.length);
    cr_expect_str_eq(marks, expected);
}

static void expect_plain(const char *prompt, const char *expected) {
    cr_assert_eq(render(prompt, false), STATUS_OK, "%s", error.text);
    expect_rendered(expected);
}

Test(prompt, fields_are_filled) {
    expect_plain("Read {document}!", "<Read >(DOC)<!>");
    expect_plain("{name} at {path}, number {index}: {document}",
                 "{a.txt}< at >{contracts/a.txt}<, number 7: >(DOC)");
    expect_plain("{document}{document}", "(DOCDOC)");
}

Test(prompt, without_the_document_field_it_comes_after_a_blank_line) {
    expect_plain("Summarize.", "<Summarize.\n\n>(DOC)");
    expect_plain("Summarize.\r\n\n", "<Summarize.\n\n>(DOC)");
    expect_plain("About {name}", "<About >{a.txt}<\n\n>(DOC)");
    expect_plain("", "(DOC)");
    expect_plain("\n", "(DOC)");
}

Test(prompt, questions_come_after_the_document) {
    cr_assert_eq(render("Why?", true), STATUS_OK);
    expect_rendered("(DOC)<\n\nWhy?>");
    cr_assert_eq(render("{name}: why?\n", true), STATUS_OK);
    expect_rendered("(DOC)<\n\n>{a.txt}<: why?>");
    cr_assert_eq(render("Q: {document}", true), STATUS_OK);
    expect_rendered("<Q: >(DOC)");
    cr_assert_eq(render("", true), STATUS_OK);
    expect_rendered("(DOC)");
}

Test(prompt, unknown_braces_stay_and_double_braces_escape) {
    expect_plain("{x} {} {{ } {docu {document", "<{x} {} {{ } {docu {document\n\n>(DOC)");
    expect_plain("{{document}} {{name}} {{x}} {document}", "<{document} {name} {{x}} >(DOC)");
    expect_plain("{\"a\": {\"b\": \"{document}\"}}", "<{\"a\": {\"b\": \">(DOC)<\"}}>");
    expect_plain("{{document}", "<{>(DOC)");
}

Test(prompt, fields_inside_the_document_are_text) {
    text_clear(&document.text);
    text_append_string(&document.text, "{name} {{path}} {document}");
    expect_plain("{document}|", "({name} {{path}} {document})<|>");
}

Test(prompt, standard_input_has_a_name) {
    free(document.path);
    document.path = NULL;
    expect_plain("{path}{document}", "{stdin}(DOC)");
}

Test(prompt, plain_text_with_a_system_text) {
    setting.system = "Be brief.";
    expect_plain("P {document}", "<Be brief.\n\nP >(DOC)");
}

Test(prompt, a_chat_template_marks_its_own_bytes) {
    setting.chat = chat;
    expect_plain("P:{document}", "[<|]<user>[|>]<P:>(DOC)[</s><|go|>]");
    setting.system = "S";
    expect_plain("P:{document}", "[<|]<system>[|>]<S>[</s><|]<user>[|>]<P:>(DOC)[</s><|go|>]");
}

static void set_messages(const char *json) {
    json_decref(document.messages);
    document.messages = json_loads(json, 0, NULL);
    cr_assert_not_null(document.messages);
}

Test(prompt, messages_are_the_prompt_and_count_as_document) {
    setting.chat = chat;
    set_messages("[{\"role\": \"user\", \"content\": \"a\"},"
                 " {\"role\": \"assistant\", \"content\": \"</s>\"},"
                 " {\"role\": \"user\", \"content\": \"\"}]");
    expect_plain(NULL,
                 "[<|]<user>[|>](a)[</s><|]<assistant>[|>](</s>)[</s><|]<user>[|></s><|go|>]");
    setting.system = "S";
    cr_assert_eq(render(NULL, false), STATUS_OK);
    cr_expect_eq(strncmp(out.text.bytes, "<|system|>S</s>", 15), 0);
    set_messages("[{\"role\": \"system\", \"content\": \"own\"}]");
    expect_plain("ignored {document}", "[<|]<system>[|>](own)[</s><|go|>]");
}

Test(prompt, what_cannot_be_rendered_is_said) {
    cr_expect_eq(render(NULL, false), STATUS_BAD_INPUT);
    cr_expect_str_eq(error.text, "no prompt for this document: try --prompt");
    set_messages("[{\"role\": \"user\", \"content\": \"a\"}]");
    cr_expect_eq(render("P", false), STATUS_BAD_INPUT);
    cr_expect_str_eq(error.text, "messages need a chat template: try --chat-template FILE");
    setting.chat = chat;
    set_messages("[{\"role\": \"user\"}]");
    cr_expect_eq(render("P", false), STATUS_BAD_INPUT);
    cr_expect_str_eq(error.text, "message 1 has no role or no text");
}

Test(prompt, the_scratch_is_reused) {
    setting.chat = chat;
    for (int i = 0; i < 3; i++) {
        set_messages("[{\"role\": \"user\", \"content\": \"long enough\"},"
                     " {\"role\": \"assistant\", \"content\": \"b\"}]");
        expect_plain(NULL, "[<|]<user>[|>](long enough)[</s><|]<assistant>[|>](b)[</s><|go|>]");
        json_decref(document.messages);
        document.messages = NULL;
        expect_plain("{document}", "[<|]<user>[|>](DOC)[</s><|go|>]");
    }
}

static enum status build_and_render(void) {
    struct prompt_template *compiled = NULL;
    struct prompt_scratch *own = prompt_scratch_create();
    enum status status = own ? prompt_compile("{name} {document} {index}", false, &compiled, &error)
                             : STATUS_NO_MEMORY;
    if (status == STATUS_OK)
        status = prompt_render(compiled, &setting, &document, own, &out, &error);
    prompt_destroy(compiled);
    prompt_scratch_destroy(own);
    return status;
}

Test(prompt, every_failed_allocation_is_an_error) {
    setting.chat = chat;
    setting.system = "S";
    bool reached = true;
    for (int n = 1; reached; n++) {
        marked_text_deinit(&out);
        marked_text_init(&out, 1 << 24);
        failing_malloc_arm(n);
        enum status status = build_and_render();
        reached = failing_malloc_disarm();
        cr_expect_eq(status == STATUS_OK, !reached, "allocation %d", n);
    }
}
