/* Length policies: what happens when prompt and output do not fit the context. Only the document is
 * cut, on the token stream, never the prompt or the template. */
#ifndef CORE_JOB_LENGTH_H
#define CORE_JOB_LENGTH_H

#include "core/base/error.h"
#include "core/job/settings.h"
#include "tokenizer/marked_text.h"
#include "tokenizer/tokenizer.h"

struct length_outcome {
    long long document_tokens; /* tokens whose first byte lies in the document, before cutting */
    long long used_tokens;     /* of them, kept */
    long long prompt_tokens;   /* all tokens after cutting */
    bool shortened;
    char kept[128]; /* "tokens 0-7639 of 9000"; keep-ends names both parts; empty when nothing was
                      cut */
};

/* Cuts `list` in place, between characters of the document: up to three tokens less than fit may be
 * kept. STATUS_OVER_LIMIT with numbers and remedies when the policy is error, or
 * when even an empty document would not fit. */
enum status length_apply(struct token_list *list, const struct marked_text *text,
                         enum too_long policy, long long context, long long max_tokens,
                         struct length_outcome *outcome, struct error *error);

#endif
