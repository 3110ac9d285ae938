/* Where well-formed UTF-8 ends: overlong forms, surrogates and values past U+10FFFF are bad bytes,
 * and a bad part is as long as Unicode recommends for one U+FFFD (chapter 3.9, "maximal
 * subpart"). */
#ifndef CORE_BASE_UTF8_H
#define CORE_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* U+FFFD, what bad bytes are replaced by. */
#define UTF8_REPLACEMENT "\xEF\xBF\xBD"

/* Bytes of the well-formed character at `bytes` (left ≥ 1 of them may be read), or 0 and in *bad
 * the bytes that one U+FFFD stands for: the longest beginning of a character, at least one. */
size_t utf8_character(const uint8_t *bytes, size_t left, size_t *bad);

#endif
