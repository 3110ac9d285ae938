/* Linear kernels on the AMX tile unit: the rounding of the AVX-512 bf16 kernels, products of tiles.
 * There is no shortcut for few rows: only the unit itself adds up in the unit's order. */
#include "core/kernels/tiles_amx.h"

#include "core/kernels/kernels_variants.h"
#include "core/kernels/multiply_amx.h"
#include "core/kernels/multiply_avx512.h"
#include "core/kernels/panel_bf16_avx512.h"

#if defined(TILES_AMX_EMULATED)
#define NAME "amx-bf16-emulated"
#else
#define NAME "amx-bf16"
#endif

static bool available(const struct cpu_features *features) {
#if defined(TILES_AMX_EMULATED)
    return features->avx512 && features->avx512_bf16;
#else
    return features->avx512 && features->avx512_bf16 && features->amx_bf16;
#endif
}

/* Four sums in turn, no memory: as many products in flight as a product is deep. */
static uint64_t spin(int rounds, float *sink) {
    enum { PRODUCTS = 4, OPERATIONS = 2 * 16 * 16 * 32 };
    float sums[TILES_AMX_ROWS][TILES_AMX_COLUMNS];
    uint32_t ones[TILES_AMX_ROWS][TILES_AMX_PAIRS];
    for (int i = 0; i < TILES_AMX_ROWS; i++)
        for (int j = 0; j < TILES_AMX_PAIRS; j++)
            ones[i][j] = 0x3f803f80;
    tiles_amx_shape(TILES_AMX_ROWS, TILES_AMX_ROWS, TILES_AMX_PAIRS);
    tiles_amx_ready();
    tiles_amx_zero(0);
    tiles_amx_zero(1);
    tiles_amx_zero(2);
    tiles_amx_zero(3);
    tiles_amx_load(4, ones, sizeof ones[0]);
    tiles_amx_load(5, ones, sizeof ones[0]);
    tiles_amx_load(6, ones, sizeof ones[0]);
    tiles_amx_load(7, ones, sizeof ones[0]);
    for (int round = 0; round < rounds; round++) {
        tiles_amx_product(0, 4, 6);
        tiles_amx_product(1, 4, 7);
        tiles_amx_product(2, 5, 6);
        tiles_amx_product(3, 5, 7);
    }
    tiles_amx_store(3, sums, sizeof sums[0]);
    *sink += sums[0][0];
    return (uint64_t)rounds * PRODUCTS * OPERATIONS;
}

const struct linear_kernels linear_amx = {
    .name = NAME,
    .unit = UNIT_BF16,
    .available = available,
    .convert_row = panel_bf16_convert_row,
    .multiply = multiply_amx_panel,
    .unpack_panel = panel_bf16_unpack,
    .release = tiles_amx_release,
    .k_step = MULTIPLY_AMX_STEP,
    .chunk = 2048,
    .pass_rows = MULTIPLY_AMX_ROWS,
    .unpack_rows = 56,
    .rows_bytes = 5 << 18, /* of the 2 MiB of second-level cache all CPUs with AMX have */
    .spin = spin,
    .read = multiply_read,
};
