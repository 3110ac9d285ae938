/* The option table and the parsing of single values. Ranges and choices stand in the table, so that
 * an out-of-range value is refused in one place with one form of message. */
#include "core/job/settings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/job/input_text.h"

#define AT(field) offsetof(struct settings, field)
#define SAMPLE (COMMAND_PROFILE | COMMAND_TUNE)
#define ENGINE (COMMAND_RUN | COMMAND_PLAN | COMMAND_VERIFY | SAMPLE)
#define DOCUMENTS (COMMAND_RUN | COMMAND_PLAN | SAMPLE)
#define ANY_MODEL COMMAND_ALL

static const char *const too_long_choices[] = {"error", "keep-head", "keep-tail", "keep-ends",
                                               NULL};
static const char *const invalid_bytes_choices[] = {"error", "replace", NULL};
static const char *const stdin_choices[] = {"text", "jsonl", NULL};
static const char *const format_choices[] = {"jsonl", "text", "files", NULL};
static const char *const order_choices[] = {"completion", "input", NULL};
static const char *const kv_choices[] = {"auto", "bf16", "int8", "f16", "fp8", NULL};
static const char *const matmul_choices[] = {"auto", "int8", NULL};
static const char *const progress_choices[] = {"auto", "plain", "off", NULL};
static const char *const device_choices[] = {"auto", "cpu", "cuda", "reference", NULL};

static const char *const speculate_choices[] = {"off", "lookup", NULL};

static const char *const switch_choices[] = {"off", "on", NULL};

static const double UNBOUNDED = 9e15;

#define SWITCH(name, letter, field, commands, help) \
    { name, letter, OPTION_SWITCH, AT(field), commands, false, 0, 0, NULL, NULL, help }
#define TEXT(name, letter, field, commands, argument, help) \
    { name, letter, OPTION_TEXT, AT(field), commands, false, 0, 0, NULL, argument, help }
#define INTEGER(name, letter, field, commands, low, high, help) \
    { name, letter, OPTION_INTEGER, AT(field), commands, false, low, high, NULL, "N", help }
#define CHOICE(name, field, commands, choices, help) \
    { name, 0, OPTION_CHOICE, AT(field), commands, false, 0, 0, choices, NULL, help }

/* Options a document may carry itself. */
#define OWN_INTEGER(name, letter, field, low, high, help) \
    { name, letter, OPTION_INTEGER, AT(field), ENGINE, true, low, high, NULL, "N", help }
#define OWN_NUMBER(name, field, low, high, help) \
    { name, 0, OPTION_NUMBER, AT(field), ENGINE, true, low, high, NULL, "X", help }

