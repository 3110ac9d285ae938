/* NFC and spaces: what changes, what does not, and where offsets lead back to. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/normalizer.h"

static void expect_composed(const char *text, const char *expected) {
    struct normalizer normalizer = {0};
    struct view found = normalizer_compose(&normalizer, view_of(text));
    cr_expect(view_equal(found, view_of(expected)), "'%s': got '%.*s', expected '%s'", text,
              (int)found.length, found.bytes, expected);
    normalizer_deinit(&normalizer);
}

Test(normalizer, composes) {
    expect_composed("cafe\xCC\x81", "café");
    expect_composed("e\xCC\xA3\xCC\x82", "ệ"); /* two marks */
    expect_composed("e\xCC\x82\xCC\xA3", "ệ"); /* in the other order */
    expect_composed("\xC3\xAA\xCC\xA3", "ệ");  /* onto a composed letter */
    expect_composed("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", "한");
    expect_composed("\xE2\x84\xAB", "Å");                        /* singleton */
    expect_composed("\xE0\xA5\x98", "\xE0\xA4\x95\xE0\xA4\xBC"); /* excluded from composition */
    expect_composed("\xCC\x81x", "\xCC\x81x");                   /* a mark without a letter */
    expect_composed("\xFF\xCC\x81", "\xFF\xCC\x81");             /* or behind a bad byte */
}

Test(normalizer, characters_newer_than_the_reference_stay) {
    expect_composed("\xF0\x91\xA4\xB5\xF0\x91\xA4\xB0", "\xF0\x91\xA4\xB5\xF0\x91\xA4\xB0");
    expect_composed("a\xE0\xA2\x98\xCC\xA3", "a\xE0\xA2\x98\xCC\xA3");
}

Test(normalizer, composed_text_is_not_copied) {
    struct normalizer normalizer = {0};
    struct view text = view_of("déjà vu, 日本語 and ascii");
    struct view found = normalizer_compose(&normalizer, text);
    cr_expect_eq(found.bytes, text.bytes);
    cr_expect_eq(normalizer.edit_count, 0);
    normalizer_deinit(&normalizer);
}

Test(normalizer, offsets_lead_back) {
    struct normalizer normalizer = {0};
    struct view found = normalizer_compose(&normalizer, view_of("ae\xCC\x81z e\xCC\x81q"));
    cr_assert(view_equal(found, view_of("aéz éq")));
    uint32_t offsets[] = {0, 1, 3, 4, 5, 7, 8};
    normalizer_map_offsets(&normalizer, offsets, 7, 100);
    static const uint32_t expected[] = {100, 101, 104, 105, 106, 109, 110};
    for (int i = 0; i < 7; i++)
        cr_expect_eq(offsets[i], expected[i], "%d: %u", i, offsets[i]);
    normalizer_deinit(&normalizer);
}

Test(normalizer, spaces) {
    struct normalizer normalizer = {0};
    struct view text = view_of("a b");
    cr_expect_eq(normalizer_spaces(&normalizer, text, false).bytes, text.bytes);
    struct view found = normalizer_spaces(&normalizer, text, true);
    cr_expect(view_equal(found, view_of(" a b")));
    found = normalizer_spaces(&normalizer,
                              view_of("a\xE2\x96\x81"
                                      "b\xE2\x96"),
                              true);
    cr_assert(view_equal(found, view_of(" a b\xE2\x96")));
    uint32_t offsets[] = {0, 1, 2, 3};
    normalizer_map_offsets(&normalizer, offsets, 4, 0);
    cr_expect(offsets[0] == 0 && offsets[1] == 0 && offsets[2] == 1 && offsets[3] == 4);
    cr_expect_eq(normalizer_spaces(&normalizer, view_of(""), true).length, 0);
    normalizer_deinit(&normalizer);
}

/* Marks that must all change places: sorting them one by one would take hours. */
Test(normalizer, a_long_run_of_marks, .timeout = 30) {
    enum { PAIRS = 250000 };
    char *text = malloc(PAIRS * 4 + 1);
    text[0] = 'q';
    for (int i = 0; i < PAIRS; i++)
        memcpy(text + 1 + i * 4, "\xCC\x81\xCC\x96", 4);
    struct normalizer normalizer = {0};
    struct view found = normalizer_compose(&normalizer, (struct view){text, PAIRS * 4 + 1});
    cr_assert_eq(found.length, PAIRS * 4 + 1);
    cr_expect(memcmp(found.bytes + 1, "\xCC\x96\xCC\x96", 4) == 0);
    cr_expect(memcmp(found.bytes + PAIRS * 4 - 3, "\xCC\x81\xCC\x81", 4) == 0);
    normalizer_deinit(&normalizer);
    free(text);
}
