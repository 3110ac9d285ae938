/* Order matters for start-up: the model's metadata is checked before threads exist, memory is said
 * before weights are touched. */
#include "cmd/runtime.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file_map.h"
#include "core/engine/backend_cpu.h"
#include "core/engine/backend_reference.h"
#include "core/job/input_text.h"
#include "core/kernels/attention_block.h"
#include "core/kernels/kernels.h"
#include "core/model/model_tokenizer.h"
#include "gpu/backend_cuda.h"

static const char DEFAULT_MODEL[] = "models/smollm2-135m-instruct.gguf";

static void write_to_stderr(void *context, enum log_level level, const char *message) {
    (void)context;
    static const char *const prefixes[] = {"error: ", "warning: ", "", ""};
    fprintf(stderr, "sheaf: %s%s\n", prefixes[level], message);
}

void runtime_init(struct runtime *runtime, const struct settings *settings, struct arena *arena) {
    *runtime = (struct runtime){.settings = settings, .arena = arena};
    runtime->log.level = settings->quiet ? LOG_ERROR : settings->verbose ? LOG_DEBUG : LOG_INFO;
    runtime->log.sink = write_to_stderr;
}

/* Where matmul inputs are fp16: what no scale of a row could keep in its range. */
static void warn_of_overflow(struct runtime *runtime) {
    struct backend_cuda_counts counts;
    struct error ignored;
    if (runtime->settings->device != DEVICE_CUDA || runtime->engine == NULL ||
        backend_cuda_counts(runtime->backend, &counts, &ignored) != STATUS_OK)
        return;
    if (counts.overflowed_values > 0)
        log_write(&runtime->log, LOG_WARNING,
                  "%u values were too large for the GPU's fp16: compare with --device cpu",
                  (unsigned)counts.overflowed_values);
}

void runtime_close_engine(struct runtime *runtime) {
    warn_of_overflow(runtime);
    engine_destroy(runtime->engine);
    if (runtime->backend && runtime_uses_cpu(runtime))
        backend_cpu_weights_keep(runtime->backend, runtime->stop);
    if (runtime->backend)
        runtime->backend->ops->destroy(runtime->backend);
    runtime->engine = NULL;
    runtime->backend = NULL;
    malloc_trim(0); /* the C library keeps large frees otherwise */
}

void runtime_deinit(struct runtime *runtime) {
    runtime_close_engine(runtime);
    span_recorder_destroy(runtime->recorder);
    thread_pool_destroy(runtime->pool);
    chat_template_destroy(runtime->chat);
    tokenizer_destroy(runtime->tokenizer);
    model_close(runtime->model);
}

static enum status find_model(struct runtime *runtime, struct error *error) {
    const char *named = runtime->settings->model ? runtime->settings->model : getenv("SHEAF_MODEL");
    if (named && named[0]) {
        runtime->model_path = named;
        return STATUS_OK;
    }
    char folder[3072] = "", path[4096];
    bool known = model_id_cache_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/%s", folder, DEFAULT_MODEL);
    if (!known || access(path, F_OK) != 0)
        return error_set(error, STATUS_NOT_FOUND,
                         "no model: give --model FILE, set SHEAF_MODEL, or fetch the default one "
                         "with scripts/fetch_model");
    runtime->model_path = arena_copy_text(runtime->arena, path, strlen(path));
    if (!runtime->model_path)
        return error_no_memory(error, "the model's path");
    log_write(&runtime->log, LOG_INFO, "model %s", runtime->model_path);
    return STATUS_OK;
}

enum status runtime_open_model(struct runtime *runtime, struct error *error) {
    int64_t started_ns = clock_now_ns();
    const char *architecture = runtime->settings->architecture;
    TRY(find_model(runtime, error));
    if (architecture)
        TRY(runtime_read_text(runtime, architecture, &runtime->architecture, error));
    TRY(model_open(runtime->model_path, architecture, &runtime->model, error));
    runtime->load_ms += clock_ms_between(started_ns, clock_now_ns());
    return STATUS_OK;
}

