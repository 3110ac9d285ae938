/* YAML: the tree with its lines, what is refused and on which line, typed reads. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/base/yaml.h"

static struct arena arena;

static void setup(void) {
    arena_init(&arena, 4096, 1 << 20);
}

static void teardown(void) {
    arena_deinit(&arena);
}

TestSuite(yaml, .init = setup, .fini = teardown);

static struct yaml_node *parse(const char *text) {
    struct yaml_node *root;
    struct error error = {0};
    cr_assert_eq(yaml_parse(text, strlen(text), &arena, &root, &error), STATUS_OK, "%s",
                 error.text);
    return root;
}

static void assert_refused(const char *text, const char *reason) {
    struct yaml_node *root;
    struct error error = {0};
    cr_assert_eq(yaml_parse(text, strlen(text), &arena, &root, &error), STATUS_BAD_INPUT,
                 "accepted: %s", text);
    cr_assert_null(root);
    cr_assert_not_null(strstr(error.text, reason), "'%s' in: %s", reason, error.text);
}

Test(yaml, a_tree_with_lines) {
    struct yaml_node *root = parse("# job\nmodel: a.gguf\nstop:\n  - \"x\"\n  - y\n"
                                   "deep: {a: [1, 2], b: {}}\ntext: |\n  two\n  lines\n");
    cr_assert_eq(root->kind, YAML_MAPPING);
    cr_assert_eq(root->count, 4);
    cr_assert_str_eq(root->keys[2]->scalar, "deep");
    cr_assert_eq(yaml_find(root, "model")->line, 2);
    struct yaml_node *stop = yaml_find(root, "stop");
    cr_assert_eq(stop->kind, YAML_SEQUENCE);
    cr_assert_eq(stop->count, 2);
    cr_assert_eq(stop->values[0]->line, 4);
    cr_assert(stop->values[0]->quoted);
    cr_assert_not(stop->values[1]->quoted);
    cr_assert_eq(yaml_find(yaml_find(root, "deep"), "a")->count, 2);
    cr_assert_eq(yaml_find(yaml_find(root, "deep"), "b")->count, 0);
    cr_assert_str_eq(yaml_find(root, "text")->scalar, "two\nlines\n");
    cr_assert(yaml_find(root, "text")->quoted);
    cr_assert_null(yaml_find(root, "absent"));
    cr_assert_null(yaml_find(stop, "x"));
}

Test(yaml, long_collections_grow) {
    char text[20000] = "";
    size_t used = 0;
    for (int i = 0; i < 1000; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "k%d: %d\n", i, i);
    struct yaml_node *root = parse(text);
    cr_assert_eq(root->count, 1000);
    cr_assert_str_eq(yaml_find(root, "k999")->scalar, "999");
    cr_assert_eq(yaml_find(root, "k999")->line, 1000);
}

Test(yaml, anything_but_plain_data_is_refused_by_line) {
    assert_refused("a: 1\nb: 2\na: 3\n", "line 3: duplicate key 'a' (first on line 1)");
    assert_refused("a: 1\nb: {c: 1, c: 2}\n", "line 2: duplicate key 'c'");
    assert_refused("a: &x 1\nb: *x\n", "line 1: anchors");
    assert_refused("a: 1\nb: &x [1]\n", "line 2: anchors");
    assert_refused("a: *x\n", "line 1: aliases");
    assert_refused("a: !!python/object x\n", "line 1: tags");
    assert_refused("a: !!map {}\n", "line 1: tags");
    assert_refused("? [a]\n: 1\n", "line 1: a key");
    assert_refused("\"a\\0b\": 1\n", "line 1: a key must not hold NUL");
    assert_refused("a: 1\n---\nb: 2\n", "only one document");
    assert_refused("", "no content");
    assert_refused("# only a comment\n", "no content");
}

Test(yaml, syntax_errors_name_the_line) {
    assert_refused("a: 1\n\tb: 2\n", "line 2");
    assert_refused("a: [1, 2\n", "line 2");
    assert_refused("a: 1\nb: \"open\n", "line 3");
    assert_refused("ok: 1\nbad: \xFF\n", "line 2");
}

static enum status parse_nested(int depth, struct error *error) {
    char text[4096] = "";
    memset(text, '[', (size_t)depth);
    memset(text + depth, ']', (size_t)depth);
    struct yaml_node *root;
    return yaml_parse(text, strlen(text), &arena, &root, error);
}

Test(yaml, nesting_is_limited) {
    struct error error = {0};
    cr_assert_eq(parse_nested(64, &error), STATUS_OK, "%s", error.text);
    cr_assert_eq(parse_nested(65, &error), STATUS_BAD_INPUT);
    cr_assert_not_null(strstr(error.text, "64 levels"));
    cr_assert_eq(parse_nested(1000, &error), STATUS_BAD_INPUT);
}

Test(yaml, a_full_arena_is_out_of_memory) {
    struct arena small;
    arena_init(&small, 64, 512);
    struct yaml_node *root;
    struct error error = {0};
    const char *text = "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]";
    cr_assert_eq(yaml_parse(text, strlen(text), &small, &root, &error), STATUS_NO_MEMORY);
    cr_assert_null(root);
    arena_deinit(&small);
}

Test(yaml, a_byte_order_mark_is_skipped) {
    cr_assert_str_eq(yaml_find(parse("\xEF\xBB\xBF"
                                     "a: 1\n"),
                               "a")
                         ->scalar,
                     "1");
}

Test(yaml, integers) {
    struct yaml_node *root = parse("[12, -7, +3, 9223372036854775807, 9223372036854775808, 1.0, "
                                   "\"5\", 0x10, '', 1-2, many, !!str 5]");
    static const bool accepted[12] = {true, true, true, true};
    for (size_t i = 0; i < root->count; i++) {
        long long value = 99;
        cr_assert_eq(yaml_to_int64(root->values[i], &value), accepted[i], "item %zu", i);
    }
    long long value;
    yaml_to_int64(root->values[1], &value);
    cr_assert_eq(value, -7);
    cr_assert_not(yaml_to_int64(root, &value));
}

Test(yaml, numbers_with_a_point) {
    struct yaml_node *root = parse("[0.7, 1, 1e-3, -.5, .inf, nan, 0x1p3, 1e999, \"1.5\", 1.2.3]");
    static const bool accepted[10] = {true, true, true, true};
    for (size_t i = 0; i < root->count; i++) {
        double value;
        cr_assert_eq(yaml_to_double(root->values[i], &value), accepted[i], "item %zu", i);
    }
    double value;
    yaml_to_double(root->values[2], &value);
    cr_assert_eq(value, 1e-3);
}

Test(yaml, switches) {
    struct yaml_node *root = parse("[true, false, yes, no, on, off, \"true\", 1, maybe, [true]]");
    static const bool accepted[10] = {true, true, true, true, true, true};
    for (size_t i = 0; i < root->count; i++) {
        bool value = false;
        cr_assert_eq(yaml_to_bool(root->values[i], &value), accepted[i], "item %zu", i);
        if (accepted[i])
            cr_assert_eq(value, i % 2 == 0);
    }
}
