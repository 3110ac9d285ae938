/* Upper, lower, title and capitalised case of strings, by Unicode's simple mappings (and ß → SS).
 */
#ifndef TOKENIZER_CHAT_CASE_H
#define TOKENIZER_CHAT_CASE_H

#include "tokenizer/chat_eval.h"

enum chat_case {
    CHAT_CASE_UPPER,
    CHAT_CASE_LOWER,
    CHAT_CASE_TITLE,      /* str.title: words are runs of letters */
    CHAT_CASE_WORDS,      /* the title filter: words begin after blanks and - ( { [ < */
    CHAT_CASE_CAPITALIZE, /* first character of the string */
};

enum status chat_case_map(struct chat_evaluator *evaluator, const struct chat_string *flat,
                          enum chat_case kind, struct chat_value *result);
/* str.isdigit of a character: decimal digits, superscripts and the like. */
bool chat_case_is_digit(int32_t character);

#endif