enum status runtime_open_tokenizer(struct runtime *runtime, struct error *error) {
    int64_t started_ns = clock_now_ns();
    TRY(model_tokenizer_create(runtime->model->gguf, &runtime->tokenizer, error));
    runtime->load_ms += clock_ms_between(started_ns, clock_now_ns());
    return STATUS_OK;
}

enum status runtime_read_text(struct runtime *runtime, const char *path, const char **text,
                              struct error *error) {
    struct file_map map;
    TRY(file_map_open(&map, path, error));
    size_t length = map.length;
    if (length > 0 && map.bytes[length - 1] == '\n')
        length--;
    bool has_nul = length > 0 && memchr(map.bytes, 0, length) != NULL;
    bool is_utf8 = length == 0 || input_text_valid_length(map.bytes, length) == length;
    *text = arena_copy_text(runtime->arena, (const char *)map.bytes, length);
    file_map_close(&map);
    if (has_nul)
        return error_set(error, STATUS_BAD_INPUT, "'%s' is not text: it holds NUL bytes", path);
    if (!is_utf8)
        return error_set(error, STATUS_BAD_INPUT, "'%s' is not UTF-8", path);
    return *text ? STATUS_OK : error_no_memory(error, "a text file");
}

enum status runtime_open_template(struct runtime *runtime, struct error *error) {
    const struct settings *settings = runtime->settings;
    if (settings->plain && (settings->chat_template || settings->system))
        return error_set(error, STATUS_BAD_INPUT,
                         "--%s needs a chat template: not with "
                         "--no-chat-template",
                         settings->system ? "system" : "chat-template");
    if (settings->plain)
        return STATUS_OK;
    struct view source = model_tokenizer_template(runtime->model->gguf);
    if (settings->chat_template) {
        const char *text = NULL;
        TRY(runtime_read_text(runtime, settings->chat_template, &text, error));
        source = view_of(text);
    }
    if (source.length == 0)
        return error_set(error, STATUS_BAD_INPUT,
                         "'%s' has no chat template: give --chat-template FILE, or "
                         "--no-chat-template for plain text",
                         runtime->model_path);
    if (chat_template_parse(source, &runtime->chat, error) != STATUS_OK)
        return error_context(error, "chat template of '%s'",
                             settings->chat_template ? settings->chat_template
                                                     : runtime->model_path);
    runtime->chat_source = source;
    return STATUS_OK;
}

bool runtime_uses_cpu(const struct runtime *runtime) {
    int device = runtime->settings->device;
    return device == DEVICE_AUTO || device == DEVICE_CPU;
}

static enum status create_cuda(struct runtime *runtime, struct backend **backend,
                               struct error *error) {
    const struct settings *settings = runtime->settings;
    struct device_options options = {.ordinal = (int)settings->device_number,
                                     .memory_max = settings->gpu_memory.bytes};
    TRY(backend_cuda_create(&options, backend, error));
    const struct device *device = backend_cuda_device(*backend);
    log_write(&runtime->log, LOG_INFO, "%s, compute capability %d.%d", device->name,
              device->capability / 10, device->capability % 10);
    return STATUS_OK;
}

enum status runtime_create_backend(struct runtime *runtime, int device, struct backend **backend,
                                   struct error *error) {
    if (device == DEVICE_REFERENCE)
        return backend_reference_create(runtime->pool, backend, error);
    if (device == DEVICE_CUDA)
        return create_cuda(runtime, backend, error);
    struct kernels kernels = kernels_select(&runtime->features);
    if (runtime->settings->matmul_dtype == MATMUL_INT8)
        kernels_add_int8(&kernels, &runtime->features);
    return backend_cpu_create_with(runtime->pool, &kernels, backend, error);
}

enum status runtime_open_threads(struct runtime *runtime, struct error *error) {
    runtime->features = cpu_features_detect();
    if (runtime->settings->isa) {
        enum isa isa;
        TRY(cpu_features_parse_isa(runtime->settings->isa, &isa, error));
        cpu_features_mask(&runtime->features, isa);
    }
    int threads = runtime->settings->threads > 0 ? (int)runtime->settings->threads
                                                 : cpu_features_default_threads();
    thread_pool_set_float_mode();
    return thread_pool_create(threads, false, &runtime->pool, error);
}

