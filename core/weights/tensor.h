/* A tensor as it lies in a mapped file: borrowed bytes and a checked shape. */
#ifndef CORE_WEIGHTS_TENSOR_H
#define CORE_WEIGHTS_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "core/weights/quant_type.h"

enum { TENSOR_DIMS_MAX = 4 };

struct tensor {
    const char *name; /* NUL-terminated */
    const struct quant_type *type;
    uint32_t dim_count;
    uint64_t dims[TENSOR_DIMS_MAX]; /* dims[0] is the contiguous row length; unused ones are 1 */
    uint64_t row_count;             /* product of dims[1..] */
    const uint8_t *bytes;           /* row_count × row_bytes, inside the map */
    size_t row_bytes;
    size_t byte_count;
};

/* Unpack row `row` to fp32; out: [dims[0]]. */
void tensor_unpack_row(const struct tensor *tensor, uint64_t row, float *out);

#endif
