/* Sources: /proc/meminfo, cgroup v2 memory.max and memory.current (or v1's), /proc/self/status. */
#include "core/job/budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine/lookup.h"
#include "core/weights/gguf.h"

static const uint64_t UNLIMITED = UINT64_MAX;
static const double KV_SHARE = 0.6;
static const double KV_SHARE_OWN = 0.9; /* of a device's memory, which nobody else uses */

/* The number after `key` in a file of "key: number" lines, in the file's own unit; 0 when absent.
 */
static uint64_t read_field(const char *path, const char *key) {
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    char line[256];
    uint64_t value = 0;
    size_t length = strlen(key);
    while (value == 0 && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, length) == 0)
            value = strtoull(line + length, NULL, 10);
    }
    fclose(file);
    return value;
}

/* A file that holds one number, or "max". */
static uint64_t read_number(const char *path) {
    FILE *file = fopen(path, "re");
    if (!file)
        return UNLIMITED;
    char line[64] = "";
    uint64_t value = UNLIMITED;
    if (fgets(line, sizeof line, file) && line[0] >= '0' && line[0] <= '9')
        value = strtoull(line, NULL, 10);
    fclose(file);
    return value;
}

/* This process's cgroup folder of a hierarchy: the line "ID:CONTROLLERS:PATH". */
static bool cgroup_folder(const char *controllers, const char *root, char *folder, size_t bytes) {
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return false;
    char line[4096];
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) {
        char *first = strchr(line, ':');
        char *second = first ? strchr(first + 1, ':') : NULL;
        if (!second)
            continue;
        *second = '\0';
        line[strcspn(line, "\n")] = '\0';
        second[1 + strcspn(second + 1, "\n")] = '\0';
        found = strcmp(first + 1, controllers) == 0 &&
                snprintf(folder, bytes, "%s%s", root, second + 1) < (int)bytes;
    }
    fclose(file);
    return found;
}

static uint64_t left_of(const char *folder, const char *limit_name, const char *use_name) {
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", folder, limit_name);
    uint64_t limit = read_number(path);
    snprintf(path, sizeof path, "%s/%s", folder, use_name);
    uint64_t use = read_number(path);
    if (limit == UNLIMITED || use == UNLIMITED)
        return UNLIMITED;
    return limit > use ? limit - use : 0;
}

/* The tightest limit from this process's cgroup up to the root. */
static uint64_t cgroup_left(const char *controllers, const char *root, const char *limit_name,
                            const char *use_name) {
    char folder[4200];
    uint64_t left = UNLIMITED;
    if (!cgroup_folder(controllers, root, folder, sizeof folder))
        return left_of(root, limit_name, use_name);
    while (strlen(folder) >= strlen(root)) {
        uint64_t here = left_of(folder, limit_name, use_name);
        left = here < left ? here : left;
        char *slash = strrchr(folder, '/');
        if (!slash || slash == folder)
            break;
        *slash = '\0';
    }
    return left;
}

