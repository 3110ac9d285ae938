/* GNU-style parsing: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, joined letters for switches,
 * `--` ends options, a lone `-` is stdin. Only option names of the chosen command are known. */
#include "cmd/arguments.h"

#include <string.h>

struct parser {
    struct arguments *arguments;
    const struct command *command;
    int argc;
    char **argv;
    int next;
    struct arena *arena;
    struct error *error;
};

static enum status unknown_option(const struct parser *parser, const char *shown,
                                  const char *name) {
    const char *suggestion = settings_config_suggest(name);
    if (suggestion && strcmp(suggestion, name) != 0)
        return error_set(parser->error, STATUS_BAD_INPUT, "unknown option '%s': did you mean --%s?",
                         shown, suggestion);
    return error_set(parser->error, STATUS_BAD_INPUT, "unknown option '%s' for 'sheaf %s'", shown,
                     parser->command->name);
}

static bool option_fits(const struct parser *parser, const struct option *option) {
    return option && (option->commands & parser->command->mask) != 0;
}

static enum status assign(struct parser *parser, const struct option *option, size_t index,
                          const char *value) {
    struct settings *settings = &parser->arguments->settings;
    parser->arguments->is_set[index] = true;
    return settings_assign(settings, option, value, parser->arena, parser->error);
}

static enum status next_value(struct parser *parser, const struct option *option,
                              const char **value) {
    if (parser->next >= parser->argc)
        return error_set(parser->error, STATUS_BAD_INPUT, "--%s needs a value", option->name);
    *value = parser->argv[parser->next++];
    return STATUS_OK;
}

static enum status parse_negation(struct parser *parser, const char *text, const char *name) {
    size_t index = 0;
    const struct option *option = settings_option_find(name, strlen(name), &index);
    if (!option_fits(parser, option) || option->kind != OPTION_SWITCH)
        return unknown_option(parser, text, name);
    parser->arguments->is_set[index] = true;
    settings_assign_switch(&parser->arguments->settings, option, false);
    return STATUS_OK;
}

static enum status parse_long(struct parser *parser, const char *text) {
    const char *name = text + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    size_t index = 0;
    const struct option *option = settings_option_find(name, length, &index);
    if (!option_fits(parser, option)) {
        if (!option && !equals && strncmp(name, "no-", 3) == 0)
            return parse_negation(parser, text, name + 3);
        char *bare = arena_copy_text(parser->arena, name, length);
        return unknown_option(parser, text, bare ? bare : name);
    }
    if (option->kind == OPTION_SWITCH && !equals) {
        parser->arguments->is_set[index] = true;
        parser->arguments->long_help |= strcmp(option->name, "help") == 0;
        settings_assign_switch(&parser->arguments->settings, option, true);
        return STATUS_OK;
    }
    const char *value = equals ? equals + 1 : NULL;
    if (!value)
        TRY(next_value(parser, option, &value));
    return assign(parser, option, index, value);
}

/* Other programs have long names behind one dash: -ngl is not -n with the value "gl". */
static bool is_familiar_name(const char *name) {
    return strlen(name) > 1 && settings_config_suggest_familiar(name) != NULL;
}

static enum status parse_letters(struct parser *parser, const char *text) {
    if (is_familiar_name(text + 1))
        return unknown_option(parser, text, text + 1);
    for (const char *letter = text + 1; *letter; letter++) {
        size_t index = 0;
        const struct option *option = settings_option_by_letter(*letter, &index);
        if (!option_fits(parser, option))
            return unknown_option(parser, text, text + 1);
        if (option->kind == OPTION_SWITCH) {
            parser->arguments->is_set[index] = true;
            settings_assign_switch(&parser->arguments->settings, option, true);
            continue;
        }
        const char *value = letter + 1;
        if (*value == '\0')
            TRY(next_value(parser, option, &value));
        return assign(parser, option, index, value);
    }
    return STATUS_OK;
}

