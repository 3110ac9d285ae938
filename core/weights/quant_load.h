/* Unaligned little-endian loads. Block sizes are odd multiples of two and file bytes have no
 * alignment, so every multi-byte field goes through memcpy, which compiles to one move. */
#ifndef CORE_WEIGHTS_QUANT_LOAD_H
#define CORE_WEIGHTS_QUANT_LOAD_H

#include <stdint.h>
#include <string.h>

#include "core/weights/quant_type.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "GGUF bytes are read as they lie");

static inline uint16_t quant_load_u16(const void *bytes) {
    uint16_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint32_t quant_load_u32(const void *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint64_t quant_load_u64(const void *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline float quant_load_f16(const void *bytes) {
    return quant_type_f16_to_f32(quant_load_u16(bytes));
}

#endif
