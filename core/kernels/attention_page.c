/* Writing and reading of KV pages. Rounding is plain C, the same for every variant: a page's bytes
 * depend on the tokens only. */
#include "core/kernels/attention_page.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/weights/quant_type.h"

int attention_page_dim(int head_dim) {
    return (head_dim + 15) / 16 * 16;
}

static size_t part_elements(int head_dim) {
    return (size_t)attention_page_dim(head_dim) * PANEL_COLUMNS;
}

/* Groups of a key's dimensions that have a scale of their own. */
static int key_groups(int head_dim) {
    return attention_page_dim(head_dim) / ATTENTION_KEY_GROUP;
}

size_t attention_page_bytes(enum attention_page_type type, int head_dim) {
    size_t elements = 2 * part_elements(head_dim);
    size_t scales = (size_t)(key_groups(head_dim) + 1) * PANEL_COLUMNS;
    return type == ATTENTION_PAGE_INT8 ? elements + scales * sizeof(uint16_t)
                                       : elements * sizeof(uint16_t);
}

static void write_bf16(int head_dim, uint16_t *page, const struct attention_page_tokens *tokens) {
    size_t dim = (size_t)attention_page_dim(head_dim);
    uint16_t *values = page + part_elements(head_dim);
    for (int t = 0; t < tokens->count; t++) {
        const float *key = tokens->keys + (size_t)t * tokens->stride;
        const float *value = tokens->values + (size_t)t * tokens->stride;
        size_t slot = (size_t)(tokens->slot_first + t);
        uint16_t *pair = values + slot / 2 * dim * 2 + slot % 2;
        for (size_t d = 0; d < (size_t)head_dim; d++) {
            page[(d / 2 * PANEL_COLUMNS + slot) * 2 + d % 2] = quant_type_f32_to_bf16(key[d]);
            pair[2 * d] = quant_type_f32_to_bf16(value[d]);
        }
    }
}

/* A positive number in bf16, rounded up: what it divides stays within 127 steps. */
static uint16_t round_up(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0xffff) >> 16);
}

/* The scale that maps the largest size to 127 or a little less; NaN when the vector is not finite.
 */
static uint16_t int8_scale(const float *in, int count) {
    float most = 0, check = 0;
    for (int i = 0; i < count; i++) {
        float size = fabsf(in[i]);
        most = size > most ? size : most;
        check += in[i] * 0.0f;
    }
    return check == 0 ? round_up(most / 127.0f) : quant_type_f32_to_bf16(NAN);
}

static void quantise(const float *in, int head_dim, uint16_t rounded, int8_t *out, size_t step,
                     size_t pair_step) {
    float scale = quant_type_bf16_to_f32(rounded);
    float factor = scale >= FLT_MIN ? 1.0f / scale : 0; /* NaN compares false: bytes 0 */
    for (int d = 0; d < head_dim; d++) {
        float scaled = in[d] * factor;
        scaled = scaled > 127 ? 127 : scaled < -127 ? -127 : scaled;
        size_t at = (size_t)(d / 2) * pair_step + (size_t)(d % 2) * step;
        out[at] = factor > 0 ? (int8_t)lrintf(scaled) : 0;
    }
}

/* A key's group g of dimensions: scales [group][64], bytes in the rows of the group's pairs. */
static void write_int8_key(int head_dim, const float *key, size_t slot, int8_t *page,
                           uint16_t *scales) {
    for (int first = 0; first < head_dim; first += ATTENTION_KEY_GROUP) {
        int count = head_dim - first < ATTENTION_KEY_GROUP ? head_dim - first : ATTENTION_KEY_GROUP;
        uint16_t *scale = scales + (size_t)(first / ATTENTION_KEY_GROUP) * PANEL_COLUMNS + slot;
        *scale = int8_scale(key + first, count);
        quantise(key + first, count, *scale, page + (size_t)first * PANEL_COLUMNS + 2 * slot, 1,
                 2 * PANEL_COLUMNS);
    }
}

static void write_int8(int head_dim, int8_t *page, const struct attention_page_tokens *tokens) {
    size_t dim = (size_t)attention_page_dim(head_dim);
    int8_t *values = page + part_elements(head_dim);
    uint16_t *key_scales = (void *)(page + 2 * part_elements(head_dim));
    uint16_t *value_scales = key_scales + (size_t)key_groups(head_dim) * PANEL_COLUMNS;
    for (int t = 0; t < tokens->count; t++) {
        const float *value = tokens->values + (size_t)t * tokens->stride;
        size_t slot = (size_t)(tokens->slot_first + t);
        write_int8_key(head_dim, tokens->keys + (size_t)t * tokens->stride, slot, page, key_scales);
        value_scales[slot] = int8_scale(value, head_dim);
        quantise(value, head_dim, value_scales[slot], values + slot / 2 * dim * 2 + slot % 2, 2, 4);
    }
}

void attention_page_write(enum attention_page_type type, int head_dim, void *page,
                          const struct attention_page_tokens *tokens) {
    if (tokens->slot_first == 0 &&
        (tokens->count < PANEL_COLUMNS || head_dim != attention_page_dim(head_dim)))
        memset(page, 0, attention_page_bytes(type, head_dim));
    if (type == ATTENTION_PAGE_INT8)
        write_int8(head_dim, page, tokens);
    else
        write_bf16(head_dim, page, tokens);
}

static void read_scales(const uint16_t *in, float out[PANEL_COLUMNS]) {
    for (int i = 0; i < PANEL_COLUMNS; i++)
        out[i] = quant_type_bf16_to_f32(in[i]);
}

const uint16_t *attention_page_keys(const struct attention_kernels *kernels,
                                    enum attention_page_type type, int head_dim, const void *page,
                                    uint16_t *scratch) {
    if (type == ATTENTION_PAGE_BF16)
        return page;
    const int8_t *bytes = page;
    const uint16_t *rounded = (const void *)(bytes + 2 * part_elements(head_dim));
    for (int group = 0; group < key_groups(head_dim); group++) {
        size_t at = (size_t)group * ATTENTION_KEY_GROUP * PANEL_COLUMNS;
        float scales[PANEL_COLUMNS];
        read_scales(rounded + (size_t)group * PANEL_COLUMNS, scales);
        kernels->expand_keys(bytes + at, scales, ATTENTION_KEY_GROUP, scratch + at);
    }
    return scratch;
}

const uint16_t *attention_page_values(const struct attention_kernels *kernels,
                                      enum attention_page_type type, int head_dim, const void *page,
                                      uint16_t *scratch) {
    size_t elements = part_elements(head_dim);
    if (type == ATTENTION_PAGE_BF16)
        return (const uint16_t *)page + elements;
    const int8_t *bytes = page;
    const uint16_t *rounded = (const void *)(bytes + 2 * elements);
    float scales[PANEL_COLUMNS];
    read_scales(rounded + (size_t)key_groups(head_dim) * PANEL_COLUMNS, scales);
    kernels->expand_values(bytes + elements, scales, attention_page_dim(head_dim), scratch);
    return scratch;
}
