/* The byte-level alphabet: GPT-2's way to write any byte as a printable character, in which
 * vocabularies and merges of byte-level BPE are stored ("Ġthe" is " the"). */
#ifndef TOKENIZER_BYTE_LEVEL_H
#define TOKENIZER_BYTE_LEVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/text.h"

enum { BYTE_LEVEL_ALPHABET = 0x144 }; /* its characters lie below this code point */

struct byte_level {
    int16_t byte_of[BYTE_LEVEL_ALPHABET]; /* code point to byte, or -1 */
};

void byte_level_init(struct byte_level *alphabet);

/* Write the bytes that `stored` spells to `out` (room for stored.length) and their number to
 * `length`. false when a character is not of the alphabet. */
bool byte_level_decode(const struct byte_level *alphabet, struct view stored, char *out,
                       size_t *length);

#endif
