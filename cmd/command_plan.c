/* `sheaf plan`: the queue before any compute. Times are predictions from measured ceilings of this
 * machine. */
#include <stdio.h>
#include <string.h>

#include "cmd/commands.h"
#include "cmd/exit_code.h"
#include "cmd/job_setup.h"
#include "cmd/plan_queue.h"
#include "core/kernels/ceilings.h"

/* Shares of the measured peaks that whole runs reach, and a step's fixed cost. */
static const double MATMUL_SHARE = 0.6;
static const double ATTENTION_SHARE = 0.35;
static const double STEP_SECONDS = 5e-4;

struct plan_command {
    struct runtime runtime;
    struct questions questions;
    struct path_list inputs;
    struct job job;
    struct job_progress progress;
    struct finished_set finished;
    struct plan_report report;
    uint64_t streamed_bytes; /* of weights, read in every step */
    double streamed_rate;    /* bytes a second */
    double hidden_rows;      /* of a step, from which on computing takes longer than reading */
    atomic_int never_stops;  /* nothing is written: signals just end the process */
};

/* A step's matmuls wait for the weights that it has to read. */
static void add_streaming(struct plan_command *plan, struct simulate_costs *costs) {
    const struct runtime *runtime = &plan->runtime;
    plan->streamed_bytes = runtime_step_bytes(runtime);
    if (plan->streamed_bytes == 0)
        return;
    plan->streamed_rate = weight_stream_rate(runtime->model_path);
    if (plan->streamed_rate <= 0)
        return;
    double seconds = (double)plan->streamed_bytes / plan->streamed_rate;
    plan->hidden_rows = seconds / costs->row;
    if (costs->weights < seconds)
        costs->weights = seconds;
}

/* Only the CPU's speed is measured here. */
static bool foretells_time(const struct plan_command *plan) {
    return runtime_uses_cpu(&plan->runtime);
}

static enum status predict_costs(struct plan_command *plan, const uint64_t *page_bytes,
                                 struct simulate_costs *costs, struct error *error) {
    struct kernels kernels = kernels_select(&plan->runtime.features);
    struct ceilings measured;
    *costs = (struct simulate_costs){0};
    if (!foretells_time(plan))
        return STATUS_OK;
    TRY(ceilings_measure(kernels.linear, plan->runtime.pool, &measured, error));
    struct simulate_ceilings ceilings = {
        .matmul_flops = measured.flops_all * MATMUL_SHARE,
        .attention_flops = measured.flops_all * ATTENTION_SHARE,
        .read_bytes = measured.read[CEILINGS_READ_COUNT - 1].all,
        .step_seconds = STEP_SECONDS,
    };
    *costs = simulate_costs_of(plan->runtime.model, page_bytes, &ceilings);
    add_streaming(plan, costs);
    return STATUS_OK;
}

static enum status prepare(struct plan_command *plan, const struct path_list *given,
                           struct arena *arena, struct error *error) {
    struct runtime *runtime = &plan->runtime;
    TRY(job_setup_inputs(runtime->settings, given, arena, &plan->inputs, error));
    TRY(questions_load(runtime, &plan->questions, error));
    TRY(job_setup_check_prompt(runtime->settings, &plan->inputs, error));
    TRY(runtime_open_model(runtime, error));
    TRY(runtime_open_tokenizer(runtime, error));
    TRY(runtime_open_template(runtime, error));
    TRY(runtime_open_backend(runtime, error));
    TRY(runtime_plan_memory(runtime, error));
    job_setup_fill(&plan->job, runtime, &plan->questions, &plan->inputs);
    plan->job.finished = &plan->finished;
    plan->job.progress = &plan->progress;
    return STATUS_OK;
}

static enum status run_plan(struct plan_command *plan, const struct path_list *given,
                            struct arena *arena, struct error *error) {
    TRY(prepare(plan, given, arena, error));
    const uint64_t *page_bytes = plan->runtime.budget.memory.kv_page;
    struct simulate_costs costs;
    TRY(predict_costs(plan, page_bytes, &costs, error));
    return plan_queue_run(&plan->job, &plan->runtime, page_bytes, &costs, &plan->report, error);
}

static double cost_of(const struct plan_command *plan) {
    return plan->runtime.settings->price_per_hour * plan->report.simulated.seconds / 3600;
}

static void print_errors(const struct plan_report *report) {
    for (size_t i = 0; i < codes_error_count(); i++) {
        if (report->errors[i] > 0)
            printf("  %-14s %lld\n", codes_error_at(i)->name, report->errors[i]);
    }
}

static void print_streaming(const struct plan_command *plan) {
    if (plan->streamed_bytes == 0 || plan->streamed_rate <= 0)
        return;
    printf("weights     %.0f of %.0f MB are read in every step: %.2f s at %.2f GB/s, hidden by "
           "computing from %.0f --batch-tokens on\n",
           (double)plan->streamed_bytes / 1e6, (double)runtime_weights_bytes(&plan->runtime) / 1e6,
           (double)plan->streamed_bytes / plan->streamed_rate, plan->streamed_rate / 1e9,
           plan->hidden_rows);
}

static void print_time(const struct plan_command *plan) {
    const struct simulate_result *simulated = &plan->report.simulated;
    if (!foretells_time(plan))
        printf("time        not foretold for this device: %lld steps, %d at once at most\n",
               (long long)simulated->steps, simulated->running_peak);
    else
        printf("time        about %.0f s if every output takes --max-tokens%s (%lld steps, %d at "
               "once at most)\n",
               simulated->seconds,
               plan->runtime.settings->speculate ? " and no guess is right" : "",
               (long long)simulated->steps, simulated->running_peak);
}

