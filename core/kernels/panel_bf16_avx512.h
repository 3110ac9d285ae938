/* Rows and panels in bf16 pairs, for the AVX-512 and the AMX matmuls. A pair's order is that of the
 * weight tiles, so a pair of inputs × 64 columns is decoded, rounded and stored without a shuffle;
 * at the same time it is a quarter of what four tile registers load. */
#ifndef CORE_KERNELS_PANEL_BF16_AVX512_H
#define CORE_KERNELS_PANEL_BF16_AVX512_H

#include "core/kernels/unpack_avx512.h"

/* The op `convert_row` of kernels.h. */
static inline void panel_bf16_convert_row(const float *in, int count, void *out) {
    uint16_t *halves = out;
    for (int i = 0; i < count; i += TILE_LANES) {
        int rest = count - i;
        __mmask16 mask = (__mmask16)(rest < TILE_LANES ? (1u << rest) - 1 : 0xffffu);
        __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, in + i));
        _mm256_mask_storeu_epi16(halves + i, mask, (__m256i)rounded);
    }
}

/* Vector i of four: 16 columns × a pair. */
ALWAYS_INLINE __m512i panel_bf16_rounded(const __m512 *values, int i) {
    return (__m512i)_mm512_cvtne2ps_pbh(values[2 * i + 1], values[2 * i]);
}

ALWAYS_INLINE void panel_bf16_store_pair(void *sink, const __m512 *values) {
    uint8_t **panel = sink;
    UNROLL(4)
    for (int i = 0; i < 4; i++)
        _mm512_storeu_si512(*panel + 64 * i, panel_bf16_rounded(values, i));
    *panel += 256;
}

/* The op `unpack_panel` of kernels.h. */
static inline void panel_bf16_unpack(const struct tile *tile, int block, int k_first, int k_count,
                                     void *panel) {
    uint8_t *next = panel;
    if (tile->format->kind == TILE_BF16)
        memcpy(panel, tile_chunk(tile, block, k_first),
               ((size_t)k_count + 1) / 2 * tile->chunk_bytes);
    else
        unpack_tile(tile, block, k_first, k_count, &next, panel_bf16_store_pair);
}

#endif
