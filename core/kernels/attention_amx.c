/* Attention kernels on the AMX tile unit: softmax and rounding of the AVX-512 bf16 kernels,
 * products of tiles. A page's parts are panels, 16 pairs of them a tile; scores and probabilities
 * of a sub-block of 32 rows are two tiles high and stay in the first-level cache. */
#include "core/kernels/tiles_amx.h"

#include "core/kernels/attention_bf16_avx512.h"
#include "core/kernels/kernels_variants.h"
#include "core/kernels/multiply_amx.h"

static bool available(const struct cpu_features *features) {
    return linear_amx.available(features);
}

static void multiply_pairs(const void *rows, size_t row_stride, int row_count,
                           const uint16_t *panel, int panel_columns, int k, float *out,
                           size_t out_stride, int column_count, bool accumulate) {
    multiply_amx_panel(rows, row_stride, row_count, panel, panel_columns, k, out, out_stride,
                       column_count, accumulate);
}

const struct attention_kernels attention_amx = {
#if defined(TILES_AMX_EMULATED)
    .name = "amx-bf16-emulated",
#else
    .name = "amx-bf16",
#endif
    .unit = UNIT_BF16,
    .available = available,
    .sub_rows = MULTIPLY_AMX_ROWS,
    .convert_query = attention_bf16_convert_query,
    .multiply_pairs = multiply_pairs,
    .softmax_page = attention_bf16_softmax_page,
    .scale_row = scale_row_avx512,
    .blend_row = blend_row_avx512,
    .expand_keys = attention_bf16_expand_keys,
    .expand_values = attention_bf16_expand_values,
};
