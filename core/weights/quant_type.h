/* The table of tensor element types of GGUF: one row a type. Nothing outside this table and the
 * tile packers may switch on a type. Block layouts: ggml's quantisation formats. */
#ifndef CORE_WEIGHTS_QUANT_TYPE_H
#define CORE_WEIGHTS_QUANT_TYPE_H

#include <stddef.h>
#include <stdint.h>

/* Values are GGUF's type ids. */
enum quant_id {
    QUANT_F32 = 0,
    QUANT_F16 = 1,
    QUANT_Q4_0 = 2,
    QUANT_Q4_1 = 3,
    QUANT_Q5_0 = 6,
    QUANT_Q5_1 = 7,
    QUANT_Q8_0 = 8,
    QUANT_Q2_K = 10,
    QUANT_Q3_K = 11,
    QUANT_Q4_K = 12,
    QUANT_Q5_K = 13,
    QUANT_Q6_K = 14,
    QUANT_IQ4_NL = 20,
    QUANT_IQ4_XS = 23,
    QUANT_BF16 = 30,
};

struct quant_type {
    enum quant_id id;
    const char *name;      /* "Q4_1" */
    uint32_t block_values; /* values in a block */
    uint32_t block_bytes;  /* bytes of a block in the file */
    /* Reference unpack of `block_count` consecutive blocks: exact in fp32 arithmetic as the format
     * defines it. `blocks` needs no alignment. out: [block_count * block_values]. */
    void (*unpack)(const void *blocks, size_t block_count, float *out);
};

/* The row of a GGUF type id, or NULL when sheaf has none. */
const struct quant_type *quant_type_find(uint32_t gguf_id);

/* A name for any id, known, dead or foreign, for messages: "MXFP4", "Q4_2 (removed)", "type 77". */
const char *quant_type_foreign_name(uint32_t gguf_id, char *buffer, size_t buffer_bytes);

/* Rows of the table, for tests that visit every type. */
size_t quant_type_count(void);
const struct quant_type *quant_type_at(size_t index);

/* IEEE half and bfloat16 to float, exact, denormals kept; back, rounded to nearest even. */
float quant_type_f16_to_f32(uint16_t half);
uint16_t quant_type_f32_to_f16(float value);
static inline float quant_type_bf16_to_f32(uint16_t bits) {
    union {
        uint32_t u;
        float f;
    } value = {.u = (uint32_t)bits << 16};
    return value.f;
}
static inline uint16_t quant_type_f32_to_bf16(float value) {
    union {
        float f;
        uint32_t u;
    } bits = {.f = value};
    if ((bits.u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits.u >> 16) | 0x40u); /* NaN stays NaN */
    return (uint16_t)((bits.u + 0x7fffu + ((bits.u >> 16) & 1u)) >> 16);
}

#endif
