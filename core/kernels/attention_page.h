/* The layout of one layer's and KV head's share of a KV page: 64 tokens of keys and values, written
 * token by token and read as panels by the attention kernels.
 *
 * bf16: keys uint16_t[dim/2][64 tokens][2], then values uint16_t[64/2][dim][2 tokens].
 * int8: the same orders in bytes, then bf16 scales: [dim/16][64] of the keys' groups of 16
 * dimensions and [64] of the values, one a token: value = byte × scale. `dim` is head_dim rounded
 * up to 16; the added dimensions are zero. Keys have a few large dimensions, hence small groups;
 * scales of two bytes pay for them. */
#ifndef CORE_KERNELS_ATTENTION_PAGE_H
#define CORE_KERNELS_ATTENTION_PAGE_H

#include <stddef.h>
#include <stdint.h>

#include "core/kernels/kernels.h"

enum { ATTENTION_KEY_GROUP = 16 };

enum attention_page_type { ATTENTION_PAGE_BF16, ATTENTION_PAGE_INT8 };

/* head_dim rounded up to the panels' column step. */
int attention_page_dim(int head_dim);

/* A multiple of 64. */
size_t attention_page_bytes(enum attention_page_type type, int head_dim);

/* Tokens to write: keys and values [count][head_dim] fp32, strides in floats. */
struct attention_page_tokens {
    const float *keys;
    const float *values;
    size_t stride;
    int slot_first; /* place in the page */
    int count;
};

/* Rounds tokens into a page. When they begin the page (slot 0) and do not fill it, the rest becomes
 * zero: a stale NaN would reach the output as 0 × NaN. A non-finite input stays non-finite. */
void attention_page_write(enum attention_page_type type, int head_dim, void *page,
                          const struct attention_page_tokens *tokens);

/* A page's keys or values as a bf16 panel: inside the page, or expanded into `scratch` of half
 * attention_page_bytes(ATTENTION_PAGE_BF16) bytes, 64-byte aligned. */
const uint16_t *attention_page_keys(const struct attention_kernels *kernels,
                                    enum attention_page_type type, int head_dim, const void *page,
                                    uint16_t *scratch);
const uint16_t *attention_page_values(const struct attention_kernels *kernels,
                                      enum attention_page_type type, int head_dim, const void *page,
                                      uint16_t *scratch);

#endif
