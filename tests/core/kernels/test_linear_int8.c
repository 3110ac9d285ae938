/* The int8 matmul: rows are quantised as stated, a block's outputs are the sums of what the
 * quantised rows and the weights stand for, whatever the type, the shape and the number of rows. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu_features.h"
#include "core/kernels/int8_layout.h"
#include "core/kernels/kernels.h"
#include "core/kernels/tile.h"
#include "tests/support/guard_pages.h"
#include "tests/support/random_tensor.h"

enum { ROWS = 20, IN_MAX = 768 };

static void each_variant(void (*check)(const struct linear_kernels *kernels)) {
    struct cpu_features features = cpu_features_detect();
    for (size_t v = 0; v < linear_int8_variant_count(); v++)
        if (linear_int8_variant_at(v)->available(&features))
            check(linear_int8_variant_at(v));
}

static void fill(float *values, int count, uint64_t seed) {
    for (int i = 0; i < count; i++)
        values[i] = random_tensor_float(&seed) * (i % 7 == 0 ? 30.0f : 1.0f);
}

/* ---- rows ---- */

static void check_group(const float *in, const struct int8_row_group *group) {
    float most = 0;
    int sums[2] = {0};
    for (int i = 0; i < INT8_GROUP; i++) {
        most = fmaxf(most, fabsf(in[i]));
        sums[i / INT8_GROUP_MIN] += group->values[i];
        cr_expect(fabsf(in[i] - (float)group->values[i] * group->scale) <= 0.5001f * group->scale);
    }
    cr_expect_eq(group->scale, most / 127.0f);
    cr_expect_eq(group->half_sum[0], group->scale * (float)sums[0]);
    cr_expect_eq(group->half_sum[1], group->scale * (float)sums[1]);
    cr_expect_eq(group->sum, group->scale * (float)(sums[0] + sums[1]));
}

static void check_rows(const struct linear_kernels *kernels) {
    enum { COUNT = 4 * INT8_GROUP };
    struct guard_pages in = guard_pages_create(COUNT * sizeof(float));
    struct guard_pages out = guard_pages_create(linear_row_bytes(UNIT_INT8, COUNT));
    float *values = in.bytes;
    fill(values, COUNT, 3);
    memset(values + INT8_GROUP, 0, INT8_GROUP * sizeof *values);
    kernels->convert_row(values, COUNT, out.bytes);
    for (int g = 0; g < COUNT / INT8_GROUP; g++)
        check_group(values + g * INT8_GROUP, (struct int8_row_group *)out.bytes + g);
    guard_pages_destroy(&in);
    guard_pages_destroy(&out);
}

Test(linear_int8, rows_are_rounded_to_half_a_step) {
    each_variant(check_rows);
}

static void check_not_finite(const struct linear_kernels *kernels) {
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        float values[INT8_GROUP] = {1, 2};
        struct int8_row_group group;
        values[20] = bad[i];
        kernels->convert_row(values, INT8_GROUP, &group);
        cr_expect(isnan(group.scale) && isnan(group.sum), "%s: %g", kernels->name, bad[i]);
    }
}

Test(linear_int8, what_is_not_finite_shows) {
    each_variant(check_not_finite);
}

/* Denormal inputs have no scale whose inverse is a number. */
static void check_tiny(const struct linear_kernels *kernels) {
    float values[INT8_GROUP] = {1e-40f, -1e-41f};
    struct int8_row_group group;
    kernels->convert_row(values, INT8_GROUP, &group);
    for (int i = 0; i < INT8_GROUP; i++)
        cr_expect(fabsf((float)group.values[i] * group.scale) <= 1e-39f);
    cr_expect(isfinite(group.sum));
}

Test(linear_int8, denormal_rows_stay_finite) {
    each_variant(check_tiny);
}

/* The specification's bytes. */
static void check_same_rows(const struct linear_kernels *kernels) {
    const struct linear_kernels *scalar = linear_int8_variant_at(linear_int8_variant_count() - 1);
    float values[10 * INT8_GROUP];
    struct int8_row_group found[10], expected[10];
    for (uint64_t seed = 1; seed < 50; seed++) {
        fill(values, 10 * INT8_GROUP, seed);
        kernels->convert_row(values, 10 * INT8_GROUP, found);
        scalar->convert_row(values, 10 * INT8_GROUP, expected);
        cr_assert_eq(memcmp(found, expected, sizeof found), 0, "%s", kernels->name);
    }
}

Test(linear_int8, all_variants_round_rows_alike) {
    each_variant(check_same_rows);
}

/* ---- blocks ---- */

struct matmul {
    const struct linear_kernels *kernels;
    struct tensor tensor;
    struct tile_set set;
    char *rows;
    size_t row_bytes;
};

