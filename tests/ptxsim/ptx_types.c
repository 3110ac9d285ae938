/* The table behind ptx_types.h. */
#include "tests/ptxsim/ptx_types.h"

struct type_row {
    const char *name;
    uint8_t bytes;
    char family; /* p, b, u, s, f */
};

static const struct type_row rows[PTX_TYPE_COUNT] = {
    [PTX_NONE] = {"", 0, ' '},         [PTX_PRED] = {"pred", 0, 'p'},
    [PTX_B8] = {"b8", 1, 'b'},         [PTX_B16] = {"b16", 2, 'b'},
    [PTX_B32] = {"b32", 4, 'b'},       [PTX_B64] = {"b64", 8, 'b'},
    [PTX_U8] = {"u8", 1, 'u'},         [PTX_U16] = {"u16", 2, 'u'},
    [PTX_U32] = {"u32", 4, 'u'},       [PTX_U64] = {"u64", 8, 'u'},
    [PTX_S8] = {"s8", 1, 's'},         [PTX_S16] = {"s16", 2, 's'},
    [PTX_S32] = {"s32", 4, 's'},       [PTX_S64] = {"s64", 8, 's'},
    [PTX_F16] = {"f16", 2, 'f'},       [PTX_BF16] = {"bf16", 2, 'f'},
    [PTX_F32] = {"f32", 4, 'f'},       [PTX_F64] = {"f64", 8, 'f'},
    [PTX_TF32] = {"tf32", 4, 'f'},     [PTX_F16X2] = {"f16x2", 4, 'f'},
    [PTX_BF16X2] = {"bf16x2", 4, 'f'}, [PTX_E4M3] = {"e4m3", 1, 'f'},
    [PTX_E5M2] = {"e5m2", 1, 'f'},     [PTX_E4M3X2] = {"e4m3x2", 2, 'f'},
    [PTX_E5M2X2] = {"e5m2x2", 2, 'f'},
};

enum ptx_type ptx_types_find(struct view name) {
    for (int type = PTX_PRED; type < PTX_TYPE_COUNT; type++)
        if (name.length > 0 && name.bytes[0] == rows[type].name[0] &&
            view_is(name, rows[type].name))
            return (enum ptx_type)type;
    return PTX_NONE;
}

uint32_t ptx_types_bytes(enum ptx_type type) {
    return rows[type].bytes;
}

bool ptx_types_signed(enum ptx_type type) {
    return rows[type].family == 's';
}

bool ptx_types_integer(enum ptx_type type) {
    return rows[type].family == 'b' || rows[type].family == 'u' || rows[type].family == 's';
}

const char *ptx_types_name(enum ptx_type type) {
    return rows[type].name;
}
