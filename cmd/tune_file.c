/* Texts are written as JSON strings, which are YAML strings, too. */
#include "cmd/tune_file.h"

#include <string.h>

#include "core/base/json.h"

/* Options that belong to one run, not to the job. */
static bool is_left_out(const char *name) {
    static const char *const names[] = {"output",  "force", "resume",  "retry-errors", "config",
                                        "errors",  "limit", "summary", "progress",     "quiet",
                                        "verbose", "help",  "version"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool append_quoted(struct text *out, const char *value) {
    return json_append_string(out, value, strlen(value));
}

static bool append_list(struct text *out, const char *const *items, int count) {
    bool fine = text_append_char(out, '[');
    for (int i = 0; i < count; i++)
        fine = fine && (i == 0 || text_append_string(out, ", ")) && append_quoted(out, items[i]);
    return fine && text_append_char(out, ']');
}

static bool append_size(struct text *out, const struct memory_size *size) {
    return size->percent > 0 ? text_append_format(out, "\"%.9g%%\"", size->percent)
                             : text_append_format(out, "%llu", (unsigned long long)size->bytes);
}

static bool append_value(struct text *out, const struct option *option, const void *field) {
    if (option->kind == OPTION_SWITCH)
        return text_append_string(out, *(const bool *)field ? "true" : "false");
    if (option->kind == OPTION_INTEGER)
        return text_append_format(out, "%lld", *(const long long *)field);
    if (option->kind == OPTION_NUMBER)
        return text_append_format(out, "%.17g", *(const double *)field);
    if (option->kind == OPTION_CHOICE || option->kind == OPTION_DEVICE)
        return append_quoted(out, option->choices[*(const int *)field]);
    if (option->kind == OPTION_TEXT)
        return append_quoted(out, *(const char *const *)field);
    if (option->kind == OPTION_SIZE)
        return append_size(out, field);
    const struct text_list *list = field;
    return append_list(out, list->items, list->count);
}

static size_t field_bytes(const struct option *option) {
    switch (option->kind) {
    case OPTION_SWITCH:
        return sizeof(bool);
    case OPTION_INTEGER:
        return sizeof(long long);
    case OPTION_NUMBER:
        return sizeof(double);
    case OPTION_CHOICE:
    case OPTION_DEVICE:
        return sizeof(int);
    case OPTION_TEXT:
        return sizeof(const char *);
    case OPTION_SIZE:
        return sizeof(struct memory_size);
    case OPTION_TEXT_LIST:
        break;
    }
    return sizeof(struct text_list);
}

static bool append_settings(struct text *out, const struct settings *settings) {
    struct settings plain;
    bool fine = true;
    settings_init(&plain);
    for (size_t i = 0; i < settings_option_count() && fine; i++) {
        const struct option *option = settings_option_at(i);
        const void *field = (const char *)settings + option->offset;
        const void *usual = (const char *)&plain + option->offset;
        if (!(option->commands & COMMAND_RUN) || is_left_out(option->name) ||
            memcmp(field, usual, field_bytes(option)) == 0)
            continue;
        fine = text_append_format(out, "%s: ", option->name) && append_value(out, option, field) &&
               text_append_char(out, '\n');
    }
    return fine;
}

bool tune_file_describe(struct text *out, const struct tune_trial *trial) {
    const struct advice *advice = &trial->advice;
    return text_append_format(out,
                              "%s %s -> %s: predicted %.0f %% faster, measured %.0f %% (+- %.0f): "
                              "%s",
                              advice->setting, advice->from, advice->to, advice->gain * 100,
                              trial->gain * 100, trial->sigma * 100, trial->verdict);
}

bool tune_file_write(struct text *out, const struct settings *settings,
                     const struct path_list *inputs, const struct tune_trial *trials,
                     int trial_count) {
    bool fine =
        text_append_string(out, "# by sheaf tune, for sheaf run --config; what was tried:\n");
    for (int i = 0; i < trial_count; i++)
        fine = fine && text_append_string(out, "# ") && tune_file_describe(out, &trials[i]) &&
               text_append_char(out, '\n');
    if (trial_count == 0)
        fine = fine && text_append_string(out, "# nothing: no setting was predicted to gain\n");
    fine = fine && append_settings(out, settings);
    if (inputs->count > 0)
        fine = fine && text_append_string(out, "input: ") &&
               append_list(out, inputs->items, inputs->count) && text_append_char(out, '\n');
    return fine;
}
