/* Linear kernels on the AMX tile unit: the rounding of the AVX-512 bf16 kernels, products of tiles.
 * Few rows are multiplied as their weights are decoded, in the same steps. */
#include "core/kernels/tiles_amx.h"

#include "core/kernels/kernels_variants.h"
#include "core/kernels/multiply_amx.h"
#include "core/kernels/multiply_avx512.h"
#include "core/kernels/panel_bf16_avx512.h"

enum {
    FEW_PAIR_BYTES = 2 * PANEL_COLUMNS * sizeof(uint16_t),
    FEW_STEP_BYTES = TILES_AMX_PAIRS * FEW_PAIR_BYTES,
};

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

/* One tile of rows × the block's 64 columns over the whole k. A step's pairs are decoded into one
 * of two buffers while the unit reads the other: the vector and the tile unit work at the same
 * time, and what a tile load reads has left the store buffer. */
struct few {
    const char *rows; /* at the step to multiply next */
    size_t row_stride;
    int steps;  /* decoded */
    int filled; /* bytes of the buffer being filled */
    _Alignas(64) uint8_t panel[2][FEW_STEP_BYTES];
};

ALWAYS_INLINE void few_product(struct few *few, const uint8_t *panel) {
    tiles_amx_ready();
    tiles_amx_load(4, few->rows, few->row_stride);
    tiles_amx_load(6, panel, FEW_PAIR_BYTES);
    tiles_amx_product(0, 4, 6);
    tiles_amx_load(7, panel + 64, FEW_PAIR_BYTES);
    tiles_amx_product(1, 4, 7);
    tiles_amx_load(6, panel + 128, FEW_PAIR_BYTES);
    tiles_amx_product(2, 4, 6);
    tiles_amx_load(7, panel + 192, FEW_PAIR_BYTES);
    tiles_amx_product(3, 4, 7);
    tiles_amx_ready();
    few->rows += TILES_AMX_ROW_BYTES;
}

ALWAYS_INLINE void few_take(void *sink, const __m512 *values) {
    struct few *few = sink;
    uint8_t *into = few->panel[few->steps % 2] + few->filled;
    panel_bf16_store_pair(&into, values);
    few->filled += FEW_PAIR_BYTES;
    if (few->filled < FEW_STEP_BYTES)
        return;
    if (few->steps > 0)
        few_product(few, few->panel[(few->steps - 1) % 2]);
    few->steps++;
    few->filled = 0;
}

static void multiply_few(const struct tile *tile, int block, const void *rows, size_t row_stride,
                         int row_count, float *out, size_t out_stride) {
    struct few few; /* not the panels */
    few.rows = rows, few.row_stride = row_stride;
    few.steps = few.filled = 0;
    const size_t stride = out_stride * sizeof(float);
    tiles_amx_shape(row_count, row_count, TILES_AMX_PAIRS);
    tiles_amx_zero(0);
    tiles_amx_zero(1);
    tiles_amx_zero(2);
    tiles_amx_zero(3);
    unpack_tile(tile, block, 0, tile->in, &few, few_take);
    if (few.steps > 0)
        few_product(&few, few.panel[(few.steps - 1) % 2]);
    tiles_amx_store(0, out, stride);
    tiles_amx_store(1, out + 16, stride);
    tiles_amx_store(2, out + 32, stride);
    tiles_amx_store(3, out + 48, stride);
    if (few.filled > 0)
        multiply_amx_panel(few.rows, row_stride, row_count, few.panel[few.steps % 2], PANEL_COLUMNS,
                           few.filled / FEW_PAIR_BYTES * 2, out, out_stride, PANEL_COLUMNS, true);
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
    .few_rows = TILES_AMX_ROWS,
    .multiply_few = multiply_few,
    .release = tiles_amx_release,
    .k_step = MULTIPLY_AMX_STEP,
    .chunk = 2048,
    .pass_rows = MULTIPLY_AMX_ROWS,
    .unpack_rows = 56,
    .rows_bytes = 5 << 18, /* of the 2 MiB of second-level cache all CPUs with AMX have */
    .spin = spin,
    .read = multiply_read,
};
