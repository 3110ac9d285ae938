/* Linear kernels in plain C: what the others are tested against, and the fallback of every machine.
 * The products are rounded before they are added (no fused step), so bits differ from the vector
 * variants'; `numerics` says so. */
#include <string.h>

#include "core/kernels/kernels_variants.h"
#include "core/kernels/tile_layout.h"
#include "core/kernels/unroll.h"

enum {
    STRIP = 16,     /* columns summed at a time: four SSE registers */
    SPIN_SUMS = 32, /* enough to hide the latency of an addition */
};

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
    for (int c = 0; c < column_count; c += STRIP)
        for (int r = 0; r < row_count; r++)
            multiply_strip((const void *)((const char *)rows + (size_t)r * row_stride),
                           (const float *)panel + c, panel_columns, k,
                           out + (size_t)r * out_stride + c, accumulate);
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

/* The word of lane j, shifted so that vector i's code is at bit 8(i/2) + bits × (i%2). */
static uint32_t plane_word(const uint8_t *plane, int bits, int pair, int j) {
    int pairs_a_word = 4 / bits;
    uint32_t word;
    memcpy(&word, plane + (pair / pairs_a_word * TILE_LANES + j) * (int)sizeof word, sizeof word);
    return word >> 2 * bits * (pair % pairs_a_word);
}

/* Codes plus offset of a pair; values: [2 inputs][64]. */
ALWAYS_INLINE void decode_pair(const struct tile_format *format, enum tile_kind kind,
                               const uint8_t *low, const uint8_t *high, int pair, float *values) {
    const int low_bits = tile_kind_low_bits(kind), high_bits = tile_kind_high_bits(kind);
    uint32_t low_mask = (1u << low_bits) - 1, high_mask = (1u << high_bits) - 1;
    for (int j = 0; j < TILE_LANES; j++) {
        float *lane = values + j % 2 * PANEL_COLUMNS + j / 2;
        uint32_t low_word = plane_word(low, low_bits, pair, j);
        uint32_t high_word = high_bits > 0 ? plane_word(high, high_bits, pair, j) : 0;
        for (int i = 0; i < TILE_VECTORS; i++) {
            uint32_t code = low_word >> (8 * (i / 2) + low_bits * (i % 2)) & low_mask;
            code |= (high_word >> (8 * (i / 2) + high_bits * (i % 2)) & high_mask) << low_bits;
            if (kind == TILE_4_CODEBOOK)
                code = format->codebook[code];
            lane[8 * i] = (float)((int)code + format->offset);
        }
    }
}

static void decode_bytes(const uint8_t *low, int pair, float *values) {
    const int8_t *codes = (const int8_t *)low + pair * TILE_VECTORS * TILE_LANES;
    for (int c = 0; c < PANEL_COLUMNS; c++) {
        values[c] = codes[2 * c];
        values[PANEL_COLUMNS + c] = codes[2 * c + 1];
    }
}

#define DECODE(KIND)                                        \
    case KIND:                                              \
        decode_pair(format, KIND, low, high, pair, values); \
        break;

static void decode(const struct tile_format *format, const uint8_t *low, const uint8_t *high,
                   int pair, float *values) {
    switch (format->kind) {
        DECODE(TILE_2)
        DECODE(TILE_2_1)
        DECODE(TILE_4)
        DECODE(TILE_4_1)
        DECODE(TILE_4_2)
        DECODE(TILE_4_CODEBOOK)
    case TILE_8:
    case TILE_F16:
    case TILE_BF16:
    case TILE_F32:
        decode_bytes(low, pair, values);
        break;
    }
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
        float *values = panel + (size_t)k * PANEL_COLUMNS;
        if (in_chunk % format->group == 0)
            load_group(format, chunk, in_chunk / format->group, scales, mins);
        decode(format, chunk + at.low, chunk + at.high, in_chunk / 2, values);
        for (int c = 0; c < 2 * PANEL_COLUMNS; c++)
            values[c] = values[c] * scales[c % PANEL_COLUMNS] + mins[c % PANEL_COLUMNS];
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
    float sums[SPIN_SUMS];
    for (int c = 0; c < SPIN_SUMS; c++)
        sums[c] = *sink + (float)c;
    for (int i = 0; i < rounds; i++)
        for (int c = 0; c < SPIN_SUMS; c++)
            sums[c] = sums[c] * 0.999f + 0.001f;
    for (int c = 0; c < SPIN_SUMS; c++)
        *sink += sums[c];
    return (uint64_t)rounds * SPIN_SUMS * 2;
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
    .k_step = 2,
    .chunk = 256,
    .pass_rows = 6,
    .unpack_rows = 8,
    .rows_bytes = SIZE_MAX,
    .spin = spin,
    .read = read_all,
};
