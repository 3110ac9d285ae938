/* Rows and panels of the int8 matmul, for the kernels of this folder only.
 *
 * Activations are quantised once a matmul, in groups of INT8_GROUP inputs with a scale of their own
 * (dynamic quantisation, as ggml's Q8_1 has it); weights keep the codes of their file. The dot
 * product of a group is exact in 32-bit integers; then, group after group in ascending order,
 *
 *   sum = sum + (dot × weight scale) × row scale, sum = sum + weight minimum × row sum
 *
 * where a weight is code × scale + minimum (offsets folded into the minimum), and a row's sum is
 * scale × Σ values. Formats with 16 inputs a scale do so twice a group of the row.
 *
 * A panel is a header and then a record a group of weights: codes uint8_t[group / 4][64][4], float
 * scales[64], float minima[64]. In which order the 64 columns lie is the variant's own business. */
#ifndef CORE_KERNELS_INT8_LAYOUT_H
#define CORE_KERNELS_INT8_LAYOUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/kernels/tile_layout.h"
#include "core/kernels/unroll.h"

enum {
    INT8_GROUP = 32,
    INT8_GROUP_MIN = 16, /* inputs of a weight scale, at least */
    INT8_QUAD = 4,       /* inputs side by side: what one lane of a dot product takes */
    INT8_HEADER_BYTES = 64,
};

struct int8_row_group {
    int8_t values[INT8_GROUP];
    float scale;       /* NaN when an input is not finite */
    float half_sum[2]; /* scale × Σ values of the lower and the upper 16 */
    float sum;
};

struct int8_panel_header {
    int32_t group; /* inputs a record: 16 or 32 */
    int32_t bits;  /* of a code at most, where the variant's products depend on it */
};

/* Bytes of a panel's record. */
static inline size_t int8_layout_record_bytes(int group) {
    return (size_t)group * PANEL_COLUMNS + 2 * PANEL_COLUMNS * sizeof(float);
}

/* A row's group as the kernels step through it: which 16 or 32 values, and their sum. */
struct int8_step {
    const int8_t *values;
    float scale, sum;
};

ALWAYS_INLINE struct int8_step int8_layout_step(const char *row, int group, int record) {
    const struct int8_row_group *groups = (const void *)row;
    const struct int8_row_group *whole = &groups[record * group / INT8_GROUP];
    int half = group < INT8_GROUP ? record % 2 : 0;
    return (struct int8_step){whole->values + half * INT8_GROUP_MIN, whole->scale,
                              group < INT8_GROUP ? whole->half_sum[half] : whole->sum};
}

/* What the codes' bytes are shifted by to be unsigned: codes of 8 bits are signed in their file. */
static inline int int8_layout_offset(const struct tile_format *format) {
    return format->kind == TILE_8 ? format->offset - 128 : format->offset;
}

#endif
