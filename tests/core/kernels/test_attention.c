/* Attention kernels one by one: every variant this CPU has against double, right before guard
 * pages, with odd row counts. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu_features.h"
#include "core/kernels/attention_page.h"
#include "core/kernels/kernels.h"
#include "core/weights/quant_type.h"
#include "tests/support/guard_pages.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/random_tensor.h"

static const struct attention_kernels *variant(size_t index) {
    struct cpu_features features = cpu_features_detect();
    features.avx512_bf16_fast = features.avx512_bf16;
    const struct attention_kernels *kernels = kernel_variants_attention_at(index);
    return kernels->available(&features) ? kernels : NULL;
}

static size_t element_bytes(const struct attention_kernels *kernels) {
    return kernels->unit == UNIT_BF16 ? sizeof(uint16_t) : sizeof(float);
}

static float read_unit(const struct attention_kernels *kernels, const void *values, size_t index) {
    return kernels->unit == UNIT_BF16 ? quant_type_bf16_to_f32(((const uint16_t *)values)[index])
                                      : ((const float *)values)[index];
}

static float rounded(const struct attention_kernels *kernels, float value) {
    return kernels->unit == UNIT_BF16 ? quant_type_bf16_to_f32(quant_type_f32_to_bf16(value))
                                      : value;
}

static void check_product(const struct attention_kernels *kernels, int rows, int k, int columns,
                          int panel_columns, bool accumulate) {
    uint64_t seed = (uint64_t)(rows * 1000 + k);
    size_t stride = (size_t)k * element_bytes(kernels), panel_count = (size_t)k * panel_columns;
    struct guard_pages row_pages = guard_pages_create((size_t)rows * stride);
    struct guard_pages panel_pages = guard_pages_create(panel_count * sizeof(uint16_t));
    struct guard_pages out_pages = guard_pages_create((size_t)(rows * columns) * sizeof(float));
    uint16_t *panel = panel_pages.bytes;
    float *out = out_pages.bytes, in[256];
    for (size_t i = 0; i < panel_count; i++)
        panel[i] = quant_type_f32_to_bf16(random_tensor_float(&seed));
    for (int r = 0; r < rows; r++) {
        for (int i = 0; i < k; i++)
            in[i] = random_tensor_float(&seed);
        kernels->convert_query(in, k, 0.5f, (char *)row_pages.bytes + (size_t)r * stride);
    }
    for (int i = 0; i < rows * columns; i++)
        out[i] = 3;
    kernels->multiply_pairs(row_pages.bytes, stride, rows, panel, panel_columns, k, out,
                            (size_t)columns, columns, accumulate);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            double sum = accumulate ? 3 : 0;
            for (int i = 0; i < k; i++)
                sum += (double)read_unit(kernels, row_pages.bytes, (size_t)(r * k + i)) *
                       quant_type_bf16_to_f32(panel[(i / 2 * panel_columns + c) * 2 + i % 2]);
            cr_assert(fabs(out[r * columns + c] - sum) < 1e-5 * (k + 3), "%s %d %d: %g, not %g",
                      kernels->name, r, c, out[r * columns + c], sum);
        }
    guard_pages_destroy(&row_pages);
    guard_pages_destroy(&panel_pages);
    guard_pages_destroy(&out_pages);
}

Test(attention, products) {
    for (size_t v = 0; v < kernel_variants_attention_count(); v++) {
        if (variant(v) == NULL)
            continue;
        for (int rows = 1; rows <= 50; rows += rows < 13 ? 1 : 3)
            check_product(variant(v), rows, 64, 64, 64, rows % 2 == 0);
        check_product(variant(v), 33, 80, 64, 64, false);
        check_product(variant(v), 7, 2, 16, 16, false);
        check_product(variant(v), 5, 64, 48, 64, true);
        check_product(variant(v), 24, 64, 80, 80, true);
        check_product(variant(v), 9, 128, 32, 96, false);
        check_product(variant(v), 3, 64, 256, 256, false);
    }
}

/* A row's products do not depend on the rows beside it, nor on how many columns are asked for. */
Test(attention, products_of_a_row_alone_are_the_same) {
    enum { ROWS = 45, K = 80, COLUMNS = 80 };
    uint64_t seed = 5;
    static uint16_t panel[K * COLUMNS];
    for (size_t i = 0; i < K * COLUMNS; i++)
        panel[i] = quant_type_f32_to_bf16(random_tensor_float(&seed));
    for (size_t v = 0; v < kernel_variants_attention_count(); v++) {
        const struct attention_kernels *kernels = variant(v);
        if (kernels == NULL)
            continue;
        float in[K], all[ROWS][COLUMNS], one[COLUMNS];
        char rows[ROWS][K * sizeof(float)];
        for (int r = 0; r < ROWS; r++) {
            for (int i = 0; i < K; i++)
                in[i] = random_tensor_float(&seed);
            kernels->convert_query(in, K, 1, rows[r]);
        }
        kernels->multiply_pairs(rows, sizeof rows[0], ROWS, panel, COLUMNS, K, all[0], COLUMNS,
                                COLUMNS, false);
        for (int r = 0; r < ROWS; r++) {
            for (int c = 0; c < COLUMNS; c += 16)
                kernels->multiply_pairs(rows[r], sizeof rows[0], 1, panel + 2 * c, COLUMNS, K,
                                        one + c, COLUMNS, 16, false);
            cr_assert_arr_eq(one, all[r], sizeof one);
        }
    }
}

