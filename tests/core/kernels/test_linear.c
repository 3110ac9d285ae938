/* Linear kernels: every variant this CPU has, AMX emulated at least, against sums in double, the
 * bit-for-bit promises (row count, chunks of k, AVX2 and AVX-512 alike), and the edges: odd sizes
 * right before guard pages, columns that must not be touched. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu_features.h"
#include "core/kernels/kernels.h"
#include "core/kernels/tile.h"
#include "tests/support/guard_pages.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/random_tensor.h"

/* A product's operands in unit format, and the same as floats. */
struct product {
    const struct linear_kernels *kernels;
    int rows, k, panel_columns;
    size_t row_stride;
    struct guard_pages row_pages, panel_pages;
    float *row_values;   /* [rows][k] */
    float *panel_values; /* [k][panel_columns] */
};

static float unit_value(enum unit unit, float value) {
    return unit == UNIT_F32 ? value : quant_type_bf16_to_f32(quant_type_f32_to_bf16(value));
}

static void fill_panel(struct product *product, uint64_t *seed) {
    int columns = product->panel_columns;
    for (int k = 0; k < product->k; k++)
        for (int c = 0; c < columns; c++) {
            float value = unit_value(product->kernels->unit, random_tensor_float(seed));
            product->panel_values[k * columns + c] = value;
            if (product->kernels->unit == UNIT_F32)
                ((float *)product->panel_pages.bytes)[k * columns + c] = value;
            else
                ((uint16_t *)product->panel_pages.bytes)[(k / 2 * columns + c) * 2 + k % 2] =
                    quant_type_f32_to_bf16(value);
        }
}

/* k even for bf16. */
static struct product make_product(const struct linear_kernels *kernels, int rows, int k,
                                   int panel_columns, uint64_t seed) {
    size_t element = kernels->unit == UNIT_F32 ? sizeof(float) : sizeof(uint16_t);
    struct product product = {
        .kernels = kernels, .rows = rows, .k = k, .panel_columns = panel_columns};
    product.row_stride = (size_t)k * element;
    product.row_pages = guard_pages_create((size_t)rows * product.row_stride);
    product.panel_pages = guard_pages_create((size_t)k * panel_columns * element);
    product.row_values = malloc((size_t)rows * k * sizeof(float));
    product.panel_values = malloc((size_t)k * panel_columns * sizeof(float));
    for (int i = 0; i < rows * k; i++) {
        float value = unit_value(kernels->unit, random_tensor_float(&seed));
        product.row_values[i] = value;
        if (kernels->unit == UNIT_F32)
            ((float *)product.row_pages.bytes)[i] = value;
        else
            ((uint16_t *)product.row_pages.bytes)[i] = quant_type_f32_to_bf16(value);
    }
    fill_panel(&product, &seed);
    return product;
}

static void destroy_product(struct product *product) {
    guard_pages_destroy(&product->row_pages);
    guard_pages_destroy(&product->panel_pages);
    free(product->row_values);
    free(product->panel_values);
}

/* Rows [first, first + rows) × the first `columns` columns. */
static void run(const struct product *product, int first, int rows, int columns, float *out,
                size_t out_stride, bool accumulate) {
    product->kernels->multiply((const char *)product->row_pages.bytes + first * product->row_stride,
                               product->row_stride, rows, product->panel_pages.bytes,
                               product->panel_columns, product->k, out, out_stride, columns,
                               accumulate);
}