static enum status choose_context(struct runtime *runtime, struct error *error) {
    long long asked = runtime->settings->context;
    runtime->context = asked > 0 ? (int)asked : runtime->model->context_max;
    if (asked > runtime->model->context_max)
        return error_set(error, STATUS_BAD_INPUT,
                         "--context %lld is more than the %d tokens this model was made for", asked,
                         runtime->model->context_max);
    if (runtime->settings->max_tokens >= runtime->context)
        return error_set(error, STATUS_BAD_INPUT,
                         "--max-tokens %lld leaves no room for a prompt in a context of %d",
                         runtime->settings->max_tokens, runtime->context);
    return STATUS_OK;
}

/* No folder for caches, no cache. */
static enum status use_tile_cache(struct runtime *runtime, struct error *error) {
    const struct settings *settings = runtime->settings;
    char folder[4096];
    struct tile_cache_options options = {folder, settings->tile_cache.bytes, &runtime->log};
    if (!runtime_uses_cpu(runtime) || options.bytes_max == 0 ||
        !model_id_cache_folder(folder, sizeof folder))
        return STATUS_OK;
    return backend_cpu_use_cache(runtime->backend, &options, error);
}

static bool uses_cuda(const struct runtime *runtime) {
    return runtime->settings->device == DEVICE_CUDA;
}

static void limit_weights(struct runtime *runtime, uint64_t bytes) {
    if (uses_cuda(runtime)) {
        backend_cuda_stream_limit(runtime->backend, bytes);
        runtime->streams_weights =
            backend_cuda_stream_step_bytes(runtime->backend, runtime->model) > 0;
        return;
    }
    backend_cpu_stream_limit(runtime->backend, bytes);
    runtime->streams_weights = backend_cpu_weights_total(runtime->model) > bytes;
}

static enum status use_weights_memory(struct runtime *runtime, struct error *error) {
    const struct memory_size *size = &runtime->settings->weights_memory;
    if (size->bytes == 0 && size->percent == 0)
        return STATUS_OK;
    if (!runtime_uses_cpu(runtime) && !uses_cuda(runtime))
        return error_set(error, STATUS_BAD_INPUT,
                         "--weights-memory goes with --device cpu and --device cuda");
    const uint64_t available =
        uses_cuda(runtime) ? backend_cuda_available(runtime->backend) : budget_available_bytes();
    limit_weights(runtime, size->bytes > 0 ? size->bytes
                                           : (uint64_t)((double)available * size->percent / 100));
    return STATUS_OK;
}

enum status runtime_open_backend(struct runtime *runtime, struct error *error) {
    TRY(choose_context(runtime, error));
    if (!runtime->pool)
        TRY(runtime_open_threads(runtime, error));
    int device = runtime->settings->device;
    TRY(runtime_create_backend(runtime, device, &runtime->backend, error));
    TRY(use_tile_cache(runtime, error));
    TRY(use_weights_memory(runtime, error));
    const char *kv = budget_kv_name(budget_kv_type(runtime->settings, runtime->backend));
    snprintf(runtime->numerics, sizeof runtime->numerics, "%s/kv-%s",
             runtime->backend->ops->numerics(runtime->backend), kv);
    return STATUS_OK;
}

uint64_t runtime_weights_bytes(const struct runtime *runtime) {
    return backend_cpu_weights_total(runtime->model);
}

/* What a device's link makes of it is not foretold. */
uint64_t runtime_step_bytes(const struct runtime *runtime) {
    return runtime->streams_weights && runtime_uses_cpu(runtime)
               ? backend_cpu_stream_step_bytes(runtime->backend, runtime->model)
               : 0;
}

