/* What chat templates promise beside rendering: origins, limits, errors that help. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/failing_malloc.h"
#include "tokenizer/chat_template.h"

static const size_t TEXT_MAX_BYTES = (size_t)1 << 31;

static struct marked_text out;
static struct error error;

static void setup(void) {
    marked_text_init(&out, TEXT_MAX_BYTES);
    error.text[0] = '\0';
}

static void teardown(void) {
    marked_text_deinit(&out);
}

TestSuite(chat_template, .init = setup, .fini = teardown);

static enum status render_view(const char *source, struct view content) {
    struct chat_template *parsed;
    enum status status = chat_template_parse(view_of(source), &parsed, &error);
    if (status != STATUS_OK)
        return status;
    struct marked_text text;
    marked_text_init(&text, TEXT_MAX_BYTES);
    cr_assert(content.length == 0 ||
              marked_text_append(&text, content.bytes, content.length, ORIGIN_DOCUMENT));
    struct chat_message message = {"user", &text};
    struct chat_variables variables = {
        .messages = &message, .message_count = 1, .eos_token = view_of("</s>"), .date = 1765000000};
    status = chat_template_render(parsed, &variables, &out, &error);
    marked_text_deinit(&text);
    chat_template_destroy(parsed);
    return status;
}

static enum status render(const char *source, const char *content) {
    return render_view(source, view_of(content));
}

/* Output with origins: [template] as it is, (document), <prompt>. */
static void expect_marks(const char *source, const char *content, const char *expected) {
    char marks[4096];
    size_t used = 0;
    size_t position = 0;
    cr_assert_eq(render(source, content), STATUS_OK, "%s", error.text);
    for (size_t i = 0; i < out.span_count; i++) {
        static const char *const brackets[] = {
            [ORIGIN_TEMPLATE] = "[]", [ORIGIN_PROMPT] = "<>", [ORIGIN_DOCUMENT] = "()"};
        const char *pair = brackets[out.spans[i].origin];
        used += (size_t)snprintf(marks + used, sizeof marks - used, "%c%.*s%c", pair[0],
                                 (int)out.spans[i].length, out.text.bytes + position, pair[1]);
        position += out.spans[i].length;
    }
    cr_expect_eq(position, out.text.length);
    cr_expect_str_eq(used > 0 ? marks : "", expected);
}

static void expect_error(const char *source, enum status status, const char *message) {
    cr_expect_eq(render(source, "x"), status, "%s: got %s", source, error.text);
    cr_expect_str_eq(error.text, message);
    cr_expect_eq(out.text.length, 0);
}

#define CONTENT "messages[0].content"

Test(chat_template, output_says_who_wrote_each_byte) {
    expect_marks("<|user|>{{ " CONTENT " }}<|end|>", "hi", "[<|user|>](hi)[<|end|>]");
    expect_marks("{{ '<' + " CONTENT " + '>' }}", "<b>", "[<](<b>)[>]");
    expect_marks("{{ messages[0].role }}{{ eos_token }}", "", "<user>[</s>]");
}

Test(chat_template, origins_pass_through_filters_and_methods) {
    expect_marks("{{ (' ' ~ " CONTENT " ~ ' ')|trim }}", " ab ", "(ab)");
    expect_marks("{{ ('A' + " CONTENT ")|lower }}", "BÉ", "[a](bé)");
    expect_marks("{{ ('a' + " CONTENT ")|upper }}", "bc", "[A](BC)");
    expect_marks("{{ ('a-' + " CONTENT ").split('-')|join('+') }}", "b-c", "[a+](b)[+](c)");
    expect_marks("{{ " CONTENT ".replace('a', 'xy') }}", "bab", "(b)[xy](b)");
    expect_marks("{{ ('ab' + " CONTENT ")[1:4] }}", "cdef", "[b](cd)");
    expect_marks("{{ ('ab' + " CONTENT ")[::-1] }}", "cd", "(dc)[ba]");
    expect_marks("{{ (" CONTENT " ~ '!') * 2 }}", "a", "(a)[!](a)[!]");
    expect_marks("{% set x %}<{{ " CONTENT " }}>{% endset %}{{ x }}", "a", "[<](a)[>]");
    expect_marks("{% for c in 'a' + " CONTENT " %}{{ c }};{% endfor %}", "bc", "[a;](b)[;](c)[;]");
    expect_marks("{% macro m(t) %}({{ t|title }}){% endmacro %}{{ m(" CONTENT ") }}", "ab",
                 "[(](Ab)[)]");
}

