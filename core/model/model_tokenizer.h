/* The tokenizer and chat template that a model file carries: tokenizer.ggml.* and
 * tokenizer.chat_template. */
#ifndef CORE_MODEL_MODEL_TOKENIZER_H
#define CORE_MODEL_MODEL_TOKENIZER_H

#include "core/base/error.h"
#include "core/weights/gguf.h"
#include "tokenizer/tokenizer.h"

/* Checks array lengths, element types and special ids against the vocabulary before use. */
enum status model_tokenizer_create(const struct gguf *gguf, struct tokenizer **tokenizer,
                                   struct error *error);

/* The template's source in the map, or length 0 when the file has none. */
struct view model_tokenizer_template(const struct gguf *gguf);

#endif
