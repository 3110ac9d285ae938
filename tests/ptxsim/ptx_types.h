/* The types and state spaces of PTX. */
#ifndef TESTS_PTXSIM_PTX_TYPES_H
#define TESTS_PTXSIM_PTX_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/view.h"

enum ptx_type {
    PTX_NONE,
    PTX_PRED,
    PTX_B8,
    PTX_B16,
    PTX_B32,
    PTX_B64,
    PTX_U8,
    PTX_U16,
    PTX_U32,
    PTX_U64,
    PTX_S8,
    PTX_S16,
    PTX_S32,
    PTX_S64,
    PTX_F16,
    PTX_BF16,
    PTX_F32,
    PTX_F64,
    PTX_TF32,
    PTX_F16X2,
    PTX_BF16X2,
    PTX_E4M3,
    PTX_E5M2,
    PTX_E4M3X2,
    PTX_E5M2X2,
    PTX_TYPE_COUNT
};

enum ptx_space {
    PTX_GENERIC,
    PTX_GLOBAL,
    PTX_SHARED,
    PTX_LOCAL,
    PTX_PARAM,
    PTX_CONST,
    PTX_REGISTER /* only in declarations */
};

/* PTX_NONE when `name` ("u32", without the dot) is no type. */
enum ptx_type ptx_types_find(struct view name);
uint32_t ptx_types_bytes(enum ptx_type type); /* 0 for predicates */
bool ptx_types_signed(enum ptx_type type);
bool ptx_types_integer(enum ptx_type type); /* b, u and s */
const char *ptx_types_name(enum ptx_type type);

#endif