static struct matmul make_matmul(const struct linear_kernels *kernels,
                                 const struct quant_type *type, int in, int out) {
    struct matmul m = {.kernels = kernels, .tensor = random_tensor_create(type, in, out, 99)};
    const struct tensor *parts[] = {&m.tensor};
    float values[IN_MAX];
    struct error error;
    cr_assert_eq(tile_set_create(&m.set, parts, 1, &error), STATUS_OK);
    for (int b = 0; b < m.set.block_count; b++)
        tile_set_pack_block(&m.set, parts, b);
    m.row_bytes = linear_row_bytes(UNIT_INT8, in);
    m.rows = malloc(ROWS * m.row_bytes);
    for (int r = 0; r < ROWS; r++) {
        fill(values, in, 100 + r);
        kernels->convert_row(values, in, m.rows + r * m.row_bytes);
    }
    return m;
}

static void destroy_matmul(struct matmul *m) {
    random_tensor_destroy(&m->tensor);
    tile_set_destroy(&m->set);
    free(m->rows);
}

static void run_matmul(const struct matmul *m, int first, int rows, float *out, size_t out_stride) {
    struct guard_pages panel = guard_pages_create((linear_panel_bytes(m->kernels) + 63) / 64 * 64);
    struct linear_task task = {
        .rows = m->rows + first * m->row_bytes,
        .row_stride = m->row_bytes,
        .row_count = rows,
        .out = out,
        .out_stride = out_stride,
        .panel = panel.bytes,
    };
    for (int b = 0; b < m->set.block_count; b++) {
        struct tile_block block = tile_set_block(&m->set, b);
        linear_multiply_block(m->kernels, &block, &task);
    }
    guard_pages_destroy(&panel);
}

static double row_value(const struct matmul *m, int row, int k) {
    const struct int8_row_group *groups = (const void *)(m->rows + row * m->row_bytes);
    return (double)groups[k / INT8_GROUP].values[k % INT8_GROUP] * groups[k / INT8_GROUP].scale;
}

static void check_matmul(const struct linear_kernels *kernels, const struct quant_type *type,
                         int in, int out) {
    struct matmul m = make_matmul(kernels, type, in, out);
    size_t stride = (size_t)out + 5, count = (ROWS - 1) * stride + out;
    struct guard_pages pages = guard_pages_create(count * sizeof(float));
    float *values = pages.bytes, weights[IN_MAX];
    for (size_t i = 0; i < count; i++)
        values[i] = 7;
    run_matmul(&m, 0, ROWS, values, stride);
    for (int c = 0; c < out; c++) {
        tensor_unpack_row(&m.tensor, c, weights);
        for (int r = 0; r < ROWS; r++) {
            double sum = 0, size = 1e-6;
            for (int k = 0; k < in; k++) {
                sum += row_value(&m, r, k) * weights[k];
                size += fabs(row_value(&m, r, k) * weights[k]);
            }
            cr_assert(fabs(values[r * stride + c] - sum) <= size * 1e-5,
                      "%s %s %dx%d at %d,%d: %g, not %g", kernels->name, type->name, in, out, r, c,
                      values[r * stride + c], sum);
        }
    }
    for (int r = 0; r + 1 < ROWS; r++)
        for (size_t c = out; c < stride; c++)
            cr_assert_eq(values[r * stride + c], 7, "%s wrote behind its columns", kernels->name);
    guard_pages_destroy(&pages);
    destroy_matmul(&m);
}

static void check_types(const struct linear_kernels *kernels) {
    for (size_t t = 0; t < quant_type_count(); t++) {
        const struct quant_type *type = quant_type_at(t);
        if (!tile_format_has_int8(tile_format_find(type->id)))
            continue;
        check_matmul(kernels, type, 768, 70);
        if (tile_format_find(type->id)->chunk == 32)
            check_matmul(kernels, type, 352, 17);
        check_matmul(kernels, type, 256, 64);
    }
}

Test(linear_int8, blocks_are_sums_of_what_was_rounded) {
    each_variant(check_types);
}

static void check_row_counts(const struct linear_kernels *kernels) {
    enum { OUT = 70, STRIDE = 73 };
    static float all[ROWS][STRIDE], some[ROWS][STRIDE];
    for (size_t t = 0; t < quant_type_count(); t++) {
        if (!tile_format_has_int8(tile_format_find(quant_type_at(t)->id)))
            continue;
        struct matmul m = make_matmul(kernels, quant_type_at(t), 768, OUT);
        for (int r = 0; r < ROWS; r++)
            run_matmul(&m, r, 1, all[r], STRIDE);
        for (int count = 1; count <= ROWS; count += count < 8 ? 1 : 4) {
            run_matmul(&m, 0, count, some[0], STRIDE);
            for (int r = 0; r < count; r++)
                cr_assert_eq(memcmp(some[r], all[r], OUT * sizeof(float)), 0, "%s %s: row %d of %d",
                             kernels->name, quant_type_at(t)->name, r, count);
        }
        destroy_matmul(&m);
    }
}

Test(linear_int8, bits_of_a_block_do_not_depend_on_the_row_count_for_any_type) {
    each_variant(check_row_counts);
}