struct weight_stream_totals runtime_streamed(const struct runtime *runtime) {
    if (!runtime->backend || !runtime->streams_weights)
        return (struct weight_stream_totals){0};
    if (uses_cuda(runtime))
        return (struct weight_stream_totals){.bytes = backend_cuda_stream_copied(runtime->backend)};
    return backend_cpu_stream_totals(runtime->backend);
}

struct engine_options runtime_engine_options(const struct runtime *runtime) {
    const struct settings *settings = runtime->settings;
    return (struct engine_options){
        .batch_tokens = (int)settings->batch_tokens,
        .max_sequences = (int)settings->max_sequences,
        .context = runtime->context,
        .kv_type = budget_kv_type(settings, runtime->backend),
        .kv_bytes = runtime->budget.kv_bytes,
        .prefix_cache = settings->prefix_cache != 0,
        .speculate = settings->speculate != SPECULATE_OFF,
        .kernels = kernels_select(&runtime->features).elementwise,
    };
}

static void say_budget(struct runtime *runtime) {
    struct text line;
    text_init(&line, 1024);
    if (budget_describe(&runtime->budget, &line))
        log_write(&runtime->log, LOG_INFO, "%s", line.bytes);
    text_deinit(&line);
}

static enum status plan_memory(struct runtime *runtime, struct error *error) {
    return budget_plan(runtime->settings, runtime->model, runtime->backend, runtime->context,
                       &runtime->budget, error);
}

/* When it is the weights that are too many, half of the memory is theirs. */
enum status runtime_plan_memory(struct runtime *runtime, struct error *error) {
    struct error refused;
    enum status status = plan_memory(runtime, &refused);
    uint64_t half = runtime->budget.available_bytes / 2;
    bool can_stream = (runtime_uses_cpu(runtime) ? runtime->settings->tile_cache.bytes > 0
                                                 : uses_cuda(runtime)) &&
                      !runtime->streams_weights && runtime->budget.memory.weights > half;
    if (status == STATUS_OVER_LIMIT && can_stream) {
        limit_weights(runtime, half);
        status = plan_memory(runtime, &refused);
        if (status == STATUS_OK)
            log_write(
                &runtime->log, LOG_WARNING,
                "the weights do not fit: %.0f MB of memory are theirs, the rest is %s in every "
                "step (--weights-memory)",
                (double)half / 1e6,
                uses_cuda(runtime) ? "copied to the device" : "read from the tile cache");
    }
    if (status != STATUS_OK)
        *error = refused;
    return status;
}

/* Times of ops are kept in every run. */
static enum status open_recorder(struct runtime *runtime, struct error *error) {
    struct engine_totals totals;
    engine_read_totals(runtime->engine, &totals);
    const struct span_options options = {
        .detail = runtime->profile,
        .roofs = runtime->roofs,
        .int8_matmul = runtime->settings->matmul_dtype == MATMUL_INT8,
        .prefix_cache = runtime->settings->prefix_cache != 0,
        .page_bytes = runtime->budget.memory.kv_page,
        .page_count = totals.pages_max,
        .block_positions =
            attention_block_positions(runtime->model->head_count / runtime->model->kv_head_count),
        .engine = runtime->engine,
    };
    TRY(span_recorder_create(runtime->model, runtime->pool, &options, &runtime->recorder, error));
    runtime->spans.recorder = runtime->recorder;
    return STATUS_OK;
}

enum status runtime_open_engine(struct runtime *runtime, uint64_t kv_bytes, struct error *error) {
    if (kv_bytes > 0)
        budget_narrow(&runtime->budget, kv_bytes);
    say_budget(runtime);
    int64_t started_ns = clock_now_ns();
    TRY(runtime->backend->ops->prepare(runtime->backend, runtime->model, error));
    struct engine_options options = runtime_engine_options(runtime);
    span_backend_init(&runtime->spans, runtime->backend);
    TRY(engine_create(runtime->model, &runtime->spans.base, runtime->pool, &options,
                      &runtime->engine, error));
    TRY(open_recorder(runtime, error));
    runtime->load_ms += clock_ms_between(started_ns, clock_now_ns());
    return STATUS_OK;
}
