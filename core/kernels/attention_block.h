/* Attention of one block of query rows over the pages of their KV head: what a task of the CPU
 * backend does. The rows are positions × the query heads that share the KV head, packed.
 *
 * Keys are taken in spans of 512, anchored at position 0. A span starts from an empty state and its
 * pages follow in order; whole spans are merged in order, row by row. What a row does at a page
 * depends on its own position and scores alone, so its bits are the same in a decode step, in any
 * chunk of a prefill, and whether one task walks all spans or several take one each. */
#ifndef CORE_KERNELS_ATTENTION_BLOCK_H
#define CORE_KERNELS_ATTENTION_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "core/kernels/attention_page.h"
#include "core/kernels/kernels.h"

enum {
    ATTENTION_SPAN_TOKENS = 512,
    ATTENTION_BLOCK_ROWS = 96, /* rows a task aims at */
};

/* One layer's KV head of one sequence. */
struct attention_view {
    const struct kernels *kernels;
    enum attention_page_type page_type;
    int head_dim;
    int group;        /* query heads that share the KV head */
    int window;       /* 0: all earlier keys; else the last `window`, a row's own included */
    float scale;      /* on q·k */
    float softcap;    /* 0: none */
    const char *base; /* page p of this layer and head lies at base + p × page_stride */
    size_t page_stride;
    const int32_t *pages; /* by position / 64; entries no row sees are not read */
};

struct attention_queries {
    const float *in; /* first head of the group at the first position; its heads lie side by side */
    size_t in_stride; /* floats from one position to the next */
    float *out;       /* likewise */
    size_t out_stride;
    int position_first;
    int position_count;
};

/* Positions of a block: as many as give about ATTENTION_BLOCK_ROWS rows, at least one. */
int attention_block_positions(int group);

/* Scratch of one worker, 64-byte aligned. */
size_t attention_block_scratch_bytes(enum attention_page_type type, int head_dim, int group);

/* All spans, merged, normalised, written to queries->out. */
void attention_block_run(const struct attention_view *view, const struct attention_queries *queries,
                         void *scratch);

/* Spans [0, span_count) of several blocks whose sequences have these spans' pages in common: keys
 * and values are read once for all rows. No window; every position lies behind the spans; together
 * at most attention_block_positions. What block i's rows have merged so far goes to states[i], as
 * attention_block_state_bytes says, and attention_block_continue takes it from there: to the same
 * bits as attention_block_run. */
struct attention_shared {
    const struct attention_queries *blocks; /* [block_count]; `out` is not used */
    float *const *states;                   /* [block_count] */
    int block_count;
    int span_count;
};
void attention_block_run_shared(const struct attention_view *view,
                                const struct attention_shared *shared, void *scratch);
void attention_block_continue(const struct attention_view *view,
                              const struct attention_queries *queries, int span_first,
                              const float *states, void *scratch);

/* The spans that the block's rows see. */
struct attention_spans {
    int first;
    int count;
};
struct attention_spans attention_block_spans(const struct attention_view *view,
                                             const struct attention_queries *queries);

/* The same in two steps, for more tasks than blocks: each span's states, then their merge.
 * A span's states take attention_block_state_bytes for the block's rows, 64-byte aligned; merge
 * takes those of all its spans in a row. */
size_t attention_block_state_bytes(int head_dim, int row_count);
void attention_block_run_span(const struct attention_view *view,
                              const struct attention_queries *queries, int span, float *states,
                              void *scratch);
void attention_block_merge(const struct attention_view *view,
                           const struct attention_queries *queries, float *states);

#endif