static const struct option options[] = {
    TEXT("model", 'm', model, ANY_MODEL, "FILE",
         "GGUF model file; default $SHEAF_MODEL, else the fetched default model"),
    TEXT("architecture", 0, architecture, ANY_MODEL, "FILE",
         "YAML description of the model's architecture instead of the built-in ones"),

    {"prompt", 'p', OPTION_TEXT, AT(prompt), ENGINE, true, 0, 0, NULL, "TEXT",
     "what to do; {document} {path} {name} {index} are filled in"},
    TEXT("prompt-file", 0, prompt_file, ENGINE, "FILE", "read the prompt from a file"),
    {"system", 0, OPTION_TEXT, AT(system), ENGINE, true, 0, 0, NULL, "TEXT",
     "system message of the chat template"},
    TEXT("prompts", 0, prompts, DOCUMENTS, "FILE",
         "many questions over each document: JSONL with id and prompt; KV is shared"),
    TEXT("chat-template", 0, chat_template, ENGINE, "FILE",
         "use this chat template instead of the model's own"),
    SWITCH("no-chat-template", 0, plain, ENGINE, "plain text: no chat template"),

    TEXT("files-from", 0, files_from, DOCUMENTS, "LIST",
         "read input paths from a file, one a line"),
    SWITCH("null", '0', files_from_nul, DOCUMENTS, "paths in --files-from end with NUL"),
    INTEGER("limit", 0, limit, DOCUMENTS, 1, UNBOUNDED, "process only the first N documents"),
    CHOICE("stdin-format", stdin_format, DOCUMENTS, stdin_choices,
           "standard input is one document, or JSONL"),
    CHOICE("invalid-bytes", invalid_bytes, DOCUMENTS, invalid_bytes_choices,
           "what to do with bytes that are not UTF-8"),

    TEXT("output", 'o', output, COMMAND_RUN | COMMAND_TUNE, "FILE",
         "append rows to FILE (default: stdout); of tune: the job file it writes"),
    SWITCH("force", 0, force, COMMAND_RUN | COMMAND_TUNE, "overwrite an existing output"),
    SWITCH("resume", 0, resume, COMMAND_RUN, "continue an interrupted run in the same output"),
    SWITCH("retry-errors", 0, retry_errors, COMMAND_RUN,
           "with --resume: redo documents that failed"),
    CHOICE("format", format, COMMAND_RUN, format_choices, "form of the output"),
    CHOICE("order", order, COMMAND_RUN, order_choices, "order of the rows at the end"),
    TEXT("errors", 0, errors, COMMAND_RUN, "FILE",
         "also append the rows of failed documents to FILE"),
    {"fail-on", 0, OPTION_TEXT_LIST, AT(fail_on), COMMAND_RUN, false, 0, 0, NULL, "WARNING,...",
     "treat documents with these warnings as failed"},

    OWN_INTEGER("max-tokens", 'n', max_tokens, 1, 1e9, "most tokens to generate for a document"),
    {"stop", 0, OPTION_TEXT_LIST, AT(stop), ENGINE, true, 0, 0, NULL, "TEXT",
     "end the output before this text (repeatable)"},
    {"ignore-eos", 0, OPTION_SWITCH, AT(ignore_eos), ENGINE, true, 0, 0, NULL, NULL,
     "do not stop at the model's end tokens"},
    OWN_NUMBER("temperature", temperature, 0, 100, "0 is greedy"),
    OWN_NUMBER("top-p", top_p, 1e-6, 1, "keep the most likely tokens up to this mass"),
    OWN_INTEGER("top-k", 0, top_k, 0, 1e9, "keep the K most likely tokens; 0: all"),
    OWN_NUMBER("min-p", min_p, 0, 1, "keep tokens at least this share of the likeliest"),
    OWN_NUMBER("repeat-penalty", repeat_penalty, 0.01, 100, "divide logits of tokens seen; 1: off"),
    OWN_INTEGER("seed", 0, seed, 0, UNBOUNDED, "of sampling; the same seed gives the same text"),

    INTEGER("context", 'c', context, ENGINE, 16, 1e9, "most tokens of prompt and output together"),
    CHOICE("too-long", too_long, ENGINE, too_long_choices, "when a document does not fit"),

    CHOICE("kv-dtype", kv_dtype, ENGINE | COMMAND_BENCH, kv_choices,
           "number format of the KV cache: bf16 (auto), int8; with CUDA f16 and fp8, too"),
    CHOICE("matmul-dtype", matmul_dtype, ENGINE | COMMAND_BENCH, matmul_choices,
           "what matmul inputs are rounded to: bf16 or fp32 (auto), or int8: faster, less exact"),
    {"kv-memory", 0, OPTION_SIZE, AT(kv_memory), ENGINE, false, 1, 100, NULL, "SIZE",
     "most memory for the KV cache: 6G, 500M or 80%"},
    {"weights-memory", 0, OPTION_SIZE, AT(weights_memory), ENGINE, false, 1, 100, NULL, "SIZE",
     "most memory for weights: what is more is read, or copied to the GPU, in every step"},
    INTEGER("batch-tokens", 0, batch_tokens, ENGINE, 1, 65536,
            "most prompt tokens computed in a step"),
    INTEGER("max-sequences", 0, max_sequences, ENGINE, 1, 4096, "most documents computed at once"),
    CHOICE("prefix-cache", prefix_cache, ENGINE, switch_choices,
           "share the KV of equal beginnings"),
    CHOICE("speculate", speculate, DOCUMENTS, speculate_choices,
           "lookup: guess what a document repeats and compute it ahead; same text, sooner"),
    {"tile-cache", 0, OPTION_SIZE, AT(tile_cache), COMMAND_RUN | COMMAND_VERIFY | SAMPLE, false, 0,
     0, NULL, "SIZE",
     "disk space for weights kept ready for the next start: 20G (default); 0: none"},
    INTEGER("threads", 't', threads, COMMAND_ALL, 1, 1024, "default: cores this process may use"),
    TEXT("isa", 0, isa, COMMAND_ALL, "NAME",
         "scalar, avx2, avx512 or amx: no wider instructions than these"),
    {"device", 0, OPTION_DEVICE, AT(device), ENGINE, false, 0, 0, device_choices, NULL,
     "where to compute; auto is cpu; cuda:N for the N-th device from 0"},
    {"gpu-memory", 0, OPTION_SIZE, AT(gpu_memory), ENGINE, false, 1, 0, NULL, "SIZE",
     "most device memory to use with --device cuda"},

    TEXT("config", 0, config, ENGINE, "JOB.yaml",
         "options by their long names; the command line wins"),
    TEXT("summary", 0, summary, COMMAND_RUN, "FILE", "write the summary as JSON"),
    CHOICE("progress", progress, COMMAND_RUN, progress_choices, "progress on stderr"),
    {"price-per-hour", 0, OPTION_NUMBER, AT(price_per_hour), DOCUMENTS, false, 0, 1e9, NULL, "X",
     "of this machine, for cost figures"},
    SWITCH("quiet", 'q', quiet, COMMAND_ALL, "only errors on stderr"),
    SWITCH("verbose", 'v', verbose, COMMAND_ALL, "more on stderr"),

    TEXT("rows", 0, rows, COMMAND_VERIFY, "OUT.jsonl",
         "recompute finished rows alone and compare their text"),
    TEXT("against", 0, against, COMMAND_VERIFY, "LOGITS",
         "compare another program's logits with the reference: a file that names its tokens"),
    INTEGER("positions", 0, positions, COMMAND_VERIFY, 2, 1e9, "positions to compare"),
    TEXT("show-prompt", 0, show_prompt, COMMAND_PLAN, "ID",
         "print the exact prompt of a document, special tokens marked"),
    INTEGER("heads", 0, heads, COMMAND_BENCH, 1, 1024, "query heads of a batch"),
    INTEGER("kv-heads", 0, kv_heads, COMMAND_BENCH, 1, 1024, "KV heads; default: as query heads"),
    INTEGER("head-dim", 0, head_dim, COMMAND_BENCH, 2, 512, "dimensions of a head, even"),
    INTEGER("window", 0, window, COMMAND_BENCH, 0, 1e9, "keys a position sees; 0: all earlier"),
    {"softcap", 0, OPTION_NUMBER, AT(softcap), COMMAND_BENCH, false, 0, 1e9, NULL, "X",
     "cap of attention scores; 0: none"},
    SWITCH("bidirectional", 0, bidirectional, COMMAND_BENCH, "no causal mask"),
    SWITCH("backward", 0, backward, COMMAND_BENCH, "attention's gradients too"),
    TEXT("report", 0, report, COMMAND_PROFILE, "FILE",
         "write all of the profile: FILE.json, or FILE.html with plots"),
    TEXT("trace", 0, trace, COMMAND_PROFILE, "FILE.json",
         "write some steps op by op, for ui.perfetto.dev"),
    INTEGER("sample-seconds", 0, sample_seconds, SAMPLE, 1, 1e6,
            "begin no more documents after so long; default 60, of tune 15"),
    SWITCH("consent", 0, consent, COMMAND_TUNE, "also try what changes results, as int8 KV"),
    SWITCH("ids-only", 0, ids_only, COMMAND_TOKENIZE, "print ids alone, one line a document"),
    SWITCH("json", 0, json,
           COMMAND_PLAN | COMMAND_MODEL | COMMAND_VERIFY | COMMAND_BENCH | COMMAND_PROFILE,
           "print JSON"),
    SWITCH("help", 'h', show_help, COMMAND_ALL, "-h: short, --help: everything"),
    SWITCH("version", 'V', show_version, COMMAND_ALL, "print version and build"),
};

