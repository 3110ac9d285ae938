/* The AMX kernels as they ship, instruction by instruction, against the same source over emulated
 * tile registers. On a CPU without the unit the instructions are trapped, and the bits are the
 * same; with it, the unit's own arithmetic must come close to what its manual says. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu_features.h"
#include "core/kernels/kernels_variants.h"
#include "core/kernels/tile.h"
#include "core/weights/quant_type.h"
#include "tests/support/emulated/tiles_trap.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/random_tensor.h"

enum { ROWS_MAX = 70, K_MAX = 742, COLUMNS_MAX = 128, OUT_STRIDE = 131 };

/* Whether the unit is there; then it computes itself, else every bit is the emulation's. */
static bool begin(void) {
    struct cpu_features features = cpu_features_detect();
    if (!features.avx512 || !features.avx512_bf16)
        cr_skip_test("this CPU has not even the conversions");
    if (!features.amx_bf16)
        tiles_trap_install();
    return features.amx_bf16;
}

static bool agree(float a, float b, bool unit) {
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (unit && isfinite(a) && isfinite(b))
        return fabsf(a - b) <= 1e-3f + 1e-4f * fabsf(b);
    return memcmp(&a, &b, sizeof a) == 0;
}

static uint16_t *random_halves(size_t count, uint64_t seed) {
    uint16_t *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = quant_type_f32_to_bf16(random_tensor_float(&seed));
    return values;
}

struct operands {
    const uint16_t *rows; /* [ROWS_MAX][K_MAX] */
    const uint16_t *panel;
    int row_count, k, column_count;
    bool accumulate;
};

/* Both give the registers back: under the trap they share the emulated ones. */
static void multiply(const struct linear_kernels *kernels, const struct operands *what,
                     float *out) {
    for (int i = 0; i < ROWS_MAX * OUT_STRIDE; i++)
        out[i] = (float)i;
    kernels->multiply(what->rows, K_MAX * sizeof *what->rows, what->row_count, what->panel,
                      what->column_count, what->k, out, OUT_STRIDE, what->column_count,
                      what->accumulate);
    kernels->release();
}

static void compare(const struct operands *what, bool unit) {
    static float found[ROWS_MAX * OUT_STRIDE], expected[ROWS_MAX * OUT_STRIDE];
    multiply(&linear_amx, what, found);
    multiply(kernel_variants_linear_at(0), what, expected);
    for (int i = 0; i < ROWS_MAX * OUT_STRIDE; i++)
        cr_assert(agree(found[i], expected[i], unit),
                  "%d rows, k %d, %d columns: row %d, column %d: %a, not %a", what->row_count,
                  what->k, what->column_count, i / OUT_STRIDE, i % OUT_STRIDE, found[i],
                  expected[i]);
}

Test(tiles_amx, instructions_do_what_the_emulation_does) {
    static const int depths[] = {2, 32, 40, 64, K_MAX};
    static const int row_counts[] = {1, 3, 16, 17, 32, 45, ROWS_MAX};
    bool unit = begin();
    uint16_t *rows = random_halves(ROWS_MAX * K_MAX, 1);
    uint16_t *panel = random_halves(K_MAX * COLUMNS_MAX, 2);
    for (size_t d = 0; d < sizeof depths / sizeof depths[0]; d++)
        for (size_t r = 0; r < sizeof row_counts / sizeof row_counts[0]; r++)
            for (int columns = 16; columns <= COLUMNS_MAX; columns += 16)
                compare(&(struct operands){rows, panel, row_counts[r], depths[d], columns,
                                           columns % 32 == 0},
                        unit);
    free(rows);
    free(panel);
}

enum { BLOCK_IN = 544, BLOCK_OUT = 70 };

static void multiply_blocks(const struct linear_kernels *kernels, const struct tile_set *set,
                            const uint16_t *rows, int row_count, float *out) {
    struct linear_task task = {
        .rows = rows,
        .row_stride = K_MAX * sizeof *rows,
        .row_count = row_count,
        .out = out,
        .out_stride = OUT_STRIDE,
        .panel = aligned_alloc(64, linear_panel_bytes(kernels)),
    };
    for (int i = 0; i < set->block_count; i++) {
        struct tile_block block = tile_set_block(set, i);
        linear_multiply_block(kernels, &block, &task);
    }
    kernels->release();
    free(task.panel);
}

