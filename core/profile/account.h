/* Exact accounting of what a step asks for: products, exponentials and bytes of every op, for
 * causal, chunked, windowed, grouped-query, paged and shared attention, quantised weights and KV,
 * and for logits of sampled rows only. A multiply-add is 2 FLOP, always.
 *
 * Useful counts are what any implementation must do; issued ones what kernels over whole pages do,
 * masked keys included. Bytes are told apart by how long ago they were last used: weights and KV
 * pages a step ago (`stream`), activations an op ago (`local`). `min` reads everything once, a page
 * that several sequences share too; `moved` counts what each block of query rows reads. */
#ifndef CORE_PROFILE_ACCOUNT_H
#define CORE_PROFILE_ACCOUNT_H

#include <stdint.h>

#include "core/model/backend.h"
#include "core/model/step_plan.h"
#include "core/profile/op_site.h"

/* Query–key pairs of positions [first, first + count) under a causal mask, each position seeing at
 * most the last `window` keys, its own included (0: no such limit). */
int64_t account_pairs(int64_t first, int64_t count, int64_t window);
/* The same when keys are taken in whole pages of KV_PAGE_TOKENS. */
int64_t account_pairs_issued(int64_t first, int64_t count, int64_t window);
/* Keys that any of these positions sees. */
int64_t account_keys(int64_t first, int64_t count, int64_t window);

struct account_shape {
    int heads, kv_heads, head_dim;
    int width, ffn_width, vocab;
    int group_count;
    int windows[MODEL_KV_GROUPS_MAX]; /* 0: global */
    double kv_token_bytes; /* K and V of a token and layer, all KV heads, scales included */
    int block_positions;   /* query positions that attend together and read their keys once */
};

/* page_bytes: [group], a page of all the group's layers, as the backend foretells. */
struct account_shape account_shape_of(const struct model *model, const uint64_t *page_bytes,
                                      int block_positions);

struct account_work {
    double flops, flops_issued;
    double exponentials;
    double stream_min, stream_moved; /* bytes */
    double local;                    /* bytes of activations read and written */
};

/* What the runs of a step add up to. */
struct account_step {
    int rows, prefill_rows, samples, runs;
    struct account_step_group {
        int64_t pairs, pairs_issued;
        int64_t decode_pairs; /* of runs that are not prefill */
        int64_t keys;         /* distinct ones: of a shared page once */
        int64_t keys_apart;   /* if nothing were shared */
        int64_t pages_moved;  /* read by blocks of rows */
        int64_t pages_held;   /* distinct pages of the step's sequences */
        int64_t pages_apart;  /* their pages if nothing were shared */
    } groups[MODEL_KV_GROUPS_MAX];
    int64_t tokens_held; /* positions of the step's sequences, after the step */
    int context_most;    /* of the longest of them */
};

/* Marks of pages, to count shared ones once. */
struct account {
    struct account_shape shape;
    struct account_mark {
        uint32_t step;
        uint8_t first, end;         /* slots that some row sees */
    } * marks[MODEL_KV_GROUPS_MAX]; /* [page_count] */
    int64_t page_count[MODEL_KV_GROUPS_MAX];
    uint32_t step;
};

enum status account_init(struct account *account, const struct account_shape *shape,
                         const int64_t *page_count, struct error *error);
void account_deinit(struct account *account);

/* Sums over the plan's runs, their pages included. */
void account_add_step(struct account *account, const struct step_plan *plan,
                      struct account_step *step);

/* What one site asks for in such a step. */
struct account_work account_site(const struct account_shape *shape, const struct op_site *site,
                                 const struct account_step *step);
struct account_work account_attention(const struct account_shape *shape,
                                      const struct account_step_group *group, int rows);
/* weight_bytes: as stored; packed_bytes: as the kernels read them. */
struct account_work account_linear(int rows, int in, int out, double weight_bytes,
                                   double packed_bytes);

#endif
