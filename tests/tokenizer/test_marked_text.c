/* Marked text: spans add up, neighbours differ, and a failed append changes nothing. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/failing_malloc.h"
#include "tokenizer/marked_text.h"

static void check(const struct marked_text *marked) {
    size_t total = 0;
    for (size_t i = 0; i < marked->span_count; i++) {
        cr_assert_gt(marked->spans[i].length, 0);
        cr_assert(i == 0 || marked->spans[i].origin != marked->spans[i - 1].origin);
        total += marked->spans[i].length;
    }
    cr_assert_eq(total, marked->text.length);
}

Test(marked_text, equal_origins_join) {
    struct marked_text marked;
    marked_text_init(&marked, 100);
    cr_assert(marked_text_append(&marked, "ab", 2, ORIGIN_TEMPLATE));
    cr_assert(marked_text_append(&marked, "", 0, ORIGIN_DOCUMENT));
    cr_assert(marked_text_append(&marked, "cd", 2, ORIGIN_TEMPLATE));
    cr_assert(marked_text_append(&marked, "ef", 2, ORIGIN_DOCUMENT));
    cr_assert_eq(marked.span_count, 2);
    cr_assert_eq(marked.spans[0].length, 4);
    check(&marked);
    marked_text_clear(&marked);
    cr_assert_eq(marked.text.length, 0);
    cr_assert_eq(marked.span_count, 0);
    marked_text_deinit(&marked);
}

Test(marked_text, over_the_maximum_nothing_changes) {
    struct marked_text marked;
    marked_text_init(&marked, 6);
    marked_text_append(&marked, "xy", 2, ORIGIN_TEMPLATE);
    cr_assert_not(marked_text_append(&marked, "abcdef", 6, ORIGIN_TEMPLATE));
    cr_assert_not(marked_text_append(&marked, "abcdef", 6, ORIGIN_DOCUMENT));
    cr_assert_str_eq(marked.text.bytes, "xy");
    cr_assert_eq(marked.span_count, 1);
    cr_assert_eq(marked.spans[0].length, 2);
    cr_assert(marked_text_append(&marked, "abcd", 4, ORIGIN_DOCUMENT));
    check(&marked);
    marked_text_deinit(&marked);
}

Test(marked_text, no_memory_changes_nothing) {
    bool failed = true;
    for (int n = 1; failed; n++) {
        struct marked_text marked;
        marked_text_init(&marked, 1 << 20);
        failing_malloc_arm(n);
        for (int i = 0; i < 100; i++) {
            enum text_origin origin = i % 2 ? ORIGIN_PROMPT : ORIGIN_DOCUMENT;
            size_t length = marked.text.length;
            if (!marked_text_append(&marked, "0123456789", 10, origin))
                cr_assert_eq(marked.text.length, length);
            check(&marked);
        }
        failed = failing_malloc_disarm();
        marked_text_deinit(&marked);
    }
}
