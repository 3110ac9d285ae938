/* The tile registers and their instructions in C, after the operation sections of Intel's manual
 * (volume 2: LDTILECFG, TILEZERO, TILELOADD, TILESTORED, TDPBF16PS). What the processor answers
 * with a fault ends the test here: registers without a shape, shapes that do not fit each other. */
#undef NDEBUG
#include <assert.h>
#include <immintrin.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/kernels/tiles_amx.h"

enum { TILES = 8, COLUMNS = 16, FLUSH_DAZ_NO_TRAPS = 0x9fc0 };

struct tile_register {
    int rows, row_bytes;
    uint8_t bytes[TILES_AMX_ROWS][TILES_AMX_ROW_BYTES];
};

static _Thread_local struct tile_register registers[TILES];
static _Thread_local bool configured;

void tiles_emulated_configure(const struct tiles_amx_config *config) {
    static const uint8_t zeros[sizeof config->reserved];
    assert(config->palette == 1 && config->start_row == 0);
    assert(memcmp(config->reserved, zeros, sizeof zeros) == 0);
    memset(registers, 0, sizeof registers);
    for (int i = 0; i < 16; i++) {
        int rows = config->rows[i], row_bytes = config->row_bytes[i];
        assert(rows <= TILES_AMX_ROWS && row_bytes <= TILES_AMX_ROW_BYTES);
        assert((rows == 0) == (row_bytes == 0));
        assert(i < TILES || rows == 0);
        if (i < TILES)
            registers[i].rows = rows, registers[i].row_bytes = row_bytes;
    }
    configured = true;
}

void tiles_emulated_unconfigure(void) {
    memset(registers, 0, sizeof registers);
    configured = false;
}

static struct tile_register *usable(int tile) {
    assert(configured && tile >= 0 && tile < TILES && registers[tile].rows > 0);
    return &registers[tile];
}

void tiles_emulated_zero(int tile) {
    struct tile_register *into = usable(tile);
    memset(into->bytes, 0, sizeof into->bytes);
}

void tiles_emulated_load(int tile, const void *from, size_t stride) {
    struct tile_register *into = usable(tile);
    memset(into->bytes, 0, sizeof into->bytes);
    for (int r = 0; r < into->rows; r++)
        memcpy(into->bytes[r], (const char *)from + (size_t)r * stride, (size_t)into->row_bytes);
}

void tiles_emulated_store(int tile, void *to, size_t stride) {
    const struct tile_register *from = usable(tile);
    for (int r = 0; r < from->rows; r++)
        memcpy((char *)to + (size_t)r * stride, from->bytes[r], (size_t)from->row_bytes);
}

static void widen(const uint8_t bytes[TILES_AMX_ROW_BYTES], float even[COLUMNS],
                  float odd[COLUMNS]) {
    for (int i = 0; i < COLUMNS; i++) {
        uint32_t pair, low;
        memcpy(&pair, bytes + 4 * i, sizeof pair);
        low = pair << 16;
        pair &= 0xffff0000u;
        memcpy(&even[i], &low, sizeof low);
        memcpy(&odd[i], &pair, sizeof pair);
    }
}

/* One row of sums: even and odd inputs apart, each by fused multiply-add, then both added. */
static void add_row(float sums[COLUMNS], const uint8_t row[TILES_AMX_ROW_BYTES],
                    const struct tile_register *panel) {
    float even_sums[COLUMNS] = {0}, odd_sums[COLUMNS] = {0};
    float even_inputs[COLUMNS], odd_inputs[COLUMNS], even[COLUMNS], odd[COLUMNS];
    widen(row, even_inputs, odd_inputs);
    for (int k = 0; k < panel->rows; k++) {
        widen(panel->bytes[k], even, odd);
        for (int n = 0; n < COLUMNS; n++) {
            even_sums[n] = fmaf(even_inputs[k], even[n], even_sums[n]);
            odd_sums[n] = fmaf(odd_inputs[k], odd[n], odd_sums[n]);
        }
    }
    for (int n = 0; n < COLUMNS; n++)
        sums[n] += even_sums[n] + odd_sums[n];
}

static __attribute__((noinline)) void add_rows(struct tile_register *sums,
                                               const struct tile_register *rows,
                                               const struct tile_register *panel) {
    for (int r = 0; r < sums->rows; r++) {
        float values[COLUMNS];
        memcpy(values, sums->bytes[r], sizeof values);
        add_row(values, rows->bytes[r], panel);
        memcpy(sums->bytes[r], values, (size_t)sums->row_bytes);
    }
}

/* The unit rounds to nearest even and flushes denormals, whatever the thread's mode. */
void tiles_emulated_product(int sums, int rows, int panel) {
    struct tile_register *into = usable(sums);
    const struct tile_register *left = usable(rows), *right = usable(panel);
    assert(sums != rows && sums != panel && rows != panel);
    assert(into->rows == left->rows && into->row_bytes == right->row_bytes);
    assert(left->row_bytes == 4 * right->rows);
    unsigned mode = _mm_getcsr();
    _mm_setcsr(FLUSH_DAZ_NO_TRAPS);
    add_rows(into, left, right);
    _mm_setcsr(mode);
}
