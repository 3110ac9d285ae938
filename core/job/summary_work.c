/* The costs of the dry run (core/engine/simulate.h) on a machine that does one FLOP and reads one
 * byte a second are counts. */
#include "core/job/summary_work.h"

static uint64_t linear_bytes(const struct linear *linear) {
    uint64_t bytes = 0;
    for (int i = 0; i < linear->part_count; i++)
        bytes += linear->parts[i]->byte_count;
    return bytes;
}

static uint64_t op_bytes(const struct op *op) {
    if (op->kind == OP_ATTENTION)
        return linear_bytes(&op->attention.qkv) + linear_bytes(&op->attention.out);
    if (op->kind == OP_MLP)
        return linear_bytes(&op->mlp.gate_up) + linear_bytes(&op->mlp.down);
    return op->kind == OP_LOGITS ? linear_bytes(&op->logits.head) : 0;
}

void summary_work_init(struct summary_work *work, const struct model *model,
                       const uint64_t *page_bytes) {
    const struct simulate_ceilings unit = {
        .matmul_flops = 1, .attention_flops = 1, .read_bytes = 1};
    *work = (struct summary_work){.unit = simulate_costs_of(model, page_bytes, &unit),
                                  .group_count = model->kv_group_count};
    for (int i = 0; i < model->op_count; i++)
        work->matmul_bytes += op_bytes(&model->ops[i]);
    for (int g = 0; g < model->kv_group_count; g++)
        work->windows[g] = model->kv_groups[g].window;
}

/* Positions from the first that was not cached to the last token that was fed back: the last one
 * sampled is not. */
void summary_work_add(struct summary_work *work, const struct row *row) {
    int prompt = (int)row->prompt_tokens, first = (int)row->cached_tokens;
    int decoded = row->completion_tokens > 0 ? (int)row->completion_tokens - 1 : 0;
    int computed = prompt - first + decoded;
    work->matmul_flops += work->unit.row * computed;
    work->matmul_flops += work->unit.sample * (double)row->completion_tokens;
    for (int g = 0; g < work->group_count; g++) {
        double keys = simulate_keys_seen(first, computed, work->windows[g]);
        double decode_keys = simulate_keys_seen(prompt, decoded, work->windows[g]);
        work->attention_flops += work->unit.attend[g] * keys;
        work->kv_bytes += work->unit.read_kv[g] * (decode_keys + prompt);
    }
}

double summary_work_weight_bytes(const struct summary_work *work, int64_t steps) {
    return (double)work->matmul_bytes * (double)steps;
}