static void check_against_double(const struct product *product, int columns, bool accumulate) {
    size_t stride = (size_t)columns + 3;
    size_t count =
        (size_t)(product->rows - 1) * stride + columns; /* the last row ends at the guard */
    struct guard_pages out = guard_pages_create(count * sizeof(float));
    float *values = out.bytes;
    for (size_t i = 0; i < count; i++)
        values[i] = 0.25f;
    run(product, 0, product->rows, columns, values, stride, accumulate);
    for (int r = 0; r < product->rows; r++)
        for (size_t c = 0; c < stride && (size_t)r * stride + c < count; c++) {
            double sum = accumulate ? 0.25 : 0, size = 0.25;
            for (int k = 0; k < product->k && c < (size_t)columns; k++) {
                double term = (double)product->row_values[r * product->k + k] *
                              product->panel_values[k * product->panel_columns + (int)c];
                sum += term;
                size += fabs(term);
            }
            float found = values[r * stride + c];
            if (c >= (size_t)columns)
                cr_assert_eq(found, 0.25f, "%s wrote between rows", product->kernels->name);
            else
                cr_assert(fabs(found - sum) <= size * 1e-7 * (product->k + 1),
                          "%s rows %d k %d columns %d at %d,%zu: %g, not %g",
                          product->kernels->name, product->rows, product->k, columns, r, c, found,
                          sum);
        }
    guard_pages_destroy(&out);
}

/* Calls `check` for every variant that runs here. */
static void each_variant(void (*check)(const struct linear_kernels *kernels)) {
    struct cpu_features features = cpu_features_detect();
    features.avx512_bf16_fast = features.avx512_bf16;
    for (size_t v = 0; v < kernel_variants_linear_count(); v++)
        if (kernel_variants_linear_at(v)->available(&features))
            check(kernel_variants_linear_at(v));
}

/* Every remainder of the register blocks of some variant. */
enum { ROW_COUNTS = 21 };
static const int row_counts[ROW_COUNTS] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                           12, 13, 14, 16, 17, 31, 32, 33, 48, 65};

static void check_shapes(const struct linear_kernels *kernels) {
    static const int depths[] = {1, 2, 3, 8, 30, 32, 66};
    static const int columns[] = {16, 32, 48, 64, 80, 128};
    for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++)
        for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++)
            for (int i = 0; i < ROW_COUNTS; i++) {
                int rows = row_counts[i];
                int k = depths[d];
                if (kernels->unit == UNIT_BF16)
                    k += k % 2;
                struct product product = make_product(kernels, rows, k, columns[c], rows + 100 * k);
                check_against_double(&product, columns[c], rows % 2 == 0);
                if (columns[c] > 16)
                    check_against_double(&product, columns[c] - 16, rows % 2 == 1);
                destroy_product(&product);
            }
}

Test(linear, products_agree_with_double_at_every_edge) {
    each_variant(check_shapes);
}

static void check_row_counts(const struct linear_kernels *kernels) {
    enum { ROWS = 70, COLUMNS = 80 };
    static float alone[ROWS][COLUMNS], together[ROWS][COLUMNS];
    struct product product = make_product(kernels, ROWS, 742, COLUMNS, 11);
    for (int r = 0; r < ROWS; r++)
        run(&product, r, 1, COLUMNS, alone[r], COLUMNS, false);
    for (int count = 1; count <= ROWS; count++) {
        memset(together, 0, sizeof together);
        run(&product, ROWS - count, count, COLUMNS, together[0], COLUMNS, false);
        cr_assert_eq(memcmp(together, alone[ROWS - count], sizeof alone[0] * count), 0,
                     "%s: %d rows at once differ from one at a time", kernels->name, count);
    }
    destroy_product(&product);
}

Test(linear, bits_of_a_row_do_not_depend_on_the_row_count) {
    each_variant(check_row_counts);
}

static void check_k_chunks(const struct linear_kernels *kernels) {
    enum { ROWS = 9, COLUMNS = 64, K = 96 };
    static float whole[ROWS][COLUMNS], pieces[ROWS][COLUMNS];
    struct product product = make_product(kernels, ROWS, K, COLUMNS, 12);
    size_t element = product.row_stride / K;
    run(&product, 0, ROWS, COLUMNS, whole[0], COLUMNS, false);
    for (int piece = kernels->k_step; piece < K; piece += kernels->k_step) {
        for (int first = 0; first < K; first += piece) {
            int count = K - first < piece ? K - first : piece;
            kernels->multiply((const char *)product.row_pages.bytes + first * element,
                              product.row_stride, ROWS,
                              (const char *)product.panel_pages.bytes + first * element * COLUMNS,
                              COLUMNS, count, pieces[0], COLUMNS, COLUMNS, first > 0);
        }
        cr_assert_eq(memcmp(pieces, whole, sizeof whole), 0, "%s: chunks of %d", kernels->name,
                     piece);
    }
    destroy_product(&product);
}

