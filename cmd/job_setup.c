/* The settings' hash covers what decides a row's bytes: model, numbers, sampling, limits, and the
 * texts of prompts, template and architecture; not the paths they came from, nor threads, batch or
 * cache. */
#include "cmd/job_setup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/job/generation.h"
#include "core/model/model_tokenizer.h"

/* strftime_now of templates: one date for ever, so that a rerun tomorrow gives the same rows. */
static const long long TEMPLATE_DATE = 1721952000; /* 2024-07-26 */

static bool stdin_has_documents(void) {
    struct stat info;
    return fstat(STDIN_FILENO, &info) == 0 &&
           (S_ISFIFO(info.st_mode) || S_ISREG(info.st_mode) || S_ISSOCK(info.st_mode));
}

enum status job_setup_inputs(const struct settings *settings, const struct path_list *given,
                             struct arena *arena, struct path_list *inputs, struct error *error) {
    *inputs = *given;
    if (given->count > 0 || settings->files_from)
        return STATUS_OK;
    if (stdin_has_documents())
        return settings_add_path(inputs, "-", arena, error);
    return error_set(error, STATUS_BAD_INPUT,
                     "no documents: name files or directories, or pipe a document in");
}

/* JSONL lines, pipes, lists and directories may hold prompts; plain text files cannot. */
static bool may_bring_prompts(const char *path) {
    struct stat info;
    return strcmp(path, "-") == 0 || strstr(path, ".jsonl") != NULL ||
           (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

enum status job_setup_check_prompt(const struct settings *settings, const struct path_list *inputs,
                                   struct error *error) {
    bool found =
        settings->prompt || settings->prompt_file || settings->prompts || settings->files_from;
    for (int i = 0; i < inputs->count && !found; i++)
        found = may_bring_prompts(inputs->items[i]);
    if (found)
        return STATUS_OK;
    return error_set(error, STATUS_BAD_INPUT,
                     "no prompt: say what to do with the documents with -p 'TEXT'");
}

static uint64_t hash_text(uint64_t hash, const char *text) {
    return text ? document_hash_more(hash, text, strlen(text) + 1)
                : document_hash_more(hash, "", 0);
}

static uint64_t hash_number(uint64_t hash, double value) {
    return document_hash_more(hash, &value, sizeof value);
}

static uint64_t settings_hash_of(const struct runtime *runtime, const struct questions *questions) {
    const struct settings *settings = runtime->settings;
    const char *const texts[] = {runtime->sha256, runtime->architecture, runtime->numerics,
                                 settings->system};
    uint64_t hash = questions->hash;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        hash = hash_text(hash, texts[i]);
    hash = document_hash_more(hash, runtime->chat_source.bytes, runtime->chat_source.length);
    for (int i = 0; i < settings->stop.count; i++)
        hash = hash_text(hash, settings->stop.items[i]);
    const double numbers[] = {settings->plain,          (double)settings->max_tokens,
                              settings->ignore_eos,     settings->temperature,
                              settings->top_p,          settings->min_p,
                              settings->repeat_penalty, (double)settings->top_k,
                              (double)settings->seed,   runtime->context,
                              settings->too_long,       settings->invalid_bytes};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        hash = hash_number(hash, numbers[i]);
    return hash;
}

void job_setup_fill(struct job *job, const struct runtime *runtime,
                    const struct questions *questions, const struct path_list *inputs) {
    const struct tokenizer *tokenizer = runtime->tokenizer;
    job->settings = runtime->settings;
    job->inputs = inputs;
    job->tokenizer = tokenizer;
    job->prompt_setting = (struct prompt_setting){
        .chat = runtime->chat,
        .system = runtime->settings->system,
        .date = TEMPLATE_DATE,
    };
    if (tokenizer_bos(tokenizer) >= 0)
        job->prompt_setting.bos_token = tokenizer_token_bytes(tokenizer, tokenizer_bos(tokenizer));
    if (tokenizer_eos(tokenizer) >= 0)
        job->prompt_setting.eos_token = tokenizer_token_bytes(tokenizer, tokenizer_eos(tokenizer));
    job->questions = questions->items;
    job->question_count = questions->count;
    job->model_name = runtime->model->name;
    job->numerics = runtime->numerics;
    job->context = runtime->context;
    job->settings_hash = settings_hash_of(runtime, questions);
    job->log = (struct log *)(uintptr_t)&runtime->log;
}

static void fill_op_times(struct summary_facts *facts, const struct span_recorder *recorder) {
    for (int kind = 0; recorder != NULL && kind < SITE_KIND_COUNT; kind++) {
        double ms = span_kind_seconds(recorder, (enum op_site_kind)kind) * 1e3;
        if (kind == SITE_ATTENTION)
            facts->attention_ms += ms;
        else if (op_site_is_matmul((enum op_site_kind)kind))
            facts->matmul_ms += ms;
        else
            facts->other_ops_ms += ms;
    }
}

void job_setup_facts(struct summary_facts *facts, const struct runtime *runtime) {
    facts->version = SHEAF_VERSION;
#ifdef NDEBUG
    facts->build = "release, gcc " __VERSION__;
#else
    facts->build = "debug, gcc " __VERSION__;
#endif
    facts->device = runtime_uses_cpu(runtime)                  ? "cpu"
                    : runtime->settings->device == DEVICE_CUDA ? "cuda"
                                                               : "reference";
    facts->isa = cpu_features_isa_name(cpu_features_best(&runtime->features));
    facts->numerics = runtime->numerics;
    facts->model_name = runtime->model->name;
    facts->model_path = runtime->model_path;
    facts->model_sha256 = runtime->sha256;
    facts->threads = thread_pool_count(runtime->pool);
    facts->load_ms = runtime->load_ms;
    fill_op_times(facts, runtime->recorder);
    facts->peak_rss_bytes = budget_peak_rss_bytes();
    facts->stated_bytes = runtime->budget.stated_bytes;
    facts->weight_bytes = runtime->budget.memory.weights;
    facts->kv_bytes = runtime->budget.kv_bytes;
    facts->scratch_bytes = runtime->budget.memory.scratch;
    struct weight_stream_totals streamed = runtime_streamed(runtime);
    facts->streamed_bytes = streamed.bytes;
    facts->streaming_ms = (double)streamed.reading_ns * 1e-6;
    facts->streaming_wait_ms = (double)streamed.waited_ns * 1e-6;
}

enum status job_setup_check_writable(const char *path, struct error *error) {
    if (path == NULL)
        return STATUS_OK;
    FILE *file = fopen(path, "ae");
    if (file == NULL)
        return error_set_errno(error, STATUS_IO, errno, "cannot write '%s'", path);
    fclose(file);
    return STATUS_OK;
}