uint64_t budget_available_bytes(void) {
    uint64_t free_bytes = read_field("/proc/meminfo", "MemAvailable:") * 1024;
    uint64_t left_v2 = cgroup_left("", "/sys/fs/cgroup", "memory.max", "memory.current");
    uint64_t left_v1 = cgroup_left("memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                   "memory.usage_in_bytes");
    if (left_v2 < free_bytes)
        free_bytes = left_v2;
    return left_v1 < free_bytes ? left_v1 : free_bytes;
}

uint64_t budget_peak_rss_bytes(void) {
    return read_field("/proc/self/status", "VmHWM:") * 1024;
}

static uint64_t kv_bytes_of_sequence(const struct model *model, const struct budget *budget,
                                     int context, int batch_tokens) {
    uint64_t bytes = 0;
    for (int g = 0; g < model->kv_group_count; g++) {
        int window = model->kv_groups[g].window;
        int tokens = context;
        if (window > 0 && window + batch_tokens < tokens)
            tokens = window + batch_tokens;
        uint64_t pages = ((uint64_t)tokens + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS + (window > 0);
        bytes += pages * budget->memory.kv_page[g];
    }
    return bytes;
}

enum kv_type budget_kv_type(const struct settings *settings, const struct backend *backend) {
    static const enum kv_type types[] = {
        [KV_CHOICE_BF16] = KV_BF16,
        [KV_CHOICE_INT8] = KV_INT8,
        [KV_CHOICE_F16] = KV_F16,
        [KV_CHOICE_FP8] = KV_FP8,
    };
    if (settings->kv_dtype == KV_CHOICE_AUTO || settings->device == DEVICE_REFERENCE)
        return backend->ops->kv_type(backend);
    return types[settings->kv_dtype];
}

const char *budget_kv_name(enum kv_type type) {
    static const char *const names[] = {[KV_BF16] = "bf16",
                                        [KV_INT8] = "int8",
                                        [KV_F16] = "f16",
                                        [KV_FP8] = "fp8",
                                        [KV_F64] = "f64"};
    return names[type];
}

static struct backend_limits limits_of(const struct settings *settings, const struct model *model,
                                       const struct backend *backend, int context) {
    int sequences = (int)settings->max_sequences;
    int guesses = settings->speculate == SPECULATE_OFF ? 0 : lookup_more_rows(sequences);
    struct backend_limits limits = {
        .row_count_max = (int)settings->batch_tokens + sequences + guesses,
        .run_count_max = 2 * sequences,
        .sample_count_max = sequences + guesses,
        .context_max = context,
        .kv_type = budget_kv_type(settings, backend),
    };
    for (int g = 0; g < model->kv_group_count; g++)
        limits.page_count_max[g] = 1;
    return limits;
}

static enum status refuse(const struct budget *budget, uint64_t one, int context,
                          struct error *error) {
    return error_set(
        error, STATUS_OVER_LIMIT,
        "not enough memory: weights %.0f MB + workspace %.0f MB + program %.0f MB + KV cache of "
        "one "
        "document of %d tokens %.0f MB, but the KV cache may take %.0f MB and %.0f MB are free: "
        "lower --context or --batch-tokens, use --kv-dtype int8, or raise --kv-memory",
        (double)budget->memory.weights / 1e6, (double)budget->memory.scratch / 1e6,
        (double)(budget->program_bytes + budget->queue_bytes) / 1e6, context, (double)one / 1e6,
        (double)budget->kv_bytes / 1e6, (double)budget->available_bytes / 1e6);
}

/* What is resident before weights are touched (vocabulary, code, the queue read so far), and room
 * for queues, stacks and rows to come. */
static uint64_t program_bytes_now(const struct model *model) {
    const uint64_t room = UINT64_C(20) << 20;
    if (model->gguf)
        gguf_forget_all(model->gguf); /* what loading has read of the file is not needed again */
    return read_field("/proc/self/status", "VmRSS:") * 1024 + room;
}

enum status budget_plan(const struct settings *settings, const struct model *model,
                        const struct backend *backend, int context, struct budget *budget,
                        struct error *error) {
    bool own_memory = backend->ops->available != NULL;
    *budget = (struct budget){.available_bytes = own_memory ? backend->ops->available(backend)
                                                            : budget_available_bytes(),
                              .program_bytes = own_memory ? 0 : program_bytes_now(model),
                              .of_device = own_memory};
    struct backend_limits limits = limits_of(settings, model, backend, context);
    budget->memory = backend->ops->memory(backend, model, &limits);
    if (settings->speculate != SPECULATE_OFF && !own_memory)
        budget->memory.scratch += lookup_bytes((int)settings->max_sequences, context);
    uint64_t fixed = budget_fixed_bytes(budget);
    uint64_t left = budget->available_bytes > fixed ? budget->available_bytes - fixed : 0;
    uint64_t one = kv_bytes_of_sequence(model, budget, context, (int)settings->batch_tokens);
    uint64_t most = one * (uint64_t)settings->max_sequences;
    if (settings->kv_memory.bytes > 0)
        budget->kv_bytes = settings->kv_memory.bytes;
    else if (settings->kv_memory.percent > 0)
        budget->kv_bytes = (uint64_t)((double)left * settings->kv_memory.percent / 100);
    else
        budget->kv_bytes = (uint64_t)((double)left * (own_memory ? KV_SHARE_OWN : KV_SHARE));
    if (budget->kv_bytes > most)
        budget->kv_bytes = most;
    budget->stated_bytes = fixed + budget->kv_bytes;
    if (left == 0 || budget->stated_bytes > budget->available_bytes)
        return refuse(budget, one, context, error);
    return STATUS_OK;
}

uint64_t budget_fixed_bytes(const struct budget *budget) {
    return budget->memory.weights + budget->memory.scratch + budget->program_bytes +
           budget->queue_bytes;
}

/* A device's memory holds no queues. */
enum status budget_add_queues(struct budget *budget, struct error *error) {
    if (budget->of_device)
        return STATUS_OK;
    budget->queue_bytes = BUDGET_QUEUE_BYTES;
    budget->stated_bytes += BUDGET_QUEUE_BYTES;
    if (budget->stated_bytes <= budget->available_bytes)
        return STATUS_OK;
    struct text text;
    text_init(&text, 1024);
    bool fine = budget_describe(budget, &text);
    error_set(error, STATUS_OVER_LIMIT, "not enough memory: %s: lower --kv-memory or --context",
              fine ? text.bytes : "the queues do not fit");
    text_deinit(&text);
    return STATUS_OVER_LIMIT;
}

void budget_narrow(struct budget *budget, uint64_t kv_bytes) {
    if (kv_bytes >= budget->kv_bytes)
        return;
    budget->stated_bytes -= budget->kv_bytes - kv_bytes;
    budget->kv_bytes = kv_bytes;
}

bool budget_describe(const struct budget *budget, struct text *out) {
    return text_append_format(out,
                              "needs up to %.0f MB%s: weights %.0f, KV cache %.0f, workspace %.0f, "
                              "program %.0f; %.0f MB free",
                              (double)budget->stated_bytes / 1e6,
                              budget->of_device ? " of device memory" : "",
                              (double)budget->memory.weights / 1e6, (double)budget->kv_bytes / 1e6,
                              (double)budget->memory.scratch / 1e6,
                              (double)(budget->program_bytes + budget->queue_bytes) / 1e6,
                              (double)budget->available_bytes / 1e6);
}