Test(linear, chunks_of_k_do_not_change_a_bit) {
    each_variant(check_k_chunks);
}

static const struct linear_kernels *find_variant(const char *name) {
    struct cpu_features features = cpu_features_detect();
    for (size_t v = 0; v < linear_variant_count(); v++)
        if (strcmp(linear_variant_at(v)->name, name) == 0 &&
            linear_variant_at(v)->available(&features))
            return linear_variant_at(v);
    return NULL;
}

Test(linear, avx2_and_avx512_sum_alike) {
    const struct linear_kernels *narrow = find_variant("avx2"), *wide = find_variant("avx512");
    if (narrow == NULL || wide == NULL)
        cr_skip_test("this CPU has not both");
    static float a[7][64], b[7][64];
    struct product product = make_product(narrow, 7, 333, 64, 13);
    run(&product, 0, 7, 64, a[0], 64, false);
    product.kernels = wide;
    run(&product, 0, 7, 64, b[0], 64, false);
    cr_expect_eq(memcmp(a, b, sizeof a), 0);
    destroy_product(&product);
}

static void check_convert(const struct linear_kernels *kernels) {
    uint64_t seed = 5;
    for (int count = 2; count <= 80; count += 2) {
        struct guard_pages in = guard_pages_create((size_t)count * sizeof(float));
        struct guard_pages out = guard_pages_create(linear_row_bytes(kernels->unit, count));
        for (int i = 0; i < count; i++)
            ((float *)in.bytes)[i] = random_tensor_float(&seed) * 100;
        kernels->convert_row(in.bytes, count, out.bytes);
        for (int i = 0; i < count; i++) {
            float value = ((float *)in.bytes)[i];
            if (kernels->unit == UNIT_F32)
                cr_assert_eq(((float *)out.bytes)[i], value);
            else
                cr_assert_eq(((uint16_t *)out.bytes)[i], quant_type_f32_to_bf16(value));
        }
        guard_pages_destroy(&in);
        guard_pages_destroy(&out);
    }
}

Test(linear, rows_convert_by_rounding_to_nearest_even) {
    each_variant(check_convert);
}

/* ---- a whole column block ---- */

struct matmul {
    const struct linear_kernels *kernels;
    struct tensor tensor;
    struct tile_set set;
    float *inputs; /* [rows][in] */
    void *rows;    /* in unit format */
    size_t row_bytes;
};

static struct matmul make_matmul(const struct linear_kernels *kernels,
                                 const struct quant_type *type, int in, int out, int rows) {
    struct matmul m = {.kernels = kernels, .tensor = random_tensor_create(type, in, out, 99)};
    const struct tensor *parts[] = {&m.tensor};
    struct error error;
    cr_assert_eq(tile_set_create(&m.set, parts, 1, &error), STATUS_OK);
    for (int b = 0; b < m.set.block_count; b++)
        tile_set_pack_block(&m.set, parts, b);
    m.row_bytes = linear_row_bytes(kernels->unit, in);
    m.inputs = calloc((size_t)rows * in + 1, sizeof(float));
    m.rows = calloc((size_t)rows, m.row_bytes);
    uint64_t seed = 3;
    for (int r = 0; r < rows; r++) {
        float padded[1024] = {0};
        for (int k = 0; k < in; k++)
            padded[k] = m.inputs[r * in + k] =
                unit_value(kernels->unit, random_tensor_float(&seed));
        kernels->convert_row(padded, (in + 1) / 2 * 2, (char *)m.rows + r * m.row_bytes);
    }
    return m;
}

static void destroy_matmul(struct matmul *m) {
    random_tensor_destroy(&m->tensor);
    tile_set_destroy(&m->set);
    free(m->inputs);
    free(m->rows);
}

