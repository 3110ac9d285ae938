/* Where the CPU backend's memory comes from and how much it is. The scratch area is laid out by one
 * function that foretells its size and later sets its pointers, so the two cannot differ. Areas are
 * anonymous maps in huge pages; KV is address space until a page is written. */
#include "core/engine/backend_cpu_state.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum {
    ALIGNMENT = 64,
    HUGE_PAGE = 2 << 20,
};

enum attention_page_type backend_cpu_memory_page_type(enum kv_type type) {
    return type == KV_INT8 ? ATTENTION_PAGE_INT8 : ATTENTION_PAGE_BF16;
}

size_t backend_cpu_memory_page_bytes(const struct model *model, int kv_group, enum kv_type type) {
    return attention_page_bytes(backend_cpu_memory_page_type(type), model->head_dim) *
           (size_t)model->kv_head_count * (size_t)model->kv_groups[kv_group].layer_count;
}

/* Takes pieces from an area: adds up their sizes when `memory` is NULL. */
struct carver {
    char *memory;
    size_t used;
};

static void *carve(struct carver *carver, size_t count, size_t size) {
    size_t at = carver->used;
    carver->used += (count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return carver->memory == NULL ? NULL : carver->memory + at;
}

static int max_int(int a, int b) {
    return a > b ? a : b;
}

/* Rows of a power of two of bytes would all fall into the same sets of the caches. */
static size_t row_floats(int width) {
    return linear_row_stride(UNIT_F32, width) / sizeof(float);
}

static void carve_activation(struct carver *carver, struct cpu_scratch *scratch,
                             enum activation activation, int rows, int width) {
    struct cpu_rows *buffer = &scratch->activations[activation];
    buffer->stride = row_floats(width);
    buffer->values = carve(carver, (size_t)rows * buffer->stride, sizeof(float));
}

/* Attention and MLP never overlap in time: their buffers share one place. */
static void carve_activations(struct carver *carver, const struct model *model, int rows,
                              struct cpu_scratch *scratch) {
    int heads = model->head_count, kv_heads = model->kv_head_count, dim = model->head_dim;
    carve_activation(carver, scratch, ACTIVATION_RESIDUAL, rows, model->width);
    carve_activation(carver, scratch, ACTIVATION_HIDDEN, rows, model->width);
    struct carver mlp = *carver;
    carve_activation(carver, scratch, ACTIVATION_QKV, rows, (heads + 2 * kv_heads) * dim);
    carve_activation(carver, scratch, ACTIVATION_ATTENDED, rows, heads * dim);
    carve_activation(&mlp, scratch, ACTIVATION_GATE_UP, rows, 2 * model->ffn_width);
    carve_activation(&mlp, scratch, ACTIVATION_GATED, rows, model->ffn_width);
    if (mlp.used > carver->used)
        carver->used = mlp.used;
}

bool backend_cpu_memory_same_rope(const struct rope *a, const struct rope *b) {
    return a->dims == b->dims && a->magnitude == b->magnitude &&
           memcmp(a->frequencies, b->frequencies, (size_t)(a->dims / 2) * sizeof(double)) == 0;
}

/* The rope of op `index` when no earlier op has the same: layers usually share one or two. */
static const struct rope *new_rope(const struct model *model, int index) {
    const struct op *op = &model->ops[index];
    if (op->kind != OP_ATTENTION || op->attention.rope->pairing == ROPE_NONE)
        return NULL;
    for (int i = 0; i < index; i++)
        if (model->ops[i].kind == OP_ATTENTION &&
            model->ops[i].attention.rope->pairing != ROPE_NONE &&
            backend_cpu_memory_same_rope(model->ops[i].attention.rope, op->attention.rope))
            return NULL;
    return op->attention.rope;
}

static void carve_ropes(struct carver *carver, const struct model *model, int rows,
                        struct cpu_scratch *scratch) {
    scratch->rope_count = 0;
    for (int i = 0; i < model->op_count; i++)
        scratch->rope_count += new_rope(model, i) != NULL;
    scratch->ropes = carve(carver, (size_t)scratch->rope_count, sizeof *scratch->ropes);
    int count = 0;
    for (int i = 0; i < model->op_count; i++) {
        const struct rope *rope = new_rope(model, i);
        if (rope == NULL)
            continue;
        size_t values = (size_t)rows * (size_t)(rope->dims / 2);
        struct cpu_rope_table table = {rope, carve(carver, values, sizeof(float)),
                                       carve(carver, values, sizeof(float))};
        if (carver->memory != NULL)
            scratch->ropes[count++] = table;
    }
}

/* Tasks of a step, and the states of spans when blocks are too few for the workers or share spans.
 */
static void carve_tasks(struct carver *carver, const struct backend_cpu *cpu,
                        const struct model *model, const struct backend_limits *limits,
                        struct cpu_scratch *scratch) {
    int group = model->head_count / model->kv_head_count;
    int positions = attention_block_positions(group);
    int few = CPU_SPLIT_TASKS * cpu->worker_count / model->kv_head_count + 1;
    int spans = limits->context_max / ATTENTION_SPAN_TOKENS + 1;
    size_t state = attention_block_state_bytes(model->head_dim, model->head_count) / sizeof(float);
    scratch->piece_max = limits->row_count_max / KV_PAGE_TOKENS + 2 * limits->run_count_max;
    scratch->block_max = limits->row_count_max / positions + limits->run_count_max;
    scratch->span_task_max = few * spans;
    scratch->state_floats_max = (size_t)(few + positions) * (size_t)spans * state;
    if (cpu->worker_count == 1)
        scratch->span_task_max = 0, scratch->state_floats_max = 0;
    size_t shared = CPU_SHARED_POSITIONS * (size_t)limits->run_count_max * state;
    if (shared > scratch->state_floats_max)
        scratch->state_floats_max = shared;
    scratch->pieces = carve(carver, (size_t)scratch->piece_max, sizeof *scratch->pieces);
    scratch->blocks = carve(carver, (size_t)scratch->block_max, sizeof *scratch->blocks);
    scratch->span_tasks =
        carve(carver, (size_t)scratch->span_task_max, sizeof *scratch->span_tasks);
    scratch->shared_blocks =
        carve(carver, (size_t)scratch->block_max, sizeof *scratch->shared_blocks);
    scratch->shared_tasks =
        carve(carver, (size_t)scratch->block_max, sizeof *scratch->shared_tasks);
    scratch->states = carve(carver, scratch->state_floats_max, sizeof(float));
}

static void carve_workers(struct carver *carver, const struct backend_cpu *cpu,
                          const struct model *model, enum kv_type kv_type,
                          struct cpu_scratch *scratch) {
    size_t workers = (size_t)cpu->worker_count;
    int group = model->head_count / model->kv_head_count;
    scratch->panel_bytes = linear_panel_bytes(cpu->kernels.linear);
    if (cpu->kernels.linear_int8 != NULL &&
        linear_panel_bytes(cpu->kernels.linear_int8) > scratch->panel_bytes)
        scratch->panel_bytes = linear_panel_bytes(cpu->kernels.linear_int8);
    scratch->panels = carve(carver, workers, scratch->panel_bytes);
    scratch->attention_bytes = attention_block_scratch_bytes(backend_cpu_memory_page_type(kv_type),
                                                             model->head_dim, group);
    scratch->attention = carve(carver, workers, scratch->attention_bytes);
}

size_t backend_cpu_memory_lay_out(const struct backend_cpu *cpu, const struct model *model,
                                  const struct backend_limits *limits, char *memory,
                                  struct cpu_scratch *scratch) {
    struct carver carver = {memory, 0};
    int rows = limits->row_count_max, attended = model->head_count * model->head_dim;
    int qkv = (model->head_count + 2 * model->kv_head_count) * model->head_dim;
    int in_max = max_int(max_int(model->width, model->ffn_width), attended);
    int vector =
        max_int(max_int(model->width, 2 * model->ffn_width), max_int(qkv, model->vocab_count));
    carve_activations(&carver, model, rows, scratch);
    scratch->unit_stride = linear_row_stride(cpu->kernels.linear->unit, in_max);
    scratch->unit_rows =
        carve(&carver, (size_t)max_int(rows, limits->sample_count_max), scratch->unit_stride);
    scratch->logits = carve(&carver, (size_t)limits->sample_count_max,
                            (size_t)model->vocab_count * sizeof(float));
    scratch->vector = carve(&carver, (size_t)vector, sizeof(float));
    scratch->vector_second = carve(&carver, (size_t)model->head_dim, sizeof(float));
    scratch->even = carve(&carver, (size_t)(model->kv_head_count * model->head_dim), sizeof(float));
    carve_workers(&carver, cpu, model, limits->kv_type, scratch);
    carve_ropes(&carver, model, rows, scratch);
    carve_tasks(&carver, cpu, model, limits, scratch);
    return carver.used;
}

struct backend_memory backend_cpu_memory_need(const struct backend *backend,
                                              const struct model *model,
                                              const struct backend_limits *limits) {
    const struct backend_cpu *cpu = (const void *)backend;
    struct cpu_scratch scratch;
    struct backend_memory need = {
        .weights = backend_cpu_stream_memory(cpu, model),
        .scratch = backend_cpu_memory_lay_out(cpu, model, limits, NULL, &scratch),
    };
    for (int i = 0; i < model->kv_group_count; i++)
        need.kv_page[i] = backend_cpu_memory_page_bytes(model, i, limits->kv_type);
    return need;
}

enum status backend_cpu_memory_map(size_t bytes, const char *what, char **memory,
                                   struct error *error) {
    void *area = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED)
        return error_set_errno(error, STATUS_NO_MEMORY, errno, "cannot map %zu bytes for %s", bytes,
                               what);
    if (bytes >= HUGE_PAGE)
        madvise(area, bytes, MADV_HUGEPAGE); /* advice only: refusal is no failure */
    *memory = area;
    return STATUS_OK;
}

