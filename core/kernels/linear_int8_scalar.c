/* The int8 matmul in plain C: the specification of the vector variants, which fuse the last two
 * steps of a group and therefore round differently. Columns lie in their natural order. */
#include <math.h>

#include "core/kernels/int8_layout.h"
#include "core/kernels/kernels_variants.h"
#include "core/kernels/unpack_scalar.h"

enum { SPIN_SUMS = 32 };

static bool available(const struct cpu_features *features) {
    (void)features;
    return true;
}

/* The scale that maps the largest size to 127. */
static float group_scale(const float *in) {
    float most = 0, check = 0;
    for (int i = 0; i < INT8_GROUP; i++) {
        float size = fabsf(in[i]);
        most = size > most ? size : most;
        check += in[i] * 0.0f;
    }
    return check == 0 ? most / 127.0f : NAN;
}

static void convert_group(const float *in, struct int8_row_group *out) {
    int sums[2] = {0};
    out->scale = group_scale(in);
    float factor = out->scale > 0 ? 1.0f / out->scale : 0; /* NaN compares false */
    factor = isfinite(factor) ? factor : 0;
    for (int i = 0; i < INT8_GROUP; i++) {
        float scaled = in[i] * factor;
        scaled = scaled > 127 ? 127 : scaled < -127 ? -127 : scaled;
        out->values[i] = factor > 0 ? (int8_t)lrintf(scaled) : 0;
        sums[i / INT8_GROUP_MIN] += out->values[i];
    }
    out->half_sum[0] = out->scale * (float)sums[0];
    out->half_sum[1] = out->scale * (float)sums[1];
    out->sum = out->scale * (float)(sums[0] + sums[1]);
}

static void convert_row(const float *in, int count, void *out) {
    struct int8_row_group *groups = out;
    assert(count % INT8_GROUP == 0);
    for (int i = 0; i < count; i += INT8_GROUP)
        convert_group(in + i, groups++);
}

/* One record's codes: a pair of inputs at a time, minus the offset. */
static void unpack_codes(const struct tile_format *format, const uint8_t *low, const uint8_t *high,
                         int pair_first, uint8_t *codes) {
    int offset = int8_layout_offset(format);
    for (int pair = 0; pair < format->group / 2; pair++) {
        float values[2 * PANEL_COLUMNS];
        unpack_scalar_codes(format, low, high, pair_first + pair, values);
        for (int c = 0; c < 2 * PANEL_COLUMNS; c++) {
            int input = 2 * pair + c / PANEL_COLUMNS, column = c % PANEL_COLUMNS;
            codes[(input / INT8_QUAD * PANEL_COLUMNS + column) * INT8_QUAD + input % INT8_QUAD] =
                (uint8_t)((int)values[c] - offset);
        }
    }
}

static void unpack_panel(const struct tile *tile, int block, int k_first, int k_count,
                         void *panel) {
    const struct tile_format *format = tile->format;
    struct tile_offsets at = tile_format_offsets(format);
    struct int8_panel_header *header = panel;
    uint8_t *record = (uint8_t *)panel + INT8_HEADER_BYTES;
    header->group = format->group;
    for (int k = k_first; k < k_first + k_count; k += format->group) {
        const uint8_t *chunk = tile_chunk(tile, block, k / format->chunk * format->chunk);
        float *scales = (void *)(record + (size_t)format->group * PANEL_COLUMNS);
        float *minima = scales + PANEL_COLUMNS;
        unpack_codes(format, chunk + at.low, chunk + at.high, k % format->chunk / 2, record);
        unpack_scalar_load_group(format, chunk, k % format->chunk / format->group, scales, minima);
        for (int c = 0; !format->has_min && c < PANEL_COLUMNS; c++)
            minima[c] = scales[c] * (float)int8_layout_offset(format);
        record += int8_layout_record_bytes(format->group);
    }
}

static void multiply_record(struct int8_step step, int group, const uint8_t *record,
                            int column_count, float *out) {
    const float *scales = (const void *)(record + (size_t)group * PANEL_COLUMNS);
    for (int c = 0; c < column_count; c++) {
        int dot = 0;
        for (int i = 0; i < group; i++)
            dot += step.values[i] *
                   record[(i / INT8_QUAD * PANEL_COLUMNS + c) * INT8_QUAD + i % INT8_QUAD];
        out[c] += (float)dot * scales[c] * step.scale;
        out[c] += scales[PANEL_COLUMNS + c] * step.sum;
    }
}

static void multiply(const void *rows, size_t row_stride, int row_count, const void *panel,
                     int panel_columns, int k, float *out, size_t out_stride, int column_count,
                     bool accumulate) {
    const struct int8_panel_header *header = panel;
    int group = header->group;
    assert(panel_columns == PANEL_COLUMNS && k % group == 0);
    (void)panel_columns;
    for (int r = 0; r < row_count; r++, out += out_stride) {
        const uint8_t *record = (const uint8_t *)panel + INT8_HEADER_BYTES;
        if (!accumulate)
            memset(out, 0, (size_t)column_count * sizeof *out);
        for (int n = 0; n < k / group; n++, record += int8_layout_record_bytes(group))
            multiply_record(int8_layout_step((const char *)rows + (size_t)r * row_stride, group, n),
                            group, record, column_count, out);
    }
}

static uint64_t spin(int rounds, float *sink) {
    int sums[SPIN_SUMS];
    for (int c = 0; c < SPIN_SUMS; c++)
        sums[c] = (int)*sink + c;
    for (int i = 0; i < rounds; i++)
        for (int c = 0; c < SPIN_SUMS; c++)
            sums[c] = sums[c] * 5 % 1021 + 1;
    for (int c = 0; c < SPIN_SUMS; c++)
        *sink += (float)sums[c];
    return (uint64_t)rounds * SPIN_SUMS * 2;
}

static uint64_t read_all(const void *bytes, size_t byte_count) {
    return linear_scalar.read(bytes, byte_count);
}

const struct linear_kernels linear_int8_scalar = {
    .name = "scalar",
    .unit = UNIT_INT8,
    .available = available,
    .convert_row = convert_row,
    .multiply = multiply,
    .unpack_panel = unpack_panel,
    .k_step = INT8_GROUP,
    .chunk = 256,
    .pass_rows = 1,
    .unpack_rows = 8,
    .rows_bytes = SIZE_MAX,
    .spin = spin,
    .read = read_all,
};
