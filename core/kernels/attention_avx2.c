/* Attention kernels with AVX2 and FMA in fp32. A pair of bf16 keys or values is widened in
 * registers, even then odd: 5 rows × 16 columns are 10 sums. */
#include <string.h>

#include "core/kernels/kernels_variants.h"
#include "core/kernels/math_avx2.h"
#include "core/kernels/multiply_avx2.h"

enum { BLOCK_ROWS = 5, LANES = MULTIPLY_WIDTH };

static bool available(const struct cpu_features *features) {
    return features->avx2;
}

static void scale_row(float *out, int count, float factor) {
    __m256 factors = _mm256_set1_ps(factor);
    int i = 0;
    for (; i + LANES <= count; i += LANES)
        _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_loadu_ps(out + i), factors));
    for (; i < count; i++)
        out[i] *= factor;
}

static void convert_query(const float *in, int count, float factor, void *out) {
    memcpy(out, in, (size_t)count * sizeof *in);
    scale_row(out, count, factor);
}

/* Two of k. */
ALWAYS_INLINE void step_pair(const char *row, size_t row_stride, int row_count, const char *panel,
                             __m256 (*sums)[MULTIPLY_VECTORS]) {
    const __m256i high = _mm256_set1_epi32((int)0xffff0000u);
    __m256i first = _mm256_loadu_si256((const void *)panel);
    __m256i second = _mm256_loadu_si256((const void *)(panel + sizeof first));
    UNROLL(2)
    for (int half = 0; half < 2; half++) {
        __m256 columns[MULTIPLY_VECTORS] = {
            _mm256_castsi256_ps(half ? _mm256_and_si256(first, high)
                                     : _mm256_slli_epi32(first, 16)),
            _mm256_castsi256_ps(half ? _mm256_and_si256(second, high)
                                     : _mm256_slli_epi32(second, 16)),
        };
        UNROLL(5)
        for (int r = 0; r < row_count; r++) {
            float value;
            memcpy(&value, row + (size_t)r * row_stride + 4 * half, sizeof value);
            __m256 broadcast = _mm256_set1_ps(value);
            sums[r][0] = _mm256_fmadd_ps(broadcast, columns[0], sums[r][0]);
            sums[r][1] = _mm256_fmadd_ps(broadcast, columns[1], sums[r][1]);
        }
    }
}

static void run_block(const struct multiply_block *block, int row_count) {
    multiply_any_rows(block, row_count, BLOCK_ROWS, 2, step_pair);
}

static void multiply_pairs(const void *rows, size_t row_stride, int row_count,
                           const uint16_t *panel, int panel_columns, int k, float *out,
                           size_t out_stride, int column_count, bool accumulate) {
    multiply_panel(rows, row_stride, row_count, panel, panel_columns, k / 2, out, out_stride,
                   column_count, accumulate, BLOCK_ROWS, run_block);
}

static float largest_lane(__m256 values) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/* Moves the row's maximum when a score exceeds it by more than 8; returns the factor for what was
 * summed before. */
static float move_maximum(const float *scores, float *row_max, float *row_sum) {
    __m256 most = _mm256_loadu_ps(scores);
    for (int i = LANES; i < PANEL_COLUMNS; i += LANES)
        most = _mm256_max_ps(most, _mm256_loadu_ps(scores + i));
    __m256 limit = _mm256_set1_ps(*row_max + 8);
    if (_mm256_movemask_ps(_mm256_cmp_ps(most, limit, _CMP_GT_OQ)) == 0)
        return 1;
    float moved = largest_lane(most);
    float factor = _mm256_cvtss_f32(math_exp2_avx2(_mm256_set1_ps(*row_max - moved)));
    *row_max = moved;
    scale_row(row_sum, SOFTMAX_LANES, factor);
    return factor;
}

static void softmax_page(const float *scores, int row_count, void *probabilities, float *row_max,
                         float *row_sum, float *factors) {
    float *out = probabilities;
    for (int r = 0; r < row_count; r++) {
        factors[r] = move_maximum(scores, row_max + r, row_sum);
        __m256 reference = _mm256_set1_ps(row_max[r]);
        __m256 sums[2] = {_mm256_loadu_ps(row_sum), _mm256_loadu_ps(row_sum + LANES)};
        for (int i = 0; i < PANEL_COLUMNS; i += LANES) {
            __m256 values = math_exp2_avx2(_mm256_sub_ps(_mm256_loadu_ps(scores + i), reference));
            _mm256_storeu_ps(out + i, values);
            sums[i / LANES % 2] = _mm256_add_ps(sums[i / LANES % 2], values);
        }
        _mm256_storeu_ps(row_sum, sums[0]);
        _mm256_storeu_ps(row_sum + LANES, sums[1]);
        scores += PANEL_COLUMNS, out += PANEL_COLUMNS, row_sum += SOFTMAX_LANES;
    }
}

static void blend_row(float *into, float into_factor, const float *from, float from_factor,
                      int count) {
    __m256 into_factors = _mm256_set1_ps(into_factor), from_factors = _mm256_set1_ps(from_factor);
    int i = 0;
    for (; i + LANES <= count; i += LANES) {
        __m256 kept = _mm256_mul_ps(_mm256_loadu_ps(into + i), into_factors);
        __m256 both = _mm256_fmadd_ps(_mm256_loadu_ps(from + i), from_factors, kept);
        _mm256_storeu_ps(into + i, both);
    }
    for (; i < count; i++)
        into[i] = into[i] * into_factor + from[i] * from_factor;
}

/* 8 bytes × 8 scales to bf16, to nearest even, in the low halves of 8 words; the scales' NaN has no
 * low bits to carry. */
static inline __m256i expand_8(const int8_t *in, __m256 scales) {
    __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)in));
    __m256i bits = _mm256_castps_si256(_mm256_mul_ps(_mm256_cvtepi32_ps(wide), scales));
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    return _mm256_srli_epi32(rounded, 16);
}

static inline void expand_16(const int8_t *in, __m256 first, __m256 second, uint16_t *out) {
    __m256i packed = _mm256_packus_epi32(expand_8(in, first), expand_8(in + LANES, second));
    _mm256_storeu_si256((void *)out, _mm256_permute4x64_epi64(packed, 0xd8));
}

static void expand_keys(const int8_t *in, const float *scales, int head_dim, uint16_t *out) {
    const __m256i low = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    const __m256i high = _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7);
    for (int part = 0; part < PANEL_COLUMNS / 8; part++) {
        __m256 eight = _mm256_loadu_ps(scales + 8 * part);
        __m256 first = _mm256_permutevar8x32_ps(eight, low);
        __m256 second = _mm256_permutevar8x32_ps(eight, high);
        for (int pair = 0; pair < head_dim / 2; pair++) {
            size_t at = (size_t)pair * PANEL_COLUMNS * 2 + (size_t)part * 16;
            expand_16(in + at, first, second, out + at);
        }
    }
}

static void expand_values(const int8_t *in, const float *scales, int head_dim, uint16_t *out) {
    for (int pair = 0; pair < PANEL_COLUMNS / 2; pair++) {
        __m256 even = _mm256_set1_ps(scales[2 * pair]), odd = _mm256_set1_ps(scales[2 * pair + 1]);
        __m256 both = _mm256_blend_ps(even, odd, 0xaa);
        for (int i = 0; i < 2 * head_dim; i += 16) {
            size_t at = (size_t)pair * 2 * (size_t)head_dim + (size_t)i;
            expand_16(in + at, both, both, out + at);
        }
    }
}

const struct attention_kernels attention_avx2 = {
    .name = "avx2",
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