static const size_t OPTION_COUNT = sizeof options / sizeof options[0];
_Static_assert(sizeof options / sizeof options[0] <= (size_t)SETTINGS_OPTIONS_MAX,
               "raise SETTINGS_OPTIONS_MAX");

void settings_init(struct settings *settings) {
    *settings = (struct settings){
        .invalid_bytes = INVALID_BYTES_REPLACE,
        .max_tokens = 512,
        .top_p = 1,
        .repeat_penalty = 1,
        .batch_tokens = 512,
        .max_sequences = 64,
        .prefix_cache = 1,
        .tile_cache = {.bytes = UINT64_C(20) << 30},
        .positions = 256,
        .heads = 16,
        .head_dim = 64,
    };
}

size_t settings_option_count(void) {
    return OPTION_COUNT;
}

const struct option *settings_option_at(size_t index) {
    return &options[index];
}

const struct option *settings_option_find(const char *name, size_t length, size_t *index) {
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (strlen(options[i].name) == length && memcmp(options[i].name, name, length) == 0) {
            if (index)
                *index = i;
            return &options[i];
        }
    }
    return NULL;
}

const struct option *settings_option_by_letter(char letter, size_t *index) {
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (options[i].letter == letter && letter != 0) {
            if (index)
                *index = i;
            return &options[i];
        }
    }
    return NULL;
}

