/* Reading UTF-8 and the classes of characters that tell the Unicode versions apart. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/guard_pages.h"
#include "tokenizer/unicode_classes.h"

static struct unicode_character read_text(const char *bytes) {
    const uint8_t *at = (const uint8_t *)bytes;
    return unicode_classes_read(at, at + strlen(bytes));
}

Test(unicode_classes, well_formed_characters) {
    cr_expect_eq(read_text("a").code_point, 'a');
    cr_expect_eq(read_text("é").code_point, 0xE9);
    cr_expect_eq(read_text("中x").length, 3);
    cr_expect_eq(read_text("😀").code_point, 0x1F600);
    cr_expect_eq(read_text("\xF4\x8F\xBF\xBF").code_point, 0x10FFFF);
}

Test(unicode_classes, bad_bytes_are_one_character_of_no_class) {
    static const char *const bad[] = {
        "\x80",         "\xC0\x80",         "\xC1\xBF",         "\xE0\x80\x80",
        "\xED\xA0\x80", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5",
        "\xFF",         "\xE4\xB8",         "\xF0\x9F\x98",     "\xC3(",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct unicode_character character = read_text(bad[i]);
        cr_expect_eq(character.length, 1, "%zu", i);
        cr_expect_eq(character.code_point, -1, "%zu", i);
        cr_expect_eq(character.class_bits, 0, "%zu", i);
    }
}

Test(unicode_classes, no_read_behind_the_end) {
    struct guard_pages pages = guard_pages_create(3);
    uint8_t *bytes = pages.bytes;
    for (unsigned lead = 0; lead < 256; lead++)
        for (size_t length = 1; length <= 3; length++) {
            uint8_t *at = bytes + 3 - length;
            memset(at, 0x9F, length);
            *at = (uint8_t)lead;
            struct unicode_character character = unicode_classes_read(at, bytes + 3);
            cr_assert_leq(character.length, length);
        }
    guard_pages_destroy(&pages);
}

Test(unicode_classes, maximal_bad_parts) {
    int complete;
    const uint8_t cut[] = {0xF0, 0x9F, 0x98, 'x'};
    cr_expect_eq(unicode_classes_well_formed(cut, cut + 4, &complete), 3);
    cr_expect_not(complete);
    const uint8_t overlong[] = {0xE0, 0x80};
    cr_expect_eq(unicode_classes_well_formed(overlong, overlong + 2, &complete), 1);
    cr_expect_not(complete);
}

Test(unicode_classes, classes) {
    cr_expect_eq(unicode_classes_of('A'), CLASS_LETTER);
    cr_expect_eq(unicode_classes_of('7'), CLASS_NUMBER | CLASS_DIGIT);
    cr_expect_eq(unicode_classes_of('\n'), CLASS_SPACE | CLASS_NEWLINE);
    cr_expect_eq(unicode_classes_of('\x1C'), 0); /* no blank, unlike for Python */
    cr_expect_eq(unicode_classes_of(0x85), CLASS_SPACE);
    cr_expect_eq(unicode_classes_of(0x200B), 0);
    cr_expect_eq(unicode_classes_of(0xFEFF), 0);
    cr_expect(unicode_classes_of(0xBD) & CLASS_NUMBER);   /* ½ */
    cr_expect(unicode_classes_of(0x2460) & CLASS_NUMBER); /* ① */
    cr_expect(unicode_classes_of(0xFF11) & CLASS_NUMBER);
    cr_expect_eq(unicode_classes_of(0x1C89), CLASS_LETTER); /* Unicode 16 */
    cr_expect_eq(unicode_classes_of(0x323B0), 0);           /* a letter since 17 */
    cr_expect_eq(unicode_classes_of(0x11DE0), CLASS_DIGIT); /* a number since 17 */
    cr_expect_eq(unicode_classes_of('$'), CLASS_PUNCTUATION);
    cr_expect_eq(unicode_classes_of(0x2E43), 0); /* punctuation since 9 */
    cr_expect(unicode_classes_of(0x301) & CLASS_COMPOSES);
    cr_expect_eq(unicode_classes_of(0x898) & CLASS_COMPOSES, 0); /* a mark since 14 */
}