static void run_matmul(const struct matmul *m, int first, int rows, float *out, size_t out_stride) {
    void *panel = aligned_alloc(64, linear_panel_bytes(m->kernels));
    struct linear_task task = {
        .rows = (const char *)m->rows + first * m->row_bytes,
        .row_stride = m->row_bytes,
        .row_count = rows,
        .out = out,
        .out_stride = out_stride,
        .panel = panel,
    };
    for (int b = 0; b < m->set.block_count; b++) {
        struct tile_block block = tile_set_block(&m->set, b);
        linear_multiply_block(m->kernels, &block, &task);
    }
    free(panel);
}

static void check_matmul(const struct linear_kernels *kernels, const struct quant_type *type,
                         int in, int out) {
    enum { ROWS = 37 };
    struct matmul m = make_matmul(kernels, type, in, out, ROWS);
    size_t stride = (size_t)out + 5;
    struct guard_pages pages = guard_pages_create(((ROWS - 1) * stride + out) * sizeof(float));
    float *values = pages.bytes, *weights = malloc((size_t)in * sizeof(float));
    for (size_t i = 0; i < (ROWS - 1) * stride + out; i++)
        values[i] = 7;
    run_matmul(&m, 0, ROWS, values, stride);
    for (int c = 0; c < out; c++) {
        tensor_unpack_row(&m.tensor, c, weights);
        for (int r = 0; r < ROWS; r++) {
            double sum = 0, size = 1e-6;
            for (int k = 0; k < in; k++) {
                sum += (double)m.inputs[r * in + k] * unit_value(kernels->unit, weights[k]);
                size += fabs((double)m.inputs[r * in + k] * weights[k]);
            }
            cr_assert(fabs(values[r * stride + c] - sum) <= size * 1e-5,
                      "%s %s %dx%d at %d,%d: %g, not %g", kernels->name, type->name, in, out, r, c,
                      values[r * stride + c], sum);
        }
    }
    for (int r = 0; r + 1 < ROWS; r++)
        for (size_t c = out; c < stride; c++)
            cr_assert_eq(values[r * stride + c], 7, "%s wrote behind its columns", kernels->name);
    free(weights);
    guard_pages_destroy(&pages);
    destroy_matmul(&m);
}

/* Every type, by every path that linear_multiply_block has: few rows, one pass, chunks; edges too.
 */
static void check_paths(const struct linear_kernels *kernels) {
    enum { ROWS = 35, OUT = 70, STRIDE = 73 };
    static const int counts[] = {1, 2, 3, 4, 5, 7, 12, 13, 16, 17, 35};
    static float all[ROWS][STRIDE], some[ROWS][STRIDE];
    for (size_t t = 0; t < quant_type_count(); t++) {
        int in = quant_type_at(t)->block_values == 1 ? 515 : 768;
        struct matmul m = make_matmul(kernels, quant_type_at(t), in, OUT, ROWS);
        for (int r = 0; r < ROWS; r++)
            run_matmul(&m, r, 1, all[r], STRIDE);
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            run_matmul(&m, 0, counts[i], some[0], STRIDE);
            for (int r = 0; r < counts[i]; r++)
                cr_assert_eq(memcmp(some[r], all[r], OUT * sizeof(float)), 0, "%s %s: row %d of %d",
                             kernels->name, quant_type_at(t)->name, r, counts[i]);
        }
        destroy_matmul(&m);
    }
}

Test(linear, bits_of_a_block_do_not_depend_on_the_row_count_for_any_type) {
    each_variant(check_paths);
}

static void check_blocks(const struct linear_kernels *kernels) {
    check_matmul(kernels, quant_type_find(QUANT_Q4_1), 576, 192);
    check_matmul(kernels, quant_type_find(QUANT_Q8_0), 608, 100);
    check_matmul(kernels, quant_type_find(QUANT_Q6_K), 768, 65);
    check_matmul(kernels, quant_type_find(QUANT_Q4_K), 256, 17);
    check_matmul(kernels, quant_type_find(QUANT_F32), 515, 70);
    check_matmul(kernels, quant_type_find(QUANT_BF16), 2, 64);
    check_matmul(kernels, quant_type_find(QUANT_F16), 1, 1);
}

