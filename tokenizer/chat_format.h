/* Values as text: str() and repr() as Python writes them, and JSON as Python's json.dumps does.
 * Text that comes out of a string keeps that string's origin, escapes included. */
#ifndef TOKENIZER_CHAT_FORMAT_H
#define TOKENIZER_CHAT_FORMAT_H

#include "tokenizer/chat_eval.h"

enum { CHAT_FORMAT_FLOAT_BYTES = 64 };

struct chat_format_json_options {
    bool indented;
    int indent;
    bool ascii; /* \u escapes for what is not ASCII */
    bool sorted;
    struct view item_separator; /* after an item; ", " or, indented, "," */
    struct view key_separator;
};

/* str(value) appended; undefined is nothing. */
enum status chat_format_text(struct chat_evaluator *evaluator, struct chat_value value,
                             struct chat_string_builder *out);
enum status chat_format_json(struct chat_evaluator *evaluator, struct chat_value value,
                             const struct chat_format_json_options *options,
                             struct chat_string_builder *out);

/* The shortest decimal that reads back as the same double, in Python's layout. */
void chat_format_float(double number, char buffer[CHAT_FORMAT_FLOAT_BYTES]);

#endif
