/* Linear kernels in plain C: what the others are tested against, and the fallback of every machine.
 * The products are rounded before they are added (no fused step), so bits differ from the vector
 * variants'; `numerics` says so. */
#include <string.h>

#include "core/kernels/kernels_variants.h"
#include "core/kernels/unpack_scalar.h"

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
            unpack_scalar_load_group(format, chunk, in_chunk / format->group, scales, mins);
        unpack_scalar_codes(format, chunk + at.low, chunk + at.high, in_chunk / 2, values);
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