Test(chat_template, escapes_belong_to_the_text_they_escape) {
    expect_marks("{{ " CONTENT "|tojson }}", "a\"\n", "[\"](a\\\"\\n)[\"]");
    expect_marks("{{ {'k': " CONTENT "}|tojson }}", "v", "[{\"k\": \"](v)[\"}]");
    expect_marks("{{ [" CONTENT "] }}", "a\n", "[['](a\\n)[']]");
    expect_marks("{{ (" CONTENT " ~ '\\nz')|indent(2) }}", "x\ny", "(x)[\n  ](y)[\n  z]");
}

Test(chat_template, a_document_is_not_a_template) {
    expect_marks("{{ " CONTENT " }}", "{{ 1 }}{% x %}{# c #}", "({{ 1 }}{% x %}{# c #})");
}

Test(chat_template, refuses_what_it_cannot_do_when_parsing) {
    expect_error("a\n\n{% include 'x' %}", STATUS_UNSUPPORTED,
                 "chat template line 3: {% include %} is not supported here");
    expect_error("{% for x in y recursive %}{% endfor %}", STATUS_UNSUPPORTED,
                 "chat template line 1: recursive for loops are not supported");
    expect_error("\n{{ x|xmlattr }}", STATUS_UNSUPPORTED,
                 "chat template line 2: filter 'xmlattr' is not supported");
    expect_error("{{ x is weird }}", STATUS_UNSUPPORTED,
                 "chat template line 1: test 'weird' is not supported");
    expect_error("{{ f(*x) }}", STATUS_UNSUPPORTED,
                 "chat template line 1: starred arguments are not supported");
    expect_error("{% if x %}", STATUS_UNSUPPORTED,
                 "chat template line 1: the template ends before {% endif %}");
    expect_error("{{ 1 +", STATUS_UNSUPPORTED,
                 "chat template line 1: expected a name, got the end of the template");
}

Test(chat_template, unknown_filters_in_branches_fail_when_reached) {
    expect_marks("{% if tools %}{{ tools|from_json }}{% endif %}ok", "", "[ok]");
    expect_error("{% if true %}{{ 1|from_json }}{% endif %}", STATUS_BAD_INPUT,
                 "chat template line 1: filter 'from_json' is not supported");
}

Test(chat_template, exceptions_carry_the_templates_message) {
    expect_error("text{{ raise_exception('roles must alternate') }}", STATUS_BAD_INPUT,
                 "roles must alternate");
    expect_error("{{ a.b }}", STATUS_BAD_INPUT, "chat template line 1: 'a' is undefined");
    expect_error("\n{{ messages[0].tool.name }}", STATUS_BAD_INPUT,
                 "chat template line 2: 'dict object' has no attribute 'tool'");
    expect_error("{{ messages.append(1) }}", STATUS_BAD_INPUT,
                 "chat template line 1: access to attribute 'append' of 'list' object is unsafe");
}

Test(chat_template, endless_templates_are_stopped) {
    static const char *const sources[] = {
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set n = namespace(a='x') %}{% for i in range(99) %}{% set n.a = n.a ~ n.a %}"
        "{% endfor %}{{ n.a }}",
        "{{ 'a'|replace('', 'b' * 10000000)|replace('b', 'c' * 10000000) }}",
        "{{ 'x' * 9223372036854775 }}",
        "{{ [1] * 922337203685477 }}",
        "{% set n = namespace(a='x' * 1000000) %}{% for i in range(99999) %}"
        "{% if n.a|length > 9 %}{% endif %}{% endfor %}",
        "{% for i in range(99999) %}{{ 'x' * 10000 }}{% endfor %}",
    };
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        cr_expect_eq(render(sources[i], ""), STATUS_OVER_LIMIT, "%s: %s", sources[i], error.text);
        cr_expect_eq(out.text.length, 0);
    }
}

