/* See simulate.h. Tokens that a real run would sample are not known: any will do, because only
 * prompts are shared. */
#include "core/engine/simulate.h"

#include <stdlib.h>

#include "core/engine/page_budget.h"
#include "core/engine/scheduler.h"

struct simulate {
    struct scheduler scheduler;
    struct simulate_costs costs;
    struct scheduler_outcome *outcomes; /* [max_sequences] */
    struct simulate_result result;
    double fill_sum;
};

static double linear_flops(const struct linear *linear) {
    return 2.0 * linear->in * linear->out;
}

static void add_op(struct simulate_costs *costs, const struct model *model, const struct op *op,
                   const struct simulate_ceilings *ceilings) {
    if (op->kind == OP_ATTENTION) {
        const struct op_attention *attention = &op->attention;
        double flops = linear_flops(&attention->qkv) + linear_flops(&attention->out);
        costs->row += flops / ceilings->matmul_flops;
        costs->attend[attention->kv_group] +=
            4.0 * model->head_count * model->head_dim / ceilings->attention_flops;
    } else if (op->kind == OP_MLP) {
        double flops = linear_flops(&op->mlp.gate_up) + linear_flops(&op->mlp.down);
        costs->row += flops / ceilings->matmul_flops;
    } else if (op->kind == OP_LOGITS) {
        costs->sample += linear_flops(&op->logits.head) / ceilings->matmul_flops;
    }
}

struct simulate_costs simulate_costs_of(const struct model *model, const uint64_t *page_bytes,
                                        const struct simulate_ceilings *ceilings) {
    struct simulate_costs costs = {
        .step = ceilings->step_seconds,
        .weights = (double)model->weight_bytes / ceilings->read_bytes,
    };
    for (int i = 0; i < model->op_count; i++)
        add_op(&costs, model, &model->ops[i], ceilings);
    for (int group = 0; group < model->kv_group_count; group++)
        costs.read_kv[group] = (double)page_bytes[group] / KV_PAGE_TOKENS / ceilings->read_bytes;
    return costs;
}

enum status simulate_create(const struct model *model, const struct engine_options *options,
                            const uint64_t *page_bytes, const struct simulate_costs *costs,
                            struct simulate **simulate, struct error *error) {
    struct scheduler_options scheduling;
    *simulate = NULL;
    TRY(page_budget_scheduling(model, options, page_bytes, &scheduling, error));
    struct simulate *made = calloc(1, sizeof *made);
    if (!made)
        return error_no_memory(error, "the dry run");
    made->costs = *costs;
    made->outcomes = calloc((size_t)options->max_sequences, sizeof *made->outcomes);
    enum status status = made->outcomes ? scheduler_init(&made->scheduler, &scheduling, error)
                                        : error_no_memory(error, "the dry run");
    if (status != STATUS_OK) {
        free(made->outcomes);
        free(made);
        return status;
    }
    for (int i = 0; i < options->max_sequences; i++)
        made->outcomes[i].finite = true;
    *simulate = made;
    return STATUS_OK;
}

void simulate_destroy(struct simulate *simulate) {
    if (!simulate)
        return;
    scheduler_deinit(&simulate->scheduler);
    free(simulate->outcomes);
    free(simulate);
}

enum status simulate_submit(struct simulate *simulate, const struct engine_request *request,
                            int expected_tokens, struct error *error) {
    struct sequence *sequence;
    if (expected_tokens < 1 || expected_tokens > request->max_tokens)
        return error_set(error, STATUS_BAD_INPUT, "expected output of %d tokens, at most %d",
                         expected_tokens, request->max_tokens);
    TRY(scheduler_submit(&simulate->scheduler, request, &sequence, error));
    sequence->key = (uint64_t)expected_tokens; /* nothing is sampled: the key is free */
    return STATUS_OK;
}

double simulate_keys_seen(int first, int count, int window) {
    double from = first + 1.0, to = (double)first + count;
    if (window == 0 || to <= window)
        return (from + to) * count / 2;
    if (from >= window)
        return (double)window * count;
    double growing = window - from; /* rows that see fewer than `window` */
    return (from + window - 1) * growing / 2 + window * (count - growing);
}