Test(linear, blocks_write_their_own_columns_and_nothing_else) {
    each_variant(check_blocks);
}

static void check_release(const struct linear_kernels *kernels) {
    static float before[40][64], after[40][64];
    struct product product = make_product(kernels, 40, 70, 64, 14);
    if (kernels->release != NULL)
        kernels->release();
    run(&product, 0, 40, 64, before[0], 64, false);
    for (int i = 0; kernels->release != NULL && i < 2; i++)
        kernels->release();
    run(&product, 0, 40, 64, after[0], 64, false);
    cr_expect_eq(memcmp(before, after, sizeof before), 0, "%s", kernels->name);
    destroy_product(&product);
}

Test(linear, a_thread_may_give_the_unit_back_at_any_time) {
    each_variant(check_release);
}

static void check_ceilings(const struct linear_kernels *kernels) {
    float sink = 0.5f;
    cr_expect_gt(kernels->spin(10, &sink), 0);
    struct guard_pages pages = guard_pages_create(4096);
    kernels->read(pages.bytes, pages.byte_count);
    guard_pages_destroy(&pages);
}

Test(linear, ceilings_count_work_and_read_within_bounds) {
    each_variant(check_ceilings);
}

/* Parts follow each other without a gap or an empty one, and none is longer than stays in cache. */
static void check_parts(const struct linear_kernels *kernels) {
    static const int depths[] = {64, 576, 1536, 4864, 30000};
    for (int rows = 1; rows <= 1100; rows += rows < 100 ? 1 : 37)
        for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++) {
            int parts = linear_row_parts(kernels, depths[d], rows, 9, 4), before = 0;
            size_t row_bytes = linear_row_bytes(kernels->unit, depths[d]);
            cr_assert_geq(parts, 1);
            cr_assert_eq(linear_row_first(kernels, rows, parts, 0), 0);
            for (int part = 1; part <= parts; part++) {
                int end = linear_row_first(kernels, rows, parts, part), count = end - before;
                cr_assert(count > 0 && count <= 512 + kernels->pass_rows);
                cr_assert(count <= 64 + kernels->pass_rows ||
                          (size_t)(count - kernels->pass_rows) * row_bytes <= kernels->rows_bytes);
                before = end;
            }
            cr_assert_eq(before, rows);
        }
}

Test(linear, rows_are_cut_into_parts_that_stay_in_cache) {
    each_variant(check_parts);
}

Test(linear, few_blocks_for_many_workers_make_more_parts) {
    const struct linear_kernels *scalar = linear_variant_at(linear_variant_count() - 1);
    cr_expect_eq(linear_row_parts(scalar, 576, 512, 64, 2), 1);
    cr_expect_gt(linear_row_parts(scalar, 576, 512, 1, 8), 4);
    cr_expect_eq(linear_row_parts(scalar, 576, 31, 1, 8), 1);
}

/* Lines of 64 bytes, of which a cache of 48 KiB has 64 sets. */
Test(linear, sixteen_rows_never_meet_in_a_set) {
    for (int k = 1; k < 5000; k += 31)
        for (int unit = UNIT_F32; unit <= UNIT_BF16; unit++) {
            size_t stride = linear_row_stride((enum unit)unit, k);
            cr_assert_geq(stride, linear_row_bytes((enum unit)unit, k));
            cr_assert_leq(stride, linear_row_bytes((enum unit)unit, k) + 127);
            for (size_t row = 1; row < 16; row++)
                cr_assert_neq(row * stride / 64 % 64, 0);
        }
}

Test(linear, the_best_variant_comes_first_and_scalar_always_runs) {
    struct cpu_features none = {0};
    size_t last = linear_variant_count() - 1;
    cr_expect(linear_variant_at(last)->available(&none));
    for (size_t v = 0; v < last; v++)
        cr_expect_not(linear_variant_at(v)->available(&none));
}