static void *field_of(struct settings *settings, const struct option *option) {
    return (char *)settings + option->offset;
}

void settings_assign_switch(struct settings *settings, const struct option *option, bool value) {
    *(bool *)field_of(settings, option) = value;
}

/* strtod and strtoll take white space and a plus sign, too. */
static bool begins_number(const char *value) {
    return value[0] == '-' || value[0] == '.' || (value[0] >= '0' && value[0] <= '9');
}

static enum status assign_integer(struct settings *settings, const struct option *option,
                                  const char *value, struct error *error) {
    char *end = NULL;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (end == value || !begins_number(value) || *end != '\0' || errno != 0 ||
        (double)number < option->min || (double)number > option->max) {
        if (option->max >= 1e9)
            return error_set(error, STATUS_BAD_INPUT,
                             "--%s must be a whole number ≥ %.0f, got '%s'", option->name,
                             option->min, value);
        return error_set(error, STATUS_BAD_INPUT,
                         "--%s must be a whole number from %.0f to %.0f, got '%s'", option->name,
                         option->min, option->max, value);
    }
    *(long long *)field_of(settings, option) = number;
    return STATUS_OK;
}

static enum status assign_number(struct settings *settings, const struct option *option,
                                 const char *value, struct error *error) {
    char *end = NULL;
    double number = strtod(value, &end);
    if (end == value || !begins_number(value) || *end != '\0' || !isfinite(number) ||
        number < option->min || number > option->max)
        return error_set(error, STATUS_BAD_INPUT, "--%s must be a number from %g to %g, got '%s'",
                         option->name, option->min, option->max, value);
    *(double *)field_of(settings, option) = number;
    return STATUS_OK;
}

