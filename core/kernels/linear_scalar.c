/* Linear kernels in plain C: what the others are tested against, and the fallback of every machine.
 * The products are rounded before they are added (no fused step), so bits differ from the vector
 * variants'; `numerics` says so. */
#include <string.h>

#include "core/kernels/kernels_variants.h"
#include "core/kernels/tile_layout.h"

enum { STRIP = 16 }; /* columns summed at a time: four SSE registers */

static bool available(const struct cpu_features *features) {
    (void)features;
    return true;
}

static void convert_row(const float *in, int count, void *out) {
    memcpy(out, in, (size_t)count * sizeof *in);
}

static void multiply_strip(const float *row, const float *panel, int panel_columns, int k,
                           float *out, bool accumulate) {
    float sums[STRIP] = {0};
    if (accumulate)
        memcpy(sums, out, sizeof sums);
    for (int i = 0; i < k; i++)
        for (int c = 0; c < STRIP; c++)
            sums[c] += row[i] * panel[(size_t)i * (size_t)panel_columns + (size_t)c];
    memcpy(out, sums, sizeof sums);
}

static void multiply(const void *rows, size_t row_stride, int row_count, const void *panel,
                     int panel_columns, int k, float *out, size_t out_stride, int column_count,
                     bool accumulate) {
    for (int r = 0; r < row_count; r++) {
        const float *row = (const void *)((const char *)rows + (size_t)r * row_stride);
        for (int c = 0; c < column_count; c += STRIP)
            multiply_strip(row, (const float *)panel + c, panel_columns, k,
                           out + (size_t)r * out_stride + c, accumulate);
    }
}

/* Scale and minimum of every column for one group of a chunk. */
static void load_group(const struct tile_format *format, const uint8_t *chunk, int group,
                       float *scales, float *mins) {
    struct tile_offsets at = tile_format_offsets(format);
    for (int c = 0; c < PANEL_COLUMNS; c++) {
        uint16_t scale, min = 0;
        memcpy(&scale, chunk + 2 * c, sizeof scale);
        if (format->has_min)
            memcpy(&min, chunk + at.min + 2 * c, sizeof min);
        scales[c] = quant_type_f16_to_f32(scale);
        mins[c] = quant_type_f16_to_f32(min);
        if (!format->two_level)
            continue;
        scales[c] *= (float)(int8_t)chunk[at.group_scale + (size_t)(group * PANEL_COLUMNS + c)];
        if (format->has_min)
            mins[c] *= -(float)chunk[at.group_min + (size_t)(group * PANEL_COLUMNS + c)];
    }
}

static unsigned word_code(const uint8_t *plane, int bits, int pair, int i, int j) {
    int pairs_a_word = 4 / bits;
    uint32_t word;
    memcpy(&word, plane + (pair / pairs_a_word * TILE_LANES + j) * (int)sizeof word, sizeof word);
    return word >> bits * (i + TILE_VECTORS * (pair % pairs_a_word)) & ((1u << bits) - 1);
}

/* What the code of lane j of vector i means, before the scale. */
static float code_value(const struct tile_format *format, const uint8_t *low, const uint8_t *high,
                        int pair, int i, int j) {
    if (format->low_bits == 8)
        return (float)(int8_t)low[(pair * TILE_VECTORS + i) * TILE_LANES + j];
    float value = format->low_table[word_code(low, format->low_bits, pair, i, j)];
    if (format->high_bits == 1) {
        uint16_t mask;
        memcpy(&mask, high + (pair * TILE_VECTORS + i) * (int)sizeof mask, sizeof mask);
        value += format->high_table[mask >> j & 1];
    } else if (format->high_bits == 2) {
        value += format->high_table[word_code(high, 2, pair, i, j)];
    }
    return value;
}

static void unpack_codes(const struct tile *tile, int block, int k_first, int k_count,
                         float *panel) {
    const struct tile_format *format = tile->format;
    struct tile_offsets at = tile_format_offsets(format);
    float scales[PANEL_COLUMNS], mins[PANEL_COLUMNS];
    for (int k = 0; k < k_count; k += 2) {
        const uint8_t *chunk =
            tile_chunk(tile, block, (k_first + k) / format->chunk * format->chunk);
        int in_chunk = (k_first + k) % format->chunk;
        if (in_chunk % format->group == 0)
            load_group(format, chunk, in_chunk / format->group, scales, mins);
        for (int i = 0; i < TILE_VECTORS; i++)
            for (int j = 0; j < TILE_LANES; j++) {
                int c = 8 * i + j / 2;
                float value =
                    code_value(format, chunk + at.low, chunk + at.high, in_chunk / 2, i, j);
                panel[(size_t)(k + j % 2) * PANEL_COLUMNS + (size_t)c] =
                    value * scales[c] + mins[c];
            }
    }
}

static float float_at(const uint8_t *bytes, enum tile_kind kind, size_t index) {
    float value;
    uint16_t half;
    if (kind == TILE_F32) {
        memcpy(&value, bytes + index * sizeof value, sizeof value);
        return value;
    }
    memcpy(&half, bytes + index * sizeof half, sizeof half);
    return kind == TILE_F16 ? quant_type_f16_to_f32(half) : quant_type_bf16_to_f32(half);
}

static void unpack_floats(const struct tile *tile, int block, int k_first, int k_count,
                          float *panel) {
    const uint8_t *bytes = tile_chunk(tile, block, k_first);
    for (size_t k = 0; k < (size_t)(k_count + 1) / 2 * 2; k++)
        for (size_t c = 0; c < PANEL_COLUMNS; c++)
            panel[k * PANEL_COLUMNS + c] =
                float_at(bytes, tile->format->kind, (k / 2 * PANEL_COLUMNS + c) * 2 + k % 2);
}

static void unpack_panel(const struct tile *tile, int block, int k_first, int k_count,
                         void *panel) {
    if (tile->format->group > 0)
        unpack_codes(tile, block, k_first, k_count, panel);
    else
        unpack_floats(tile, block, k_first, k_count, panel);
}

static uint64_t spin(int rounds, float *sink) {
    float sums[STRIP];
    for (int c = 0; c < STRIP; c++)
        sums[c] = *sink + (float)c;
    for (int i = 0; i < rounds; i++)
        for (int c = 0; c < STRIP; c++)
            sums[c] = sums[c] * 0.999f + 0.001f;
    for (int c = 0; c < STRIP; c++)
        *sink += sums[c];
    return (uint64_t)rounds * STRIP * 2;
}

static uint64_t read_all(const void *bytes, size_t byte_count) {
    const uint64_t *words = bytes;
    uint64_t sums[8] = {0};
    for (size_t i = 0; i < byte_count / sizeof *words; i += 8)
        for (int j = 0; j < 8; j++)
            sums[j] ^= words[i + j];
    for (int j = 1; j < 8; j++)
        sums[0] ^= sums[j];
    return sums[0];
}

const struct linear_kernels linear_scalar = {
    .name = "scalar",
    .unit = UNIT_F32,
    .available = available,
    .convert_row = convert_row,
    .multiply = multiply,
    .unpack_panel = unpack_panel,
    .chunk = 512,
    .spin = spin,
    .read = read_all,
};
