/* KV writes and attention: one prefill and one decode launch a layer, and a merge where decode
 * tasks were cut into spans. */
#include <assert.h>

#include "gpu/backend_cuda_state.h"

/* Where a layer's share of every page begins. */
static uint64_t layer_base(const struct backend_cuda *cuda, const struct op_attention *op) {
    uint64_t layer = kv_share_bytes(cuda->kv_element, cuda->model->head_dim) *
                     (uint64_t)cuda->model->kv_head_count;
    return cuda->kv[op->kv_group] + layer * (uint64_t)op->layer_in_group;
}

static int64_t page_stride(const struct backend_cuda *cuda, const struct op_attention *op) {
    return (int64_t)backend_cuda_memory_page_bytes(cuda->model, op->kv_group, cuda->kv_element);
}

static int64_t head_stride(const struct backend_cuda *cuda) {
    return (int64_t)kv_share_bytes(cuda->kv_element, cuda->model->head_dim);
}

static uint64_t rope_of(const struct backend_cuda *cuda, const struct rope *rope) {
    for (int i = 0; i < cuda->rope_count; i++)
        if (cuda->ropes[i].rope == rope)
            return cuda->ropes[i].table;
    return 0;
}

void backend_cuda_attention_write(struct backend *backend, const struct op_attention *op) {
    static const enum kernel_rope ropes[] = {
        [ROPE_NONE] = KERNEL_ROPE_NONE,
        [ROPE_ADJACENT] = KERNEL_ROPE_ADJACENT,
        [ROPE_HALVES] = KERNEL_ROPE_HALVES,
    };
    struct backend_cuda *cuda = backend_cuda_of(backend);
    const struct model *model = cuda->model;
    struct cuda_pending pending = cuda->pending[ACTIVATION_QKV];
    cuda->pending[ACTIVATION_QKV] = (struct cuda_pending){0, 0};
    struct kv_write_arguments arguments = {
        .qkv = cuda->at.qkv,
        .row_scale = pending.row_scale,
        .bias = pending.bias,
        .q_norm = backend_cuda_weights_vector(cuda, op->q_norm),
        .k_norm = backend_cuda_weights_vector(cuda, op->k_norm),
        .rope_table = rope_of(cuda, op->rope),
        .positions = cuda->at.tables + cuda->tables.positions,
        .slots = cuda->at.tables + cuda->tables.groups[op->kv_group].slots,
        .kv = layer_base(cuda, op),
        .counters = cuda->at.counters,
        .page_stride = page_stride(cuda, op),
        .head_stride = head_stride(cuda),
        .rows = cuda->plan->row_count,
        .heads = model->head_count,
        .kv_heads = model->kv_head_count,
        .head_dim = model->head_dim,
        .rope_dims = op->rope->pairing == ROPE_NONE ? 0 : op->rope->dims,
        .rope = (int32_t)ropes[op->rope->pairing],
        .norm_epsilon = op->norm_epsilon,
        .kv_element = (int32_t)cuda->kv_element,
    };
    int64_t warps = (int64_t)arguments.rows * (model->head_count + 2 * model->kv_head_count);
    backend_cuda_ops_launch(cuda, launch_config_find(KERNEL_KV_WRITE),
                            backend_cuda_ops_grid(cuda, warps * 32, WARP_THREADS), &arguments,
                            sizeof arguments);
}

static void attend(struct backend_cuda *cuda, const struct op_attention *op, bool decode) {
    const struct step_tables_group *group = &cuda->tables.groups[op->kv_group];
    const struct model *model = cuda->model;
    int task_count = decode ? group->decode_count : group->prefill_count;
    bool walks = decode ? group->decode_walks : group->prefill_walks;
    if (task_count == 0)
        return;
    struct attention_arguments arguments = {
        .qkv = cuda->at.qkv,
        .out = cuda->at.unit_attended,
        .kv = layer_base(cuda, op),
        .page_table = cuda->at.tables + group->page_table,
        .positions = cuda->at.tables + cuda->tables.positions,
        .tasks = cuda->at.tables + (decode ? group->decode : group->prefill),
        .states = decode && group->merge_count > 0 ? cuda->at.states : 0,
        .scratch = walks ? cuda->at.scratch : 0,
        .page_stride = page_stride(cuda, op),
        .head_stride = head_stride(cuda),
        .qkv_stride = (int64_t)(model->head_count + 2 * model->kv_head_count) * model->head_dim,
        .task_count = task_count,
        .kv_heads = model->kv_head_count,
        .group = model->head_count / model->kv_head_count,
        .window = op->window,
        .scale = op->scale,
        .softcap = op->softcap,
        .out_element = (int32_t)cuda->element,
    };
    int64_t blocks = (int64_t)task_count * model->kv_head_count;
    int64_t grid = walks && blocks > cuda->attention_grid ? cuda->attention_grid : blocks;
    backend_cuda_ops_launch(
        cuda,
        launch_config_attention(cuda->device->path, decode, cuda->kv_element, model->head_dim),
        grid, &arguments, sizeof arguments);
}

static void merge(struct backend_cuda *cuda, const struct op_attention *op) {
    const struct step_tables_group *group = &cuda->tables.groups[op->kv_group];
    const struct model *model = cuda->model;
    if (group->merge_count == 0)
        return;
    struct merge_states_arguments arguments = {
        .states = cuda->at.states,
        .state_list = cuda->at.tables + group->state_list,
        .tasks = cuda->at.tables + group->merges,
        .row_tasks = cuda->at.tables + group->row_tasks,
        .out = cuda->at.unit_attended,
        .packed_rows = group->packed_rows,
        .kv_heads = model->kv_head_count,
        .group = model->head_count / model->kv_head_count,
        .head_dim = model->head_dim,
        .out_element = (int32_t)cuda->element,
    };
    int64_t warps = group->packed_rows * model->kv_head_count;
    backend_cuda_ops_launch(cuda, launch_config_find(KERNEL_MERGE_STATES),
                            backend_cuda_ops_grid(cuda, warps * 32, WARP_THREADS), &arguments,
                            sizeof arguments);
}

void backend_cuda_attention_run(struct backend *backend, const struct op_attention *op) {
    struct backend_cuda *cuda = backend_cuda_of(backend);
    attend(cuda, op, false);
    attend(cuda, op, true);
    merge(cuda, op);
}
