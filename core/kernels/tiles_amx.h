/* The tile registers of AMX: eight of 16 rows × 64 bytes, of which the products here use
 *   0 1   sums [rows][16 columns], first rows     4   inputs [rows][pairs], first rows
 *   2 3   sums, second rows                       5   inputs, second rows
 *   6 7   panel [pairs][16 columns][2]
 * A register's shape is part of the processor's state and expensive to change, which also zeroes
 * the registers. Fewer rows or pairs than 16 are a shape of their own: then nothing beyond them is
 * read, written or computed.
 *
 * With TILES_AMX_EMULATED the same source runs without the unit: the names below stand for plain C
 * (tests/support/tiles_emulated.c) and the kernels get other names, so that both fit one program.
 * Register numbers are literals: the compiler's intrinsics paste them into the instruction. */
#ifndef CORE_KERNELS_TILES_AMX_H
#define CORE_KERNELS_TILES_AMX_H

#include <stddef.h>
#include <stdint.h>

#if defined(TILES_AMX_EMULATED)
#define linear_amx linear_amx_emulated
#define attention_amx attention_amx_emulated
#define tiles_amx_shape tiles_emulated_shape
#define tiles_amx_release tiles_emulated_release
#endif

enum {
    TILES_AMX_ROWS = 16,    /* of inputs and sums in a register */
    TILES_AMX_PAIRS = 16,   /* of inputs in a register's row */
    TILES_AMX_COLUMNS = 16, /* of a panel and of sums */
    TILES_AMX_ROW_BYTES = 64,
};

/* The operand of LDTILECFG. */
struct tiles_amx_config {
    uint8_t palette;
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Shapes this thread's registers unless they have that shape already; afterwards their contents are
 * undefined. 1 to 16 each. What was written to memory before is visible to loads after. */
void tiles_amx_shape(int first_rows, int second_rows, int pairs);

/* Gives the registers back: a context switch need not save them and the core may sleep deeply. */
void tiles_amx_release(void);

#if defined(TILES_AMX_EMULATED)
void tiles_emulated_configure(const struct tiles_amx_config *config);
void tiles_emulated_unconfigure(void);
void tiles_emulated_zero(int tile);
void tiles_emulated_load(int tile, const void *from, size_t stride);
void tiles_emulated_store(int tile, void *to, size_t stride);
void tiles_emulated_product(int sums, int rows, int panel);

#define tiles_amx_zero(tile) tiles_emulated_zero(tile)
#define tiles_amx_load(tile, from, stride) tiles_emulated_load(tile, from, stride)
#define tiles_amx_store(tile, to, stride) tiles_emulated_store(tile, to, stride)
#define tiles_amx_product(sums, rows, panel) tiles_emulated_product(sums, rows, panel)
#else
#include <immintrin.h>

/* The intrinsics of GCC 12 do not say that they read memory, except the store, which also says that
 * it writes: stores to a panel could sink below the loads of its tiles without tiles_amx_ready. */
#define tiles_amx_zero(tile) _tile_zero(tile)
#define tiles_amx_load(tile, from, stride) _tile_loadd(tile, from, stride)
#define tiles_amx_store(tile, to, stride) _tile_stored(tile, to, stride)
#define tiles_amx_product(sums, rows, panel) _tile_dpbf16ps(sums, rows, panel)
#endif

/* Before the first load of memory just written. */
static inline __attribute__((always_inline)) void tiles_amx_ready(void) {
    __asm__ volatile("" ::: "memory");
}

#endif