/* Positions whose K and V a run reads: each once, from the first that its first row sees. */
static double keys_read(int first, int count, int window) {
    int behind = window == 0 || first < window ? first : window - 1;
    return (double)behind + count;
}

static double attention_seconds(const struct simulate *simulate, const struct step_run *run) {
    double seconds = 0;
    for (int group = 0; group < simulate->scheduler.options.group_count; group++) {
        int window = simulate->scheduler.options.groups[group].window;
        double compute = simulate_keys_seen(run->position_first, run->row_count, window) *
                         simulate->costs.attend[group];
        double read =
            keys_read(run->position_first, run->row_count, window) * simulate->costs.read_kv[group];
        seconds += compute > read ? compute : read;
    }
    return seconds;
}

static void advance_clock(struct simulate *simulate, const struct step_plan *plan) {
    struct simulate_result *result = &simulate->result;
    const struct simulate_costs *costs = &simulate->costs;
    double matmul = costs->row * plan->row_count + costs->sample * plan->sample_count;
    result->matmul_seconds += matmul > costs->weights ? matmul : costs->weights;
    for (int i = 0; i < plan->run_count; i++)
        result->attention_seconds += attention_seconds(simulate, &plan->runs[i]);
    result->step_seconds += costs->step;
}

static void count_rows(struct simulate *simulate, const struct step_plan *plan) {
    struct simulate_result *result = &simulate->result;
    const struct scheduler_options *options = &simulate->scheduler.options;
    for (int i = 0; i < plan->run_count; i++) {
        const struct scheduler_run *work = &simulate->scheduler.work[i];
        if (!work->prefill)
            result->decode_tokens += plan->runs[i].row_count;
        else
            result->prefill_tokens += plan->runs[i].row_count;
        if (work->prefill && work->sequence->stats.chunks == 0)
            result->cached_tokens += work->sequence->stats.cached_tokens;
    }
    result->steps++;
    result->output_tokens += plan->sample_count;
    simulate->fill_sum +=
        (double)plan->row_count / (options->batch_tokens + options->max_sequences);
}

/* Sequences that have what was expected of them end here, as at an end token in a real run. */
static void release_ended(struct simulate *simulate, int run_count) {
    for (int i = 0; i < run_count; i++) {
        struct sequence *sequence = simulate->scheduler.work[i].sequence;
        if ((uint64_t)sequence->output_count < sequence->key)
            continue;
        simulate->result.finished++;
        scheduler_release(&simulate->scheduler, sequence);
    }
}

bool simulate_step(struct simulate *simulate) {
    struct scheduler *scheduler = &simulate->scheduler;
    const struct step_plan *plan = scheduler_plan(scheduler);
    int refused = scheduler->refused_count;
    for (int i = 0; i < refused; i++)
        scheduler_release(scheduler, scheduler->refused[i]);
    simulate->result.refused += refused;
    if (plan->row_count == 0)
        return refused > 0;
    advance_clock(simulate, plan);
    count_rows(simulate, plan);
    scheduler_commit(scheduler, simulate->outcomes);
    release_ended(simulate, plan->run_count);
    return true;
}

size_t simulate_waiting_count(const struct simulate *simulate) {
    return simulate->scheduler.waiting.count;
}

void simulate_read(const struct simulate *simulate, struct simulate_result *result) {
    const struct scheduler *scheduler = &simulate->scheduler;
    *result = simulate->result;
    result->seconds = result->matmul_seconds + result->attention_seconds + result->step_seconds;
    result->running_peak = scheduler->running_peak;
    if (result->steps > 0)
        result->batch_fill = simulate->fill_sum / (double)result->steps;
    for (int group = 0; group < scheduler->options.group_count; group++) {
        result->pages_peak[group] = scheduler->pools[group].used_peak;
        result->pages_touched[group] = scheduler->pools[group].fresh;
        result->pages_max[group] = scheduler->options.groups[group].page_count;
    }
}
