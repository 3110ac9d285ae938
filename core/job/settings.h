/* Everything a user can set, in one plain struct, and the table of options that fills it: command
 * line, YAML job files and the `options` of a JSONL line all go through the same rows. A new option
 * is one row here; parsing, help, job files and tests follow. */
#ifndef CORE_JOB_SETTINGS_H
#define CORE_JOB_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"

enum { TEXT_LIST_MAX = 64, SETTINGS_OPTIONS_MAX = 80 };

struct text_list {
    const char *items[TEXT_LIST_MAX];
    int count;
};

/* Paths as given, any number of them; memory in the arena of the options. */
struct path_list {
    const char **items;
    int count;
    int capacity;
};

/* A memory size: bytes, or a share of what is free. */
struct memory_size {
    uint64_t bytes; /* 0 with percent 0: not given */
    double percent;
};

enum too_long { TOO_LONG_ERROR, TOO_LONG_KEEP_HEAD, TOO_LONG_KEEP_TAIL, TOO_LONG_KEEP_ENDS };
enum invalid_bytes { INVALID_BYTES_ERROR, INVALID_BYTES_REPLACE };
enum stdin_format { STDIN_TEXT, STDIN_JSONL };
enum output_format { FORMAT_JSONL, FORMAT_TEXT, FORMAT_FILES };
enum output_order { ORDER_COMPLETION, ORDER_INPUT };
enum progress_mode { PROGRESS_AUTO, PROGRESS_PLAIN, PROGRESS_OFF };
enum device_choice { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA, DEVICE_REFERENCE };
enum matmul_choice { MATMUL_AUTO, MATMUL_INT8 };
enum speculate_choice { SPECULATE_OFF, SPECULATE_LOOKUP };
enum kv_choice { KV_CHOICE_AUTO, KV_CHOICE_BF16, KV_CHOICE_INT8, KV_CHOICE_F16, KV_CHOICE_FP8 };

struct settings {
    /* model */
    const char *model;
    const char *architecture;
    /* prompt */
    const char *prompt, *prompt_file, *system, *prompts;
    const char *chat_template; /* file; NULL: the model's own */
    bool plain;                /* --no-chat-template */
    /* input */
    const char *files_from;
    bool files_from_nul;
    long long limit; /* 0: all */
    int invalid_bytes, stdin_format;
    /* output */
    const char *output;
    bool force, resume, retry_errors;
    int format, order;
    const char *errors;
    struct text_list fail_on;
    /* generation */
    long long max_tokens;
    struct text_list stop;
    bool ignore_eos;
    double temperature, top_p, min_p, repeat_penalty;
    long long top_k, seed;
    /* length */
    long long context; /* 0: the model's limit */
    int too_long;
    /* engine */
    int kv_dtype;
    int matmul_dtype;
    struct memory_size kv_memory, weights_memory;
    long long batch_tokens, max_sequences;
    int prefix_cache; /* 0 off, 1 on */
    int speculate;
    struct memory_size tile_cache;
    long long threads; /* 0: default */
    const char *isa;
    int device;
    long long device_number; /* of several, --device cuda:N */
    struct memory_size gpu_memory;
    /* job */
    const char *config;
    const char *summary;
    int progress;
    double price_per_hour;
    bool quiet, verbose;
    /* verify, plan, tokenize, bench */
    const char *rows, *against;
    const char *show_prompt;
    long long positions;
    long long heads, kv_heads, head_dim, window;
    double softcap;
    bool bidirectional, backward;
    const char *report, *trace;
    long long sample_seconds;
    bool consent;
    bool ids_only, json;
    bool show_help, show_version;
};

enum command_mask {
    COMMAND_RUN = 1,
    COMMAND_PLAN = 2,
    COMMAND_VERIFY = 4,
    COMMAND_TOKENIZE = 8,
    COMMAND_MODEL = 16,
    COMMAND_BENCH = 32,
    COMMAND_PROFILE = 64,
    COMMAND_TUNE = 128,
    COMMAND_ALL = 255
};

enum option_kind {
    OPTION_SWITCH, /* bool; --no-NAME undoes it */
    OPTION_INTEGER,
    OPTION_NUMBER,
    OPTION_TEXT,
    OPTION_TEXT_LIST, /* repeatable */
    OPTION_SIZE,
    OPTION_CHOICE,
    OPTION_DEVICE, /* a choice, with ":N" behind cuda */
};

struct option {
    const char *name; /* long name without dashes */
    char letter;      /* 0: none */
    enum option_kind kind;
    size_t offset; /* into struct settings */
    unsigned commands;
    bool per_document;          /* allowed in a JSONL line's options */
    double min, max;            /* numbers; sizes: fewest bytes, largest share in percent */
    const char *const *choices; /* NULL-terminated, in the enum's order */
    const char *argument;       /* for help: "N", "FILE" */
    const char *help;
};

void settings_init(struct settings *settings);

size_t settings_option_count(void);
const struct option *settings_option_at(size_t index);
/* By long name (without --no-), or NULL; *index may be NULL. */
const struct option *settings_option_find(const char *name, size_t length, size_t *index);
const struct option *settings_option_by_letter(char letter, size_t *index);

/* Assign a value given as text. Texts are copied to `arena`. The error says what was expected. */
enum status settings_assign(struct settings *settings, const struct option *option,
                            const char *value, struct arena *arena, struct error *error);
/* Set or undo a switch. */
void settings_assign_switch(struct settings *settings, const struct option *option, bool value);

/* Append a copy of `path`. */
enum status settings_add_path(struct path_list *list, const char *path, struct arena *arena,
                              struct error *error);

/* The familiar wrong name's right one ("ctx-size" → "context"), a close spelling, or NULL. */
const char *settings_config_suggest(const char *name);
/* Only the familiar ones. */
const char *settings_config_suggest_familiar(const char *name);

/* Options of a YAML job file; `is_set[i]` marks options the command line gave: they win. Inputs
 * listed under `input:` are appended to `inputs`. Unknown keys are errors naming the line. */
enum status settings_config_load(struct settings *settings, const char *path, const bool *is_set,
                                 struct path_list *inputs, unsigned command, struct arena *arena,
                                 struct error *error);

/* Cross-checks that no single option can do (top_p range with greedy is fine; --resume needs -o…).
 */
enum status settings_check_run(const struct settings *settings, struct error *error);

#endif