Test(attention, softmax_page) {
    enum { ROWS = 3 };
    for (size_t v = 0; v < kernel_variants_attention_count(); v++) {
        const struct attention_kernels *kernels = variant(v);
        if (kernels == NULL)
            continue;
        struct guard_pages out = guard_pages_create(ROWS * PANEL_COLUMNS * element_bytes(kernels));
        struct guard_pages in = guard_pages_create(ROWS * PANEL_COLUMNS * sizeof(float));
        float *scores = in.bytes;
        float row_max[ROWS] = {-INFINITY, 2, -100}, factors[ROWS];
        float row_sum[ROWS][SOFTMAX_LANES] = {{0}, {4}, {4}};
        uint64_t seed = 11;
        for (int i = 0; i < ROWS * PANEL_COLUMNS; i++)
            scores[i] = i % 7 == 3 ? -INFINITY : 9 * random_tensor_float(&seed);
        kernels->softmax_page(scores, ROWS, out.bytes, row_max, row_sum[0], factors);
        cr_expect(row_max[0] > 8 && row_max[0] <= 9, "a first page sets the maximum");
        cr_expect(row_max[1] == 2 && factors[1] == 1, "within 8 of the maximum nothing moves");
        cr_expect(row_max[2] == scores[0] || row_max[2] > 8);
        cr_expect_float_eq(factors[2], exp2(-100.0 - row_max[2]), 1e-30);
        for (int r = 0; r < ROWS; r++) {
            double sum = r == 1 ? 4 : r == 2 ? 4 * factors[2] : 0, lanes = 0;
            for (int i = 0; i < PANEL_COLUMNS; i++) {
                size_t at = (size_t)(r * PANEL_COLUMNS + i);
                double expected = exp2(scores[at] - row_max[r]);
                float found = read_unit(kernels, out.bytes, at);
                double allowed = kernels->unit == UNIT_BF16 ? 1.0 / 250 : 3e-7;
                cr_assert(fabs(found - expected) <= allowed * expected, "%s: 2^%g: %g, not %g",
                          kernels->name, scores[at] - row_max[r], found, expected);
                sum += found;
            }
            for (int i = 0; i < SOFTMAX_LANES; i++)
                lanes += row_sum[r][i];
            cr_expect_float_eq(lanes, sum, 1e-5 * sum, "%s: sums the rounded values",
                               kernels->name);
        }
        guard_pages_destroy(&out);
        guard_pages_destroy(&in);
    }
}

