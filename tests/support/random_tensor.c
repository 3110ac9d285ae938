/* Random bytes, then the scale fields of every block replaced by halves around 2^-6, so that no
 * weight is infinite or denormal. */
#include "tests/support/random_tensor.h"

#include <stdlib.h>
#include <string.h>

uint64_t random_tensor_next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

float random_tensor_float(uint64_t *state) {
    return (float)(int32_t)(random_tensor_next(state) >> 32) * 0x1p-31f;
}

/* Offsets of the half-precision fields of a block; -1 ends or stands for none. */
static const struct {
    enum quant_id id;
    int fields[2];
} scale_fields[] = {
    {QUANT_Q4_0, {0, -1}},   {QUANT_Q4_1, {0, 2}},    {QUANT_Q5_0, {0, -1}},
    {QUANT_Q5_1, {0, 2}},    {QUANT_Q8_0, {0, -1}},   {QUANT_Q2_K, {80, 82}},
    {QUANT_Q3_K, {108, -1}}, {QUANT_Q4_K, {0, 2}},    {QUANT_Q5_K, {0, 2}},
    {QUANT_Q6_K, {208, -1}}, {QUANT_IQ4_NL, {0, -1}}, {QUANT_IQ4_XS, {0, -1}},
    {QUANT_F16, {0, -1}},
};

static void put_half(uint8_t *bytes, uint64_t bits) {
    uint16_t half = (uint16_t)((bits & 0x83ff) | (6 + (bits >> 16) % 6) << 10);
    memcpy(bytes, &half, sizeof half);
}

static void set_scales(const struct quant_type *type, uint8_t *block, uint64_t *state) {
    for (size_t i = 0; i < sizeof scale_fields / sizeof scale_fields[0]; i++)
        for (int f = 0; f < 2; f++)
            if (scale_fields[i].id == type->id && scale_fields[i].fields[f] >= 0)
                put_half(block + scale_fields[i].fields[f], random_tensor_next(state));
    float value = random_tensor_float(state);
    if (type->id == QUANT_F32) {
        memcpy(block, &value, sizeof value);
    } else if (type->id == QUANT_BF16) {
        uint16_t bits = quant_type_f32_to_bf16(value);
        memcpy(block, &bits, sizeof bits);
    }
}

struct tensor random_tensor_create(const struct quant_type *type, int in, int out, uint64_t seed) {
    struct tensor tensor = {
        .name = "random",
        .type = type,
        .dim_count = 2,
        .dims = {(uint64_t)in, (uint64_t)out, 1, 1},
        .row_count = (uint64_t)out,
        .row_bytes = (size_t)in / type->block_values * type->block_bytes,
    };
    tensor.byte_count = tensor.row_bytes * (size_t)out;
    uint8_t *bytes = malloc(tensor.byte_count);
    if (bytes == NULL)
        abort();
    for (size_t i = 0; i < tensor.byte_count; i++)
        bytes[i] = (uint8_t)random_tensor_next(&seed);
    for (size_t at = 0; at < tensor.byte_count; at += type->block_bytes)
        set_scales(type, bytes + at, &seed);
    tensor.bytes = bytes;
    return tensor;
}

void random_tensor_destroy(struct tensor *tensor) {
    free((void *)(uintptr_t)tensor->bytes);
    *tensor = (struct tensor){0};
}
