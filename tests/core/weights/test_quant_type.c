/* Tensor types: every row of the table against bytes and values made by the PyPI package gguf
 * (scripts/make_quant_golden.py), bit for bit; and the half-precision conversions over all halves.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/weights/quant_type.h"
#include "core/weights/tensor.h"

struct golden {
    uint8_t *file;
    uint32_t block_count;
    const uint8_t *blocks;
    const uint8_t *values;
    size_t value_count;
};

static struct golden load_golden(const struct quant_type *type) {
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/quant/%s.bin", SHEAF_SOURCE_DIR, type->name);
    FILE *file = fopen(path, "rb");
    cr_assert(file, "no golden %s", path);
    struct golden golden = {.file = malloc(1 << 16)};
    size_t length = fread(golden.file, 1, 1 << 16, file);
    fclose(file);
    memcpy(&golden.block_count, golden.file, 4);
    golden.blocks = golden.file + 4;
    golden.values = golden.blocks + (size_t)golden.block_count * type->block_bytes;
    golden.value_count = (size_t)golden.block_count * type->block_values;
    cr_assert_eq(length, 4 + golden.block_count * type->block_bytes + 4 * golden.value_count,
                 "%s: size", type->name);
    return golden;
}

Test(quant_type, every_type_unpacks_as_the_oracle_bit_for_bit) {
    cr_assert_eq(quant_type_count(), 15);
    for (size_t i = 0; i < quant_type_count(); i++) {
        const struct quant_type *type = quant_type_at(i);
        struct golden golden = load_golden(type);
        float *out = malloc(golden.value_count * sizeof *out);
        type->unpack(golden.blocks, golden.block_count, out);
        for (size_t j = 0; j < golden.value_count; j++) {
            float expected;
            memcpy(&expected, golden.values + 4 * j, 4);
            cr_assert(memcmp(&expected, &out[j], 4) == 0, "%s value %zu: %a, expected %a",
                      type->name, j, (double)out[j], (double)expected);
        }
        free(out);
        free(golden.file);
    }
}

/* The block ends where its allocation ends and begins at an odd address: sanitizers see a wrong
 * offset, alignment checks a cast. */
Test(quant_type, blocks_need_no_alignment_and_nothing_behind_them_is_read) {
    for (size_t i = 0; i < quant_type_count(); i++) {
        const struct quant_type *type = quant_type_at(i);
        struct golden golden = load_golden(type);
        uint8_t *odd = malloc(1 + type->block_bytes);
        float out[256];
        memcpy(odd + 1, golden.blocks, type->block_bytes);
        type->unpack(odd + 1, 1, out);
        cr_assert(memcmp(out, golden.values, type->block_values * sizeof(float)) == 0, "%s",
                  type->name);
        free(odd);
        free(golden.file);
    }
}

Test(quant_type, a_tensor_row_is_found_by_its_stride) {
    const struct quant_type *type = quant_type_find(QUANT_Q4_K);
    struct golden golden = load_golden(type);
    struct tensor tensor = {.name = "t",
                            .type = type,
                            .dim_count = 2,
                            .dims = {512, 3, 1, 1},
                            .row_count = 3,
                            .bytes = golden.blocks,
                            .row_bytes = 288,
                            .byte_count = 864};
    float row[512];
    tensor_unpack_row(&tensor, 2, row);
    cr_assert(memcmp(row, golden.values + 2 * sizeof row, sizeof row) == 0);
    free(golden.file);
}

Test(quant_type, ids_are_found_and_foreign_ones_named) {
    char buffer[32];
    for (size_t i = 0; i < quant_type_count(); i++)
        cr_assert_eq(quant_type_find((uint32_t)quant_type_at(i)->id), quant_type_at(i));
    static const uint32_t dead[] = {4, 5, 31, 32, 33, 36, 37, 38};
    for (size_t i = 0; i < sizeof dead / sizeof dead[0]; i++) {
        cr_assert_null(quant_type_find(dead[i]));
        cr_assert(strstr(quant_type_foreign_name(dead[i], buffer, sizeof buffer), "(removed)"));
    }
    cr_assert_str_eq(quant_type_foreign_name(39, buffer, sizeof buffer), "MXFP4");
    cr_assert_str_eq(quant_type_foreign_name(12, buffer, sizeof buffer), "Q4_K");
    cr_assert_str_eq(quant_type_foreign_name(77, buffer, sizeof buffer), "type 77");
    cr_assert_null(quant_type_at(quant_type_count()));
}

static double half_value(uint16_t half) {
    int exponent = half >> 10 & 31;
    double mantissa = half & 0x3ff;
    double magnitude = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return half & 0x8000 ? -magnitude : magnitude;
}

Test(quant_type, every_half_converts_exactly_and_back) {
    for (uint32_t half = 0; half <= 0xffff; half++) {
        float value = quant_type_f16_to_f32((uint16_t)half);
        if ((half & 0x7c00) == 0x7c00) {
            bool nan = half & 0x3ff;
            cr_assert(nan ? isnan(value) : isinf(value), "%04x", half);
            cr_assert(nan ? isnan(quant_type_f16_to_f32(quant_type_f32_to_f16(value)))
                          : quant_type_f32_to_f16(value) == half);
            continue;
        }
        cr_assert(value == half_value((uint16_t)half), "%04x: %a", half, (double)value);
        cr_assert_eq(quant_type_f32_to_f16(value), half, "%04x", half);
    }
}

Test(quant_type, floats_round_to_the_nearest_half_ties_to_even) {
    for (uint16_t half = 0; half < 0x7bff; half++) {
        double low = half_value(half);
        double high = half_value((uint16_t)(half + 1));
        float middle = (float)((low + high) / 2);
        uint16_t even = half & 1 ? (uint16_t)(half + 1) : half;
        cr_assert_eq(quant_type_f32_to_f16(middle), even, "middle above %04x", half);
        cr_assert_eq(quant_type_f32_to_f16(nextafterf(middle, 0)), half, "below, %04x", half);
        cr_assert_eq(quant_type_f32_to_f16(-nextafterf(middle, 1e9f)), (half + 1) | 0x8000,
                     "above, %04x", half);
    }
    cr_assert_eq(quant_type_f32_to_f16(65519.0f), 0x7bff);
    cr_assert_eq(quant_type_f32_to_f16(65520.0f), 0x7c00);
    cr_assert_eq(quant_type_f32_to_f16(-1e30f), 0xfc00);
}

Test(quant_type, bfloat_rounds_to_nearest_even_and_keeps_nan) {
    cr_assert_eq(quant_type_f32_to_bf16(1.0f), 0x3f80);
    cr_assert_eq(quant_type_f32_to_bf16(1.00390625f), 0x3f80); /* tie, even below */
    cr_assert_eq(quant_type_f32_to_bf16(1.01171875f), 0x3f82); /* tie, even above */
    cr_assert_eq(quant_type_f32_to_bf16(nextafterf(1.00390625f, 2)), 0x3f81);
    cr_assert_eq(quant_type_f32_to_bf16(3.4028235e38f), 0x7f80); /* overflows to infinity */
    cr_assert(isnan(quant_type_bf16_to_f32(quant_type_f32_to_bf16(NAN))));
    cr_assert(quant_type_bf16_to_f32(0xbf80) == -1.0f);
}
