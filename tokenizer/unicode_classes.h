/* Character classes of the splitters and of NFC, and reading of UTF-8 that never faults: a byte
 * that does not begin a well-formed character within the text is a character of its own, of no
 * class. The tables (unicode_tables.c) are generated; which Unicode version each class has is said
 * there. */
#ifndef TOKENIZER_UNICODE_CLASSES_H
#define TOKENIZER_UNICODE_CLASSES_H

#include <stdint.h>

enum {
    CLASS_LETTER = 1,
    CLASS_NUMBER = 2,
    CLASS_SPACE = 4,
    CLASS_NEWLINE = 8, /* CR and LF; they are CLASS_SPACE too */
    CLASS_DIGIT = 16,  /* what the Digits splitter cuts: a newer Unicode than CLASS_NUMBER */
    CLASS_PUNCTUATION = 32,
    CLASS_COMPOSES = 64, /* may change, move or compose with what is before it under NFC */
};

enum {
    UNICODE_BLOCK_SHIFT = 7,
    UNICODE_BLOCK_COUNT = 0x110000 >> UNICODE_BLOCK_SHIFT,
};

extern const uint8_t unicode_tables_index[UNICODE_BLOCK_COUNT];
extern const uint8_t unicode_tables_blocks[];

static inline unsigned unicode_classes_of(uint32_t code_point) {
    unsigned block = unicode_tables_index[code_point >> UNICODE_BLOCK_SHIFT];
    return unicode_tables_blocks[(block << UNICODE_BLOCK_SHIFT) |
                                 (code_point & ((1u << UNICODE_BLOCK_SHIFT) - 1))];
}

/* One character: how many bytes it has, its code point (-1: not well-formed, one byte) and class.
 */
struct unicode_character {
    unsigned length;
    int32_t code_point;
    unsigned class_bits;
};

/* The character of two or more bytes at `at`, or a lone bad byte. at < end. */
struct unicode_character unicode_classes_read_long(const uint8_t *at, const uint8_t *end);

/* The character at `at`. at < end. */
static inline struct unicode_character unicode_classes_read(const uint8_t *at, const uint8_t *end) {
    if (*at < 0x80)
        return (struct unicode_character){1, *at, unicode_tables_blocks[*at]};
    return unicode_classes_read_long(at, end);
}

/* Bytes of the longest beginning of a well-formed character at `at`: 1..4; *complete says whether
 * it is a whole character. A byte that begins none gives 1 and false. This is the "maximal bad
 * part" that one U+FFFD stands for. at < end. */
unsigned unicode_classes_well_formed(const uint8_t *at, const uint8_t *end, int *complete);

#endif
