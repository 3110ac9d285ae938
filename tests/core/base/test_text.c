/* Growable text: the maximum holds, a refused append leaves the text as it was. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "core/base/text.h"

Test(text, grows_and_stays_terminated) {
    struct text text;
    text_init(&text, 1 << 20);
    for (int i = 0; i < 5000; i++)
        cr_assert(text_append_format(&text, "%d,", i % 10));
    cr_assert_eq(text.length, 10000);
    cr_assert_eq(strlen(text.bytes), 10000);
    cr_assert_leq(text.capacity, 4 * text.length);
    text_deinit(&text);
    cr_assert_null(text.bytes);
}

Test(text, the_maximum_is_a_length_and_can_be_reached) {
    struct text text;
    text_init(&text, 5);
    cr_assert(text_append_string(&text, "12345"));
    cr_assert_not(text_append_char(&text, '6'));
    cr_assert_not(text_append_format(&text, "%s", "6"));
    cr_assert_str_eq(text.bytes, "12345");
    cr_assert_eq(text.length, 5);
    text_deinit(&text);
}

Test(text, an_append_too_long_changes_nothing) {
    struct text text;
    text_init(&text, 100);
    text_append_string(&text, "kept");
    cr_assert_not(text_append(&text, "x", SIZE_MAX));
    cr_assert_not(text_reserve(&text, 97));
    cr_assert_str_eq(text.bytes, "kept");
    text_deinit(&text);
}

Test(text, holds_nul_bytes) {
    struct text text;
    text_init(&text, 100);
    text_append(&text, "a\0b", 3);
    cr_assert_eq(text.length, 3);
    cr_assert(view_equal(text_view(&text), (struct view){"a\0b", 3}));
    text_deinit(&text);
}

Test(text, clear_keeps_the_memory) {
    struct text text;
    text_init(&text, 1000);
    text_append_string(&text, "something");
    const char *bytes = text.bytes;
    text_clear(&text);
    cr_assert_eq(text.length, 0);
    cr_assert_eq(text.bytes, bytes);
    cr_assert_str_eq(text.bytes, "");
    text_deinit(&text);
}

Test(text, appending_nothing_makes_an_empty_string) {
    struct text text;
    text_init(&text, 10);
    cr_assert(text_append(&text, NULL, 0));
    cr_assert_str_eq(text.bytes, "");
    text_deinit(&text);
}

Test(text, an_unused_text_has_an_empty_view) {
    struct text text;
    text_init(&text, 10);
    cr_assert(view_is(text_view(&text), ""));
    cr_assert_not(view_is(view_of("ab"), "abc"));
    cr_assert_not(view_is(view_of("abd"), "abc"));
    cr_assert(view_equal((struct view){NULL, 0}, view_of("")));
    text_deinit(&text);
}
