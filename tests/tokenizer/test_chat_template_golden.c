/* Templates render as Python's jinja2 renders them (scripts/make_template_golden.py), and survive
 * being cut anywhere. SHEAF_TEMPLATE_GOLDENS names another file of goldens, made from templates of
 * one's own. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/json.h"
#include "tokenizer/chat_template.h"

enum { MESSAGES_MAX = 16, TEXT_MAX = 1 << 24 };

static const char *const own_goldens = SHEAF_SOURCE_DIR "/tests/golden/templates/goldens.json";

static json_t *load(const char *path) {
    json_error_t error;
    json_t *goldens = json_load_file(path, JSON_ALLOW_NUL, &error);
    cr_assert_not_null(goldens, "'%s': %s", path, error.text);
    return goldens;
}

static struct view view_of_json(const json_t *string) {
    return (struct view){json_string_value(string), json_string_length(string)};
}

/* A conversation as the engine takes it. */
struct conversation {
    struct chat_message messages[MESSAGES_MAX];
    struct marked_text contents[MESSAGES_MAX];
    size_t count;
};

static void fill(struct conversation *conversation, const json_t *messages) {
    conversation->count = json_array_size(messages);
    cr_assert_leq(conversation->count, MESSAGES_MAX);
    for (size_t i = 0; i < conversation->count; i++) {
        const json_t *message = json_array_get(messages, i);
        struct view content = view_of_json(json_object_get(message, "content"));
        struct marked_text *marked = &conversation->contents[i];
        marked_text_init(marked, TEXT_MAX);
        cr_assert(content.length == 0 ||
                  marked_text_append(marked, content.bytes, content.length, ORIGIN_DOCUMENT));
        conversation->messages[i].role = json_string_value(json_object_get(message, "role"));
        conversation->messages[i].content = marked;
    }
}

static void empty(struct conversation *conversation) {
    for (size_t i = 0; i < conversation->count; i++)
        marked_text_deinit(&conversation->contents[i]);
}

static enum status render(const json_t *goldens, struct view source, const json_t *messages,
                          struct marked_text *out, struct error *error) {
    struct conversation conversation;
    struct chat_template *parsed;
    enum status status = chat_template_parse(source, &parsed, error);
    if (status != STATUS_OK)
        return status;
    fill(&conversation, messages);
    struct chat_variables variables = {
        .messages = conversation.messages,
        .message_count = conversation.count,
        .bos_token = view_of_json(json_object_get(goldens, "bos_token")),
        .eos_token = view_of_json(json_object_get(goldens, "eos_token")),
        .add_generation_prompt = true,
        .date = json_integer_value(json_object_get(goldens, "date"))};
    status = chat_template_render(parsed, &variables, out, error);
    empty(&conversation);
    chat_template_destroy(parsed);
    return status;
}

static void check_case(const json_t *goldens, const json_t *template, const char *name,
                       const json_t *result) {
    struct marked_text out;
    struct error error = {0};
    marked_text_init(&out, TEXT_MAX);
    const char *title = json_string_value(json_object_get(template, "name"));
    const json_t *messages = json_object_get(json_object_get(goldens, "conversations"), name);
    enum status status =
        render(goldens, view_of_json(json_object_get(template, "source")), messages, &out, &error);
    const json_t *text = json_object_get(result, "text");
    if (!text) {
        cr_expect_neq(status, STATUS_OK, "%s over %s must fail: %s", title, name,
                      json_string_value(json_object_get(result, "error")));
        cr_expect_eq(out.text.length, 0, "%s over %s left output behind", title, name);
    } else if (status != STATUS_OK) {
        cr_expect_fail("%s over %s: %s", title, name, error.text);
    } else {
        cr_expect(view_equal(text_view(&out.text), view_of_json(text)),
                  "%s over %s:\ngot  <%.*s>\nwant <%s>", title, name, (int)out.text.length,
                  out.text.bytes ? out.text.bytes : "", json_string_value(text));
    }
    marked_text_deinit(&out);
}

static void check_goldens(const char *path) {
    json_t *goldens = load(path);
    size_t index;
    json_t *template;
    size_t cases = 0;
    json_array_foreach(json_object_get(goldens, "templates"), index, template) {
        const char *name;
        json_t *result;
        json_object_foreach(json_object_get(template, "results"), name, result) {
            check_case(goldens, template, name, result);
            cases++;
        }
    }
    cr_assert_gt(cases, 0);
    json_decref(goldens);
}

Test(chat_template_golden, renders_as_jinja2_does) {
    check_goldens(own_goldens);
}

Test(chat_template_golden, renders_templates_of_the_user) {
    const char *path = getenv("SHEAF_TEMPLATE_GOLDENS");
    if (!path)
        cr_skip("SHEAF_TEMPLATE_GOLDENS is not set");
    check_goldens(path);
}

/* Every prefix parses or is refused with a line, and what parses renders or fails cleanly. */
static void cut_everywhere(const json_t *goldens, const json_t *template) {
    struct view source = view_of_json(json_object_get(template, "source"));
    const json_t *messages = json_object_get(json_object_get(goldens, "conversations"), "turns");
    struct marked_text out;
    marked_text_init(&out, TEXT_MAX);
    for (size_t length = 0; length <= source.length; length++) {
        struct error error = {0};
        char *exact = malloc(length + 1); /* ends where the memory ends, for ASan */
        cr_assert_not_null(exact);
        memcpy(exact + 1, source.bytes, length);
        enum status status =
            render(goldens, (struct view){exact + 1, length}, messages, &out, &error);
        cr_expect(status == STATUS_OK || error.text[0] != '\0');
        free(exact);
    }
    marked_text_deinit(&out);
}

Test(chat_template_golden, survives_being_cut_anywhere) {
    const char *path = getenv("SHEAF_TEMPLATE_GOLDENS");
    json_t *goldens = load(path ? path : own_goldens);
    size_t index;
    json_t *template;
    json_array_foreach(json_object_get(goldens, "templates"), index, template) {
        cut_everywhere(goldens, template);
    }
    json_decref(goldens);
}
