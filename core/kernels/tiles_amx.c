/* The shape of this thread's tile registers. Loading one costs as much as a dozen products, and the
 * products of one op after another mostly want the same: so what is loaded is remembered beside the
 * registers, a thread at a time, as they are. */
#include "core/kernels/tiles_amx.h"

#include <assert.h>

/* What is loaded, 0 when nothing is: mirrors the processor's state, which no context can hold. */
static _Thread_local uint32_t loaded;

static void set_register(struct tiles_amx_config *config, int index, int rows, int row_bytes) {
    config->rows[index] = (uint8_t)rows;
    config->row_bytes[index] = (uint16_t)row_bytes;
}

static void configure(const struct tiles_amx_config *config) {
#if defined(TILES_AMX_EMULATED)
    tiles_emulated_configure(config);
#else
    /* The intrinsic of GCC 12 says that it reads eight bytes, and the other stores get lost. */
    __asm__ volatile("ldtilecfg %0" : : "m"(*config));
#endif
}

void tiles_amx_shape(int first_rows, int second_rows, int pairs) {
    uint32_t wanted = (uint32_t)(first_rows << 16 | second_rows << 8 | pairs);
    if (wanted == loaded)
        return;
    assert(first_rows > 0 && first_rows <= TILES_AMX_ROWS);
    assert(second_rows > 0 && second_rows <= TILES_AMX_ROWS);
    assert(pairs > 0 && pairs <= TILES_AMX_PAIRS);
    struct tiles_amx_config config = {.palette = 1};
    for (int i = 0; i < 2; i++) {
        set_register(&config, i, first_rows, TILES_AMX_ROW_BYTES);
        set_register(&config, 2 + i, second_rows, TILES_AMX_ROW_BYTES);
        set_register(&config, 6 + i, pairs, TILES_AMX_ROW_BYTES);
    }
    set_register(&config, 4, first_rows, 4 * pairs);
    set_register(&config, 5, second_rows, 4 * pairs);
    configure(&config);
    loaded = wanted;
}

void tiles_amx_release(void) {
    if (loaded == 0)
        return;
#if defined(TILES_AMX_EMULATED)
    tiles_emulated_unconfigure();
#else
    _tile_release();
#endif
    loaded = 0;
}