static void print_plain(const struct plan_command *plan) {
    const struct plan_report *report = &plan->report;
    const struct simulate_result *simulated = &report->simulated;
    const struct budget *budget = &plan->runtime.budget;
    printf("documents   %lld: %lld requests to compute, %lld fail, %lld files skipped\n",
           report->documents, report->ready, report->failed, report->skipped);
    print_errors(report);
    printf("tokens      %lld in documents, %lld in prompts, up to %lld to generate\n",
           report->document_tokens, report->prompt_tokens, report->output_tokens_max);
    if (report->shortened > 0)
        printf("shortened   %lld to fit the context of %d\n", report->shortened,
               plan->runtime.context);
    for (int i = 0; i < report->longest_count; i++)
        printf("%-12s%6lld tokens %s%s\n", i == 0 ? "longest" : "", report->longest[i].tokens,
               report->longest[i].id, report->longest[i].too_long ? ": too long" : "");
    printf("shared      %lld prompt tokens from the prefix cache, %lld to compute\n",
           (long long)simulated->cached_tokens, (long long)simulated->prefill_tokens);
    printf(
        "memory      %.0f MB: weights %.0f, KV cache %.0f, workspace %.0f, program %.0f; %.0f MB "
        "free\n",
        (double)report->stated_bytes / 1e6, (double)budget->memory.weights / 1e6,
        (double)report->kv_bytes_peak / 1e6, (double)budget->memory.scratch / 1e6,
        (double)(report->stated_bytes - report->kv_bytes_peak - budget->memory.weights -
                 budget->memory.scratch) /
            1e6,
        (double)budget->available_bytes / 1e6);
    print_streaming(plan);
    print_time(plan);
    if (cost_of(plan) > 0)
        printf("cost        about %.4f\n", cost_of(plan));
}

static json_t *time_json(const struct plan_command *plan, double value) {
    return foretells_time(plan) ? json_real(value) : json_null();
}

static void print_json(const struct plan_command *plan) {
    const struct plan_report *report = &plan->report;
    const struct simulate_result *simulated = &report->simulated;
    json_t *errors = json_object(), *longest = json_array();
    for (size_t i = 0; i < codes_error_count(); i++) {
        if (report->errors[i] > 0)
            json_object_set_new(errors, codes_error_at(i)->name, json_integer(report->errors[i]));
    }
    for (int i = 0; i < report->longest_count; i++)
        json_array_append_new(longest, json_pack("{s:s, s:I, s:b}", "id", report->longest[i].id,
                                                 "tokens", (json_int_t)report->longest[i].tokens,
                                                 "too_long", (int)report->longest[i].too_long));
    json_t *object = json_pack(
        "{s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:o, "
        "s:I, s:i, s:o}",
        "documents", (json_int_t)report->documents, "requests", (json_int_t)report->ready, "failed",
        (json_int_t)report->failed, "skipped", (json_int_t)report->skipped, "errors", errors,
        "document_tokens", (json_int_t)report->document_tokens, "prompt_tokens",
        (json_int_t)report->prompt_tokens, "output_tokens_max",
        (json_int_t)report->output_tokens_max, "shortened", (json_int_t)report->shortened,
        "longest", longest, "cached_tokens", (json_int_t)simulated->cached_tokens,
        "computed_tokens", (json_int_t)simulated->prefill_tokens, "stated_bytes",
        (json_int_t)report->stated_bytes, "kv_bytes", (json_int_t)report->kv_bytes_peak, "seconds",
        time_json(plan, simulated->seconds), "steps", (json_int_t)simulated->steps, "running_peak",
        simulated->running_peak, "cost", time_json(plan, cost_of(plan)));
    if (plan->streamed_bytes > 0 && plan->streamed_rate > 0)
        json_object_set_new(object, "streaming",
                            json_pack("{s:I, s:f, s:f}", "bytes_per_step",
                                      (json_int_t)plan->streamed_bytes, "bytes_per_second",
                                      plan->streamed_rate, "hidden_batch_tokens",
                                      plan->hidden_rows));
    json_dumpf(object, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    printf("\n");
    json_decref(object);
}

static int report_plan(const struct plan_command *plan) {
    const struct settings *settings = plan->runtime.settings;
    if (plan->report.documents == 0) {
        fprintf(stderr, "sheaf: no documents in the inputs\n");
        return EXIT_NOT_STARTED;
    }
    if (settings->show_prompt && !plan->report.found_prompt) {
        fprintf(stderr, "sheaf: no document has the id '%s'\n", settings->show_prompt);
        return EXIT_NOT_STARTED;
    }
    if (!settings->show_prompt && settings->json)
        print_json(plan);
    else if (!settings->show_prompt)
        print_plain(plan);
    return plan->report.failed > 0 ? EXIT_SOME_FAILED : EXIT_ALL_DONE;
}

int command_plan(const struct settings *settings, const struct path_list *inputs,
                 struct arena *arena) {
    struct plan_command *plan = arena_calloc(arena, 1, sizeof *plan);
    struct error error;
    if (!plan)
        return EXIT_NOT_STARTED;
    runtime_init(&plan->runtime, settings, arena);
    finished_set_init(&plan->finished);
    plan->job.stop = &plan->never_stops;
    int code = EXIT_NOT_STARTED;
    if (run_plan(plan, inputs, arena, &error) == STATUS_OK)
        code = report_plan(plan);
    else
        fprintf(stderr, "sheaf: %s\n", error.text);
    questions_deinit(&plan->questions);
    finished_set_deinit(&plan->finished);
    runtime_deinit(&plan->runtime);
    return code;
}