static double size_unit(const char *unit) {
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"", 1},
                 {"B", 1},
                 {"K", 1 << 10},
                 {"KB", 1 << 10},
                 {"KiB", 1 << 10},
                 {"M", 1 << 20},
                 {"MB", 1 << 20},
                 {"MiB", 1 << 20},
                 {"G", 1 << 30},
                 {"GB", 1 << 30},
                 {"GiB", 1 << 30},
                 {"T", 1099511627776.0},
                 {"TB", 1099511627776.0},
                 {"TiB", 1099511627776.0}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(unit, units[i].name) == 0)
            return units[i].bytes;
    }
    return 0;
}

static enum status assign_size(struct settings *settings, const struct option *option,
                               const char *value, struct error *error) {
    struct memory_size *size = field_of(settings, option);
    char *end = NULL;
    double number = strtod(value, &end);
    bool valid = end != value && begins_number(value) && isfinite(number) && number >= 0;
    if (valid && strcmp(end, "%") == 0 && number > 0 && number <= option->max) {
        *size = (struct memory_size){.percent = number};
        return STATUS_OK;
    }
    double unit = valid ? size_unit(end) : 0;
    if (unit == 0 || number * unit < option->min || number * unit > UNBOUNDED)
        return error_set(error, STATUS_BAD_INPUT, "--%s must be a size such as %s, got '%s'",
                         option->name, option->max > 0 ? "6G, 500M or 80%" : "6G, 500M or 0",
                         value);
    *size = (struct memory_size){.bytes = (uint64_t)(number * unit)};
    return STATUS_OK;
}

static enum status assign_choice(struct settings *settings, const struct option *option,
                                 const char *value, struct error *error) {
    char known[256] = "";
    for (int i = 0; option->choices[i]; i++) {
        if (strcmp(option->choices[i], value) == 0) {
            *(int *)field_of(settings, option) = i;
            return STATUS_OK;
        }
        if (i > 0)
            strncat(known, ", ", sizeof known - strlen(known) - 1);
        strncat(known, option->choices[i], sizeof known - strlen(known) - 1);
    }
    return error_set(error, STATUS_BAD_INPUT, "--%s must be one of %s, got '%s'", option->name,
                     known, value);
}

/* "cuda:1" is the choice "cuda", and which. */
static enum status assign_device(struct settings *settings, const struct option *option,
                                 const char *value, struct error *error) {
    const char *number = strncmp(value, "cuda:", 5) == 0 ? value + 5 : NULL;
    if (number == NULL) {
        settings->device_number = 0;
        return assign_choice(settings, option, value, error);
    }
    char *end = NULL;
    settings->device_number = strtoll(number, &end, 10);
    if (number[0] < '0' || number[0] > '9' || *end != '\0' || settings->device_number > 1023)
        return error_set(error, STATUS_BAD_INPUT,
                         "--%s: a CUDA device is cuda:0, cuda:1, ..., not '%s'", option->name,
                         value);
    return assign_choice(settings, option, "cuda", error);
}

/* Prompts and stop strings go into rows and tokens; paths may be any bytes. */
static enum status check_text(const struct option *option, const char *value, struct error *error) {
    size_t length = strlen(value);
    if (!option->argument || strcmp(option->argument, "TEXT") != 0 || length == 0)
        return STATUS_OK;
    size_t valid = input_text_valid_length((const uint8_t *)value, length);
    if (valid == length)
        return STATUS_OK;
    return error_set(error, STATUS_BAD_INPUT, "--%s must be UTF-8: byte %zu is not", option->name,
                     valid);
}

static enum status assign_text_list(struct settings *settings, const struct option *option,
                                    const char *value, struct arena *arena, struct error *error) {
    struct text_list *list = field_of(settings, option);
    if (value[0] == '\0')
        return error_set(error, STATUS_BAD_INPUT, "--%s must not be empty", option->name);
    if (list->count == TEXT_LIST_MAX)
        return error_set(error, STATUS_OVER_LIMIT, "--%s was given more than %d times",
                         option->name, TEXT_LIST_MAX);
    TRY(check_text(option, value, error));
    char *copy = arena_copy_text(arena, value, strlen(value));
    if (!copy)
        return error_no_memory(error, "options");
    list->items[list->count++] = copy;
    return STATUS_OK;
}