static void compare_blocks(enum quant_id type, int in, const uint16_t *rows, bool unit) {
    static float found[ROWS_MAX * OUT_STRIDE], expected[ROWS_MAX * OUT_STRIDE];
    struct tensor tensor = random_tensor_create(quant_type_find(type), in, BLOCK_OUT, 5);
    const struct tensor *parts[] = {&tensor};
    struct tile_set set;
    struct error error;
    cr_assert_eq(tile_set_create(&set, parts, 1, &error), STATUS_OK);
    for (int i = 0; i < set.block_count; i++)
        tile_set_pack_block(&set, parts, i);
    for (int row_count = 1; row_count <= 49; row_count += 6) {
        multiply_blocks(&linear_amx, &set, rows, row_count, found);
        multiply_blocks(kernel_variants_linear_at(0), &set, rows, row_count, expected);
        for (int i = 0; i < row_count * OUT_STRIDE; i++)
            cr_assert(agree(found[i], expected[i], unit), "%d rows at %d: %a, not %a", row_count, i,
                      found[i], expected[i]);
    }
    tile_set_destroy(&set);
    random_tensor_destroy(&tensor);
}

/* With few rows the weights are multiplied as they are decoded. */
Test(tiles_amx, blocks_of_weights) {
    bool unit = begin();
    uint16_t *rows = random_halves(ROWS_MAX * K_MAX, 6);
    for (int r = 0; r < ROWS_MAX; r++)
        rows[r * K_MAX + 515] = 0; /* behind an odd end */
    compare_blocks(QUANT_Q4_1, BLOCK_IN, rows, unit);
    compare_blocks(QUANT_F32, 515, rows, unit);
    free(rows);
}

/* 2^-133 × 2^127 would be a plain number; this thread does not flush. */
Test(tiles_amx, denormals_are_zero) {
    static float out[ROWS_MAX * OUT_STRIDE];
    static uint16_t rows[ROWS_MAX * K_MAX] = {0x0001, 0x3f80}, panel[2 * COLUMNS_MAX];
    begin();
    for (int column = 0; column < 16; column++)
        panel[2 * column] = 0x7f00, panel[2 * column + 1] = 0x4000;
    multiply(&linear_amx, &(struct operands){rows, panel, 1, 2, 16, false}, out);
    for (int column = 0; column < 16; column++)
        cr_assert_eq(out[column], 2);
}

/* Infinities and what is not a number pass through. */
Test(tiles_amx, unusual_values) {
    static const uint16_t unusual[] = {0x0001, 0x807f, 0x0080, 0x8080, 0x7f7f, 0xff7f,
                                       0x7f80, 0xff80, 0x7fc0, 0x8000, 0x0000, 0x3f80};
    enum { UNUSUAL = sizeof unusual / sizeof unusual[0], ROWS = 12, K = 34, COLUMNS = 16 };
    bool unit = begin();
    uint16_t *rows = random_halves(ROWS_MAX * K_MAX, 3);
    uint16_t *panel = random_halves(K * COLUMNS, 4);
    for (int r = 0; r < ROWS; r++)
        for (int k = 0; k < K; k++)
            rows[r * K_MAX + k] = k < r ? unusual[(r + k) % UNUSUAL] : 0;
    for (int i = 0; i < K * COLUMNS; i++)
        panel[i] = i % 3 == 0 ? unusual[i / 3 % UNUSUAL] : panel[i];
    compare(&(struct operands){rows, panel, ROWS, K, COLUMNS, false}, unit);
    free(rows);
    free(panel);
}

Test(tiles_amx, spinning_counts_what_it_does) {
    begin();
    float sink = 0;
    cr_expect_eq(linear_amx.spin(5, &sink), 5 * 4 * 2 * 16 * 16 * 32);
    cr_expect_eq(sink, 5 * 32);
    linear_amx.release();
}
