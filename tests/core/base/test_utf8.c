/* One UTF-8 character: every code point, every lead byte, and how far a bad part goes. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/utf8.h"

static size_t encode(unsigned point, uint8_t bytes[4]) {
    static const uint8_t leads[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    size_t length = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, point >>= 6)
        bytes[i] = (uint8_t)(0x80 | (point & 0x3F));
    bytes[0] = (uint8_t)(leads[length] | point);
    return length;
}

Test(utf8, takes_every_code_point_but_surrogates) {
    for (unsigned point = 0; point < 0x120000; point++) {
        uint8_t bytes[4];
        size_t bad;
        size_t length = encode(point, bytes);
        bool is_character = point < 0x110000 && (point < 0xD800 || point > 0xDFFF);
        cr_assert_eq(utf8_character(bytes, length, &bad), is_character ? length : 0, "U+%X", point);
        if (!is_character)
            cr_assert_eq(bad, 1);
    }
}

Test(utf8, a_cut_character_is_one_bad_part) {
    static const unsigned points[] = {0xE9, 0x20AC, 0x1F600, 0x10FFFF};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        uint8_t bytes[4];
        size_t length = encode(points[i], bytes), bad;
        for (size_t left = 1; left < length; left++) {
            cr_assert_eq(utf8_character(bytes, left, &bad), 0);
            cr_assert_eq(bad, left);
        }
    }
}

Test(utf8, bad_parts_are_as_long_as_a_character_could_have_begun) {
    static const struct {
        const char *bytes;
        size_t bad;
    } cases[] = {
        {"\x80", 1},         {"\xFF", 1},         {"\xC0\x80", 1},     {"\xC1\xBF", 1},
        {"\xE0\x9F\xBF", 1}, {"\xED\xA0\x80", 1}, {"\xF0\x8F\x80", 1}, {"\xF4\x90\x80\x80", 1},
        {"\xF5\x80", 1},     {"\xE2\x82z", 2},    {"\xF0\x9Fz", 2},    {"\xF0\x9F\x98z", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bad;
        const uint8_t *bytes = (const uint8_t *)cases[i].bytes;
        cr_assert_eq(utf8_character(bytes, strlen(cases[i].bytes), &bad), 0, "case %zu", i);
        cr_assert_eq(bad, cases[i].bad, "case %zu", i);
    }
}
