/* The short name of a model for result rows, made from its file's name. */
#ifndef CORE_MODEL_MODEL_NAME_H
#define CORE_MODEL_MODEL_NAME_H

#include <stddef.h>

/* "/m/SmolLM2 135M-Instruct-Q4_1.gguf" → "smollm2-135m-instruct": without folder, .gguf, shard
 * number and quantisation suffix, ASCII letters in lower case, blanks to '-'. Cut at a character
 * border. */
void model_name_from_path(const char *path, char *name, size_t name_bytes);

#endif