static enum status parse_all(struct parser *parser) {
    bool only_inputs = false;
    while (parser->next < parser->argc) {
        char *text = parser->argv[parser->next++];
        if (only_inputs || text[0] != '-' || text[1] == '\0')
            TRY(settings_add_path(&parser->arguments->inputs, text, parser->arena, parser->error));
        else if (strcmp(text, "--") == 0)
            only_inputs = true;
        else if (text[1] == '-')
            TRY(parse_long(parser, text));
        else
            TRY(parse_letters(parser, text));
    }
    return STATUS_OK;
}

enum status arguments_parse(struct arguments *arguments, const struct command *command, int argc,
                            char **argv, struct arena *arena, struct error *error) {
    memset(arguments, 0, sizeof *arguments);
    settings_init(&arguments->settings);
    struct parser parser = {arguments, command, argc, argv, 0, arena, error};
    TRY(parse_all(&parser));
    if (!arguments->settings.config || arguments->settings.show_help)
        return STATUS_OK;
    /* Inputs on the command line replace the job file's. */
    struct path_list listed = {0};
    TRY(settings_config_load(&arguments->settings, arguments->settings.config, arguments->is_set,
                             &listed, command->mask, arena, error));
    if (arguments->inputs.count == 0)
        arguments->inputs = listed;
    return STATUS_OK;
}

static void print_choices(FILE *out, const struct option *option) {
    for (int i = 0; option->choices[i]; i++)
        fprintf(out, "%s%s", i == 0 ? " " : "|", option->choices[i]);
}

/* Only values that could be given: a 0 that stands for "not set" is explained by the text. */
static void print_default(FILE *out, const struct option *option) {
    struct settings settings;
    settings_init(&settings);
    const void *field = (const char *)&settings + option->offset;
    double number = 0;
    if (option->choices) {
        fprintf(out, " (default %s)", option->choices[*(const int *)field]);
        return;
    }
    if (option->kind == OPTION_INTEGER)
        number = (double)*(const long long *)field;
    else if (option->kind == OPTION_NUMBER)
        number = *(const double *)field;
    else
        return;
    if (number >= option->min && number <= option->max)
        fprintf(out, " (default %.9g)", number);
}

static void print_option(FILE *out, const struct option *option) {
    char left[64] = "";
    FILE *line = fmemopen(left, sizeof left, "w");
    if (!line)
        return;
    if (option->letter)
        fprintf(line, "-%c, ", option->letter);
    else
        fprintf(line, "    ");
    fprintf(line, "--%s", option->name);
    if (option->choices)
        print_choices(line, option);
    else if (option->argument)
        fprintf(line, " %s", option->argument);
    fclose(line);
    if (strlen(left) > 30)
        fprintf(out, "  %s\n  %-30s  %s", left, "", option->help);
    else
        fprintf(out, "  %-30s  %s", left, option->help);
    print_default(out, option);
    fputc('\n', out);
}

/* The options a newcomer needs stand in the short help. */
static bool is_essential(const struct option *option) {
    static const char *const names[] = {"model",  "prompt",   "output",     "resume", "max-tokens",
                                        "config", "too-long", "files-from", "help"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], option->name) == 0)
            return true;
    }
    return false;
}

void arguments_print_help(FILE *out, const struct command *command, bool complete) {
    fprintf(out, "usage: sheaf %s %s\n\n%s\n", command->name, command->synopsis, command->summary);
    if (complete && command->examples)
        fprintf(out, "\nexamples:\n%s", command->examples);
    fprintf(out, "\noptions:\n");
    for (size_t i = 0; i < settings_option_count(); i++) {
        const struct option *option = settings_option_at(i);
        if ((option->commands & command->mask) && (complete || is_essential(option)))
            print_option(out, option);
    }
    if (!complete)
        fprintf(out, "\n'sheaf %s --help' shows everything\n", command->name);
}
