/* Tensors of any type with random codes and scales of ordinary size, and a generator that gives the
 * same numbers everywhere. */
#ifndef TESTS_SUPPORT_RANDOM_TENSOR_H
#define TESTS_SUPPORT_RANDOM_TENSOR_H

#include <stdint.h>

#include "core/weights/tensor.h"

/* Next of a sequence (splitmix64). */
uint64_t random_tensor_next(uint64_t *state);
/* Uniform in [-1, 1). */
float random_tensor_float(uint64_t *state);

/* [out][in]; free with random_tensor_destroy. `in` is a multiple of the type's block. */
struct tensor random_tensor_create(const struct quant_type *type, int in, int out, uint64_t seed);
void random_tensor_destroy(struct tensor *tensor);

#endif