enum status backend_cpu_memory_reserve(struct backend *backend, const struct backend_limits *limits,
                                       struct error *error) {
    struct backend_cpu *cpu = backend_cpu_of(backend);
    const struct model *model = cpu->model;
    if (limits->kv_type != KV_BF16 && limits->kv_type != KV_INT8)
        return error_set(error, STATUS_UNSUPPORTED, "the CPU backend keeps KV in bf16 or int8");
    cpu->limits = *limits;
    for (int i = 0; i < model->kv_group_count; i++) {
        size_t page_bytes = backend_cpu_memory_page_bytes(model, i, limits->kv_type);
        cpu->kv_bytes[i] = page_bytes * (size_t)limits->page_count_max[i];
        TRY(backend_cpu_memory_map(cpu->kv_bytes[i], "KV pages", &cpu->kv[i], error));
    }
    cpu->scratch_bytes = backend_cpu_memory_lay_out(cpu, model, limits, NULL, &cpu->scratch);
    TRY(backend_cpu_memory_map(cpu->scratch_bytes, "activations", &cpu->scratch_memory, error));
    backend_cpu_memory_lay_out(cpu, model, limits, cpu->scratch_memory, &cpu->scratch);
    return STATUS_OK;
}

void backend_cpu_memory_release(struct backend_cpu *cpu) {
    for (int i = 0; i < MODEL_KV_GROUPS_MAX; i++) {
        if (cpu->kv[i] != NULL)
            munmap(cpu->kv[i], cpu->kv_bytes[i]);
        cpu->kv[i] = NULL;
    }
    if (cpu->scratch_memory != NULL)
        munmap(cpu->scratch_memory, cpu->scratch_bytes);
    cpu->scratch_memory = NULL;
}
