/* Attention kernels in plain C: the specification. Rows are fp32. */
#include <math.h>

#include "core/kernels/kernels_variants.h"
#include "core/kernels/math_scalar.h"
#include "core/weights/quant_type.h"

static bool available(const struct cpu_features *features) {
    (void)features;
    return true;
}

static void convert_query(const float *in, int count, float factor, void *out) {
    float *row = out;
    for (int i = 0; i < count; i++)
        row[i] = in[i] * factor;
}

/* One row by 16 columns: the accumulators stay in registers. */
static void multiply_columns(const float *row, const uint16_t *panel, int panel_columns, int k,
                             float *out, bool accumulate) {
    float sums[16];
    for (int c = 0; c < 16; c++)
        sums[c] = accumulate ? out[c] : 0;
    for (int i = 0; i < k; i += 2) {
        const uint16_t *pairs = panel + (size_t)i * (size_t)panel_columns;
        for (int c = 0; c < 16; c++)
            sums[c] += row[i] * quant_type_bf16_to_f32(pairs[2 * c]);
        for (int c = 0; c < 16; c++)
            sums[c] += row[i + 1] * quant_type_bf16_to_f32(pairs[2 * c + 1]);
    }
    for (int c = 0; c < 16; c++)
        out[c] = sums[c];
}

static void multiply_pairs(const void *rows, size_t row_stride, int row_count,
                           const uint16_t *panel, int panel_columns, int k, float *out,
                           size_t out_stride, int column_count, bool accumulate) {
    for (int r = 0; r < row_count; r++) {
        const float *row = (const void *)((const char *)rows + (size_t)r * row_stride);
        for (int c = 0; c < column_count; c += 16)
            multiply_columns(row, panel + 2 * c, panel_columns, k, out + (size_t)r * out_stride + c,
                             accumulate);
    }
}

static float largest(const float *values, int count) {
    float most = -INFINITY;
    for (int i = 0; i < count; i++)
        most = values[i] > most ? values[i] : most;
    return most;
}

static void softmax_page(const float *scores, int row_count, void *probabilities, float *row_max,
                         float *row_sum, float *factors) {
    float *out = probabilities;
    for (int r = 0; r < row_count; r++) {
        float most = largest(scores, PANEL_COLUMNS);
        factors[r] = 1;
        if (most > row_max[r] + 8) {
            factors[r] = math_exp2(row_max[r] - most);
            row_max[r] = most;
            for (int i = 0; i < SOFTMAX_LANES; i++)
                row_sum[i] *= factors[r];
        }
        for (int i = 0; i < PANEL_COLUMNS; i++) {
            out[i] = math_exp2(scores[i] - row_max[r]);
            row_sum[i % SOFTMAX_LANES] += out[i];
        }
        scores += PANEL_COLUMNS, out += PANEL_COLUMNS, row_sum += SOFTMAX_LANES;
    }
}

static void scale_row(float *out, int count, float factor) {
    for (int i = 0; i < count; i++)
        out[i] *= factor;
}

static void blend_row(float *into, float into_factor, const float *from, float from_factor,
                      int count) {
    for (int i = 0; i < count; i++)
        into[i] = into[i] * into_factor + from[i] * from_factor;
}

static void expand_keys(const int8_t *in, const float *scales, int head_dim, uint16_t *out) {
    for (int i = 0; i < head_dim * PANEL_COLUMNS; i++)
        out[i] = quant_type_f32_to_bf16((float)in[i] * scales[i / 2 % PANEL_COLUMNS]);
}

static void expand_values(const int8_t *in, const float *scales, int head_dim, uint16_t *out) {
    for (int i = 0; i < head_dim * PANEL_COLUMNS; i++)
        out[i] = quant_type_f32_to_bf16((float)in[i] * scales[i / (2 * head_dim) * 2 + i % 2]);
}

const struct attention_kernels attention_scalar = {
    .name = "scalar",
    .unit = UNIT_F32,
    .available = available,
    .sub_rows = 24,
    .convert_query = convert_query,
    .multiply_pairs = multiply_pairs,
    .softmax_page = softmax_page,
    .scale_row = scale_row,
    .blend_row = blend_row,
    .expand_keys = expand_keys,
    .expand_values = expand_values,
};
