/* UTF-8 by the table of well-formed sequences (Unicode, table 3-7): no overlong forms, no
 * surrogates, nothing over U+10FFFF, and no read past the end whatever the lead byte promises. */
#include "tokenizer/unicode_classes.h"

/* How many bytes a lead byte promises, and the bounds of the second byte. Length 0: no lead. */
struct lead {
    unsigned length;
    uint8_t low, high;
};

static struct lead read_lead(uint8_t byte) {
    if (byte < 0x80)
        return (struct lead){1, 0, 0};
    if (byte >= 0xC2 && byte <= 0xDF)
        return (struct lead){2, 0x80, 0xBF};
    if ((byte & 0xF0) == 0xE0)
        return (struct lead){3, byte == 0xE0 ? 0xA0 : 0x80, byte == 0xED ? 0x9F : 0xBF};
    if (byte >= 0xF0 && byte <= 0xF4)
        return (struct lead){4, byte == 0xF0 ? 0x90 : 0x80, byte == 0xF4 ? 0x8F : 0xBF};
    return (struct lead){0, 0, 0};
}

unsigned unicode_classes_well_formed(const uint8_t *at, const uint8_t *end, int *complete) {
    struct lead lead = read_lead(*at);
    *complete = lead.length == 1;
    if (lead.length < 2)
        return 1;
    unsigned count = 1;
    while (count < lead.length && at + count < end) {
        uint8_t low = count == 1 ? lead.low : 0x80;
        uint8_t high = count == 1 ? lead.high : 0xBF;
        if (at[count] < low || at[count] > high)
            return count;
        count++;
    }
    *complete = count == lead.length;
    return count;
}

struct unicode_character unicode_classes_read_long(const uint8_t *at, const uint8_t *end) {
    int complete;
    unsigned length = unicode_classes_well_formed(at, end, &complete);
    if (!complete)
        return (struct unicode_character){1, -1, 0};
    uint32_t code_point = length == 1 ? at[0] : at[0] & (0x7Fu >> length);
    for (unsigned i = 1; i < length; i++)
        code_point = code_point << 6 | (at[i] & 0x3Fu);
    return (struct unicode_character){length, (int32_t)code_point, unicode_classes_of(code_point)};
}