static enum status assign_text(struct settings *settings, const struct option *option,
                               const char *value, struct arena *arena, struct error *error) {
    TRY(check_text(option, value, error));
    char *copy = arena_copy_text(arena, value, strlen(value));
    if (!copy)
        return error_no_memory(error, "options");
    *(const char **)field_of(settings, option) = copy;
    return STATUS_OK;
}

static enum status assign_switch_text(struct settings *settings, const struct option *option,
                                      const char *value, struct error *error) {
    bool on = strcmp(value, "on") == 0 || strcmp(value, "true") == 0 || strcmp(value, "yes") == 0;
    bool off = strcmp(value, "off") == 0 || strcmp(value, "false") == 0 || strcmp(value, "no") == 0;
    if (!on && !off)
        return error_set(error, STATUS_BAD_INPUT, "--%s must be on or off, got '%s'", option->name,
                         value);
    settings_assign_switch(settings, option, on);
    return STATUS_OK;
}

enum status settings_assign(struct settings *settings, const struct option *option,
                            const char *value, struct arena *arena, struct error *error) {
    switch (option->kind) {
    case OPTION_SWITCH:
        return assign_switch_text(settings, option, value, error);
    case OPTION_INTEGER:
        return assign_integer(settings, option, value, error);
    case OPTION_NUMBER:
        return assign_number(settings, option, value, error);
    case OPTION_SIZE:
        return assign_size(settings, option, value, error);
    case OPTION_CHOICE:
        return assign_choice(settings, option, value, error);
    case OPTION_DEVICE:
        return assign_device(settings, option, value, error);
    case OPTION_TEXT_LIST:
        return assign_text_list(settings, option, value, arena, error);
    case OPTION_TEXT:
        break;
    }
    return assign_text(settings, option, value, arena, error);
}

enum status settings_add_path(struct path_list *list, const char *path, struct arena *arena,
                              struct error *error) {
    if (list->count == list->capacity) {
        int capacity = list->capacity ? list->capacity * 2 : 16;
        const char **items = arena_calloc(arena, (size_t)capacity, sizeof *items);
        if (!items)
            return error_no_memory(error, "input paths");
        if (list->count > 0)
            memcpy(items, list->items, (size_t)list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    char *copy = arena_copy_text(arena, path, strlen(path));
    if (!copy)
        return error_no_memory(error, "input paths");
    list->items[list->count++] = copy;
    return STATUS_OK;
}

enum status settings_check_run(const struct settings *settings, struct error *error) {
    if (settings->prompt && settings->prompt_file)
        return error_set(error, STATUS_BAD_INPUT, "give --prompt or --prompt-file, not both");
    if (settings->force && settings->resume)
        return error_set(error, STATUS_BAD_INPUT, "give --force or --resume, not both");
    if ((settings->resume || settings->order == ORDER_INPUT || settings->format == FORMAT_FILES) &&
        !settings->output)
        return error_set(error, STATUS_BAD_INPUT, "--%s needs an output: add -o %s",
                         settings->resume                   ? "resume"
                         : settings->format == FORMAT_FILES ? "format files"
                                                            : "order input",
                         settings->format == FORMAT_FILES ? "DIRECTORY" : "FILE");
    if (settings->order == ORDER_INPUT && settings->format != FORMAT_JSONL)
        return error_set(error, STATUS_BAD_INPUT, "--order input orders rows: not with --format %s",
                         settings->format == FORMAT_TEXT ? "text" : "files");
    if (settings->format == FORMAT_TEXT && settings->resume)
        return error_set(error, STATUS_BAD_INPUT,
                         "--resume needs rows: use --format jsonl or files");
    if (settings->retry_errors && !settings->resume)
        return error_set(error, STATUS_BAD_INPUT, "--retry-errors goes with --resume");
    return STATUS_OK;
}