Test(attention, softmax_of_whole_numbers_is_exact) {
    for (size_t v = 0; v < kernel_variants_attention_count(); v++) {
        const struct attention_kernels *kernels = variant(v);
        if (kernels == NULL)
            continue;
        float scores[PANEL_COLUMNS], row_max = -INFINITY, row_sum[SOFTMAX_LANES] = {0}, factor;
        float out[PANEL_COLUMNS];
        for (int i = 0; i < PANEL_COLUMNS; i++)
            scores[i] = (float)(5 - i);
        kernels->softmax_page(scores, 1, out, &row_max, row_sum, &factor);
        for (int i = 0; i < PANEL_COLUMNS; i++)
            cr_assert_eq(read_unit(kernels, out, (size_t)i), exp2f((float)-i));
    }
}

Test(attention, scaling_and_blending_rows) {
    for (size_t v = 0; v < kernel_variants_attention_count(); v++) {
        const struct attention_kernels *kernels = variant(v);
        for (int count = 1; kernels != NULL && count < 40; count++) {
            struct guard_pages a = guard_pages_create((size_t)count * sizeof(float));
            struct guard_pages b = guard_pages_create((size_t)count * sizeof(float));
            float *into = a.bytes, *from = b.bytes;
            for (int i = 0; i < count; i++)
                into[i] = (float)i, from[i] = (float)(100 + i);
            kernels->scale_row(into, count, 0.5f);
            kernels->blend_row(into, 2, from, 0.25f, count);
            for (int i = 0; i < count; i++)
                cr_assert_eq(into[i], (float)i + 0.25f * (float)(100 + i));
            guard_pages_destroy(&a);
            guard_pages_destroy(&b);
        }
    }
}

Test(attention, convert_query_rounds_the_scaled_value) {
    for (size_t v = 0; v < kernel_variants_attention_count(); v++) {
        const struct attention_kernels *kernels = variant(v);
        for (int count = 1; kernels != NULL && count < 40; count++) {
            struct guard_pages in = guard_pages_create((size_t)count * sizeof(float));
            struct guard_pages out = guard_pages_create((size_t)count * element_bytes(kernels));
            float *values = in.bytes;
            for (int i = 0; i < count; i++)
                values[i] = 1.0f / (float)(i + 3);
            kernels->convert_query(values, count, 0.3f, out.bytes);
            for (int i = 0; i < count; i++)
                cr_assert_eq(read_unit(kernels, out.bytes, (size_t)i),
                             rounded(kernels, values[i] * 0.3f));
            guard_pages_destroy(&in);
            guard_pages_destroy(&out);
        }
    }
}

/* All variants expand int8 parts to the same bits as the scalar one. */
Test(attention, expansion_of_int8) {
    enum { DIM = 48, COUNT = DIM * PANEL_COLUMNS };
    static int8_t in[COUNT];
    static uint16_t expected[COUNT];
    float scales[PANEL_COLUMNS];
    uint64_t seed = 9;
    for (int i = 0; i < COUNT; i++)
        in[i] = (int8_t)(random_tensor_next(&seed) % 255 - 127);
    for (int i = 0; i < PANEL_COLUMNS; i++)
        scales[i] = i == 20 ? NAN : 0.01f * fabsf(random_tensor_float(&seed));
    for (int values = 0; values < 2; values++)
        for (size_t v = kernel_variants_attention_count(); v-- > 0;) {
            const struct attention_kernels *kernels = variant(v);
            if (kernels == NULL)
                continue;
            struct guard_pages out = guard_pages_create(sizeof expected);
            if (values)
                kernels->expand_values(in, scales, DIM, out.bytes);
            else
                kernels->expand_keys(in, scales, DIM, out.bytes);
            if (v == kernel_variants_attention_count() - 1)
                memcpy(expected, out.bytes, sizeof expected);
            const uint16_t *found = out.bytes;
            for (int i = 0; i < COUNT; i++)
                cr_assert(found[i] == expected[i] || (isnan(quant_type_bf16_to_f32(found[i])) &&
                                                      isnan(quant_type_bf16_to_f32(expected[i]))),
                          "%s: %d", kernels->name, i);
            guard_pages_destroy(&out);
        }
}