/* `before`, then `part` n times, then `after`; to be freed. */
static char *repeated(const char *before, const char *part, size_t count, const char *after) {
    struct text text;
    text_init(&text, 1 << 24);
    bool fine = text_append_string(&text, before);
    for (size_t i = 0; i < count; i++)
        fine = fine && text_append_string(&text, part);
    cr_assert(fine && text_append_string(&text, after));
    return text.bytes;
}

Test(chat_template, deep_templates_are_refused) {
    static const struct {
        const char *before, *part, *after;
    } cases[] = {
        {"{{ ", "(", ""},           {"{{ ", "[", ""},       {"{{ ", "not ", "1 }}"},
        {"{{ ", "-", "1 }}"},       {"{{ 1", "+1", " }}"},  {"{{ x", ".a", " }}"},
        {"{{ 1", "|string", " }}"}, {"", "{% if 1 %}", ""}, {"{{ 1", " if 1 else 1", " }}"},
        {"{% for ", "(", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *source = repeated(cases[i].before, cases[i].part, 20000, cases[i].after);
        cr_expect_neq(render(source, ""), STATUS_OK, "%s", cases[i].part);
        free(source);
    }
}

Test(chat_template, large_documents_pass_in_one_copy) {
    enum { LENGTH = 100000000 };
    char *content = malloc(LENGTH);
    cr_assert_not_null(content);
    memset(content, 'a', LENGTH);
    content[0] = content[LENGTH - 1] = ' ';
    cr_assert_eq(render_view("{% set n = namespace(t='') %}{% for m in messages %}"
                             "{% set n.t = n.t + '<' + m['content']|trim + '>' + '\n' %}"
                             "{% endfor %}{{ n.t }}",
                             (struct view){content, LENGTH}),
                 STATUS_OK, "%s", error.text);
    cr_expect_eq(out.text.length, (size_t)LENGTH - 2 + 3);
    cr_expect_eq(out.span_count, 3);
    free(content);
}

Test(chat_template, bytes_that_are_not_text_pass_unchanged) {
    expect_marks("{{ " CONTENT "|trim }}|{{ " CONTENT "|length }}", "\xff\xc3 \xe6\xad ",
                 "(\xff\xc3 \xe6\xad)[|6]");
}

Test(chat_template, every_failed_allocation_is_an_error) {
    const char *source =
        "{% macro m(t) %}{{ t|upper ~ [t] }}{% endmacro %}{% for m in messages %}"
        "{{ m.content.split('a')|join('-')|tojson }}{{ m }}{% endfor %}{{ m('x') }}";
    int n = 1;
    for (bool reached = true; reached; n++) {
        struct chat_template *parsed = NULL;
        struct marked_text text;
        marked_text_init(&text, TEXT_MAX_BYTES);
        marked_text_append(&text, "banana", 6, ORIGIN_DOCUMENT);
        struct chat_message message = {"user", &text};
        struct chat_variables variables = {.messages = &message, .message_count = 1};
        failing_malloc_arm(n);
        enum status status = chat_template_parse(view_of(source), &parsed, &error);
        if (status == STATUS_OK)
            status = chat_template_render(parsed, &variables, &out, &error);
        reached = failing_malloc_disarm();
        cr_expect_eq(status == STATUS_OK, !reached, "allocation %d: %s", n, error.text);
        chat_template_destroy(parsed);
        marked_text_deinit(&text);
        marked_text_deinit(&out);
        marked_text_init(&out, TEXT_MAX_BYTES);
    }
    cr_expect_gt(n, 3);
}