/* The vector variants fuse alike: the first's bits are those of all but the scalar one. */
static void check_same_bits(const struct linear_kernels *kernels, const struct quant_type *type,
                            int in, const struct linear_kernels *widest) {
    enum { OUT = 70 };
    static const int counts[] = {1, 2, 3, 4, 5, 20};
    static float found[ROWS][OUT], expected[ROWS][OUT];
    struct matmul m = make_matmul(kernels, type, in, OUT),
                  other = make_matmul(widest, type, in, OUT);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        run_matmul(&m, 0, counts[i], found[0], OUT);
        run_matmul(&other, 0, counts[i], expected[0], OUT);
        cr_assert_eq(memcmp(found, expected, counts[i] * sizeof found[0]), 0, "%s %s: %d rows",
                     kernels->name, type->name, counts[i]);
    }
    destroy_matmul(&m);
    destroy_matmul(&other);
}

Test(linear_int8, all_vector_variants_sum_alike) {
    struct cpu_features features = cpu_features_detect();
    const struct linear_kernels *widest = NULL;
    for (size_t v = 0; v + 1 < linear_int8_variant_count(); v++) {
        const struct linear_kernels *kernels = linear_int8_variant_at(v);
        if (!kernels->available(&features))
            continue;
        for (size_t t = 0; t < quant_type_count() && widest != NULL; t++)
            if (tile_format_has_int8(tile_format_find(quant_type_at(t)->id)))
                check_same_bits(kernels, quant_type_at(t), IN_MAX, widest);
        widest = widest != NULL ? widest : kernels;
    }
    if (widest == NULL)
        cr_skip_test("this CPU has no vector variant");
}

/* All codes 0 or all ones, all activations -127 or 127. */
static void set_extremes(struct matmul *m, int code_byte, int value) {
    const struct tile *tile = &m->set.tiles[0];
    struct tile_offsets at = tile_format_offsets(tile->format);
    for (int b = 0; b < tile->block_count; b++)
        for (int k = 0; k < tile->in; k += tile->format->chunk)
            memset(tile->bytes + (tile_chunk(tile, b, k) - tile->bytes) + at.low, code_byte,
                   at.end - at.low);
    struct int8_row_group *groups = (void *)m->rows;
    for (size_t g = 0; g < ROWS * m->row_bytes / sizeof *groups; g++) {
        memset(groups[g].values, value, INT8_GROUP);
        groups[g].scale = 1;
        groups[g].half_sum[0] = groups[g].half_sum[1] = (float)(INT8_GROUP_MIN * value);
        groups[g].sum = (float)(INT8_GROUP * value);
    }
}

/* Where narrow sums would saturate. */
static void check_extremes(const struct linear_kernels *kernels) {
    static const int ends[4][2] = {{0, -127}, {0, 127}, {0xff, -127}, {0xff, 127}};
    static float found[ROWS][PANEL_COLUMNS], expected[ROWS][PANEL_COLUMNS];
    const struct linear_kernels *scalar = linear_int8_variant_at(linear_int8_variant_count() - 1);
    for (size_t t = 0; t < quant_type_count(); t++) {
        const struct quant_type *type = quant_type_at(t);
        if (!tile_format_has_int8(tile_format_find(type->id)))
            continue;
        struct matmul m = make_matmul(kernels, type, 256, PANEL_COLUMNS), spec = m;
        spec.kernels = scalar;
        for (int i = 0; i < 4; i++) {
            set_extremes(&m, ends[i][0], ends[i][1]);
            run_matmul(&m, 0, ROWS, found[0], PANEL_COLUMNS);
            run_matmul(&spec, 0, ROWS, expected[0], PANEL_COLUMNS);
            float most = 0;
            for (int c = 0; c < PANEL_COLUMNS; c++)
                most = fmaxf(most, fabsf(expected[0][c]));
            for (int r = 0; r < ROWS; r++)
                for (int c = 0; c < PANEL_COLUMNS; c++)
                    cr_assert(fabsf(found[r][c] - expected[r][c]) <= 1e-4f * most,
                              "%s %s: %g, not %g", kernels->name, type->name, found[r][c],
                              expected[r][c]);
        }
        destroy_matmul(&m);
    }
}

Test(linear_int8, sums_at_the_ends_of_codes_and_rows_do_not_saturate) {
    each_variant(check_extremes);
}

Test(linear_int8, formats_without_codes_have_none) {
    cr_expect_not(tile_format_has_int8(tile_format_find(QUANT_F32)));
    cr_expect_not(tile_format_has_int8(tile_format_find(QUANT_BF16)));
    cr_expect(tile_format_has_int8(tile_format_find(QUANT_Q6_K)));
}

static void check_ceilings(const struct linear_kernels *kernels) {
    float sink = 0.5f;
    cr_expect_gt(kernels->spin(10, &sink), 0);
    struct guard_pages pages = guard_pages_create(4096);
    kernels->read(pages.bytes, pages.byte_count);
    guard_pages_destroy(&pages);
}

Test(linear_int8, ceilings_count_work_and_read_within_bounds) {
    each_variant(check_ceilings);
}

Test(linear_int8, scalar_always_runs_and_comes_last) {
    struct cpu_features none = {0};
    size_t last = linear_int8_variant_count() - 1;
    for (size_t v = 0; v <= last; v++)
        cr_expect_eq(linear_int8_variant_at(v)->available(&none), v == last);
}
