/* Strings of the template engine: immutable bytes that remember the origin of every byte. Slices
 * share their bytes, and concatenation makes a node of two halves that is written out at once when
 * somebody needs the bytes side by side, so a chain of `+` over a large document stays linear.
 *
 * Bytes are UTF-8 and counted in characters as Python counts them; a byte that belongs to no valid
 * character counts as one. Everything lives in an arena: nothing is freed singly. */
#ifndef TOKENIZER_CHAT_STRING_H
#define TOKENIZER_CHAT_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/text.h"
#include "tokenizer/marked_text.h"

/* A stretch of one origin that ends before byte `end`. */
struct chat_run {
    size_t end;
    enum text_origin origin;
};

struct chat_string {
    size_t length;               /* bytes */
    const char *bytes;           /* NULL: an unwritten concatenation of left and right */
    const struct chat_run *runs; /* ascending; NULL: every byte has `origin` */
    size_t run_count;
    size_t run_base; /* byte 0 of this string in the coordinates of `runs` */
    enum text_origin origin;
    const struct chat_string *left, *right;
};

/* Functions that give a string give NULL when the arena is full. */

/* A string of one origin over bytes that outlive it. */
struct chat_string *chat_string_borrow(struct arena *arena, struct view bytes,
                                       enum text_origin origin);
/* A string over a marked text that outlives it. */
struct chat_string *chat_string_from_marked(struct arena *arena, const struct marked_text *marked);
const struct chat_string *chat_string_concat(struct arena *arena, const struct chat_string *left,
                                             const struct chat_string *right);
/* The same string with its bytes side by side. */
const struct chat_string *chat_string_flatten(struct arena *arena,
                                              const struct chat_string *string);
/* Bytes [first, first + length) of a flat string. */
const struct chat_string *chat_string_slice(struct arena *arena, const struct chat_string *string,
                                            size_t first, size_t length);
/* Append to `out`; false when out of memory or over its maximum. */
bool chat_string_write(const struct chat_string *string, struct marked_text *out);
struct view chat_string_view(const struct chat_string *flat);
/* The origin of byte `position` of a flat string; `end`: where its stretch ends. */
enum text_origin chat_string_origin(const struct chat_string *flat, size_t position, size_t *end);

/* Bytes of the character at `bytes` (1 to 4); its code point, or -1 for a byte of no character. */
size_t chat_string_character(const char *bytes, size_t length, int32_t *character);
size_t chat_string_count(struct view bytes);
/* Byte offset of character `index`, at most the length. */
size_t chat_string_offset(struct view bytes, size_t index);
/* What Python's str.isspace says of a code point. */
bool chat_string_is_space(int32_t character);
/* First byte of `needle` in `bytes` at or after `from`; SIZE_MAX: none. */
size_t chat_string_find(struct view bytes, struct view needle, size_t from);

/* Puts a string together from pieces, origins kept. A failed append is remembered until the end. */
struct chat_string_builder {
    struct arena *arena;
    char *bytes;
    size_t length, capacity;
    struct chat_run *runs;
    size_t run_count, run_capacity;
    bool failed;
};

void chat_string_builder_init(struct chat_string_builder *builder, struct arena *arena);
void chat_string_builder_append(struct chat_string_builder *builder, struct view bytes,
                                enum text_origin origin);
/* Text of the template's own. */
void chat_string_builder_append_text(struct chat_string_builder *builder, const char *text);
/* Bytes [first, first + length) of a flat string. */
void chat_string_builder_append_slice(struct chat_string_builder *builder,
                                      const struct chat_string *flat, size_t first, size_t length);
const struct chat_string *chat_string_builder_finish(struct chat_string_builder *builder);

#endif
