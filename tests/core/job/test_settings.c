/* The option table: its form, the parsing of values, job files. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/job/settings.h"

static struct arena arena;
static struct settings settings;
static struct error error;

static void setup(void) {
    arena_init(&arena, 4096, 1 << 24);
    settings_init(&settings);
    error.text[0] = '\0';
}

static void teardown(void) {
    arena_deinit(&arena);
}

TestSuite(settings, .init = setup, .fini = teardown);

static enum status assign(const char *name, const char *value) {
    const struct option *option = settings_option_find(name, strlen(name), NULL);
    cr_assert_not_null(option, "no option %s", name);
    return settings_assign(&settings, option, value, &arena, &error);
}

Test(settings, every_row_is_well_formed) {
    for (size_t i = 0; i < settings_option_count(); i++) {
        const struct option *option = settings_option_at(i);
        size_t index = SIZE_MAX;
        cr_assert_eq(settings_option_find(option->name, strlen(option->name), &index), option);
        cr_assert_eq(index, i);
        cr_assert_gt(strlen(option->help), 5);
        cr_assert_neq(option->commands, 0);
        cr_assert_lt(option->offset, sizeof(struct settings));
        cr_assert_eq(option->choices != NULL,
                     option->kind == OPTION_CHOICE || option->kind == OPTION_DEVICE, "%s",
                     option->name);
        if (option->kind == OPTION_INTEGER || option->kind == OPTION_NUMBER)
            cr_assert_lt(option->min, option->max, "%s", option->name);
        for (size_t j = 0; j < i && option->letter; j++)
            cr_assert_neq(settings_option_at(j)->letter, option->letter, "-%c", option->letter);
    }
}

Test(settings, a_device_may_have_a_number) {
    cr_assert_eq(assign("device", "cuda:3"), STATUS_OK);
    cr_assert_eq(settings.device, DEVICE_CUDA);
    cr_assert_eq(settings.device_number, 3);
    cr_assert_eq(assign("device", "cuda"), STATUS_OK);
    cr_assert_eq(settings.device_number, 0);
    cr_assert_eq(assign("device", "reference"), STATUS_OK);
    cr_assert_eq(settings.device, DEVICE_REFERENCE);
    const char *const wrong[] = {"cuda:",     "cuda:-1", "cuda:1x", "cuda: 1",
                                 "cuda:1024", "cpu:0",   "CUDA"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_assert_eq(assign("device", wrong[i]), STATUS_BAD_INPUT, "%s", wrong[i]);
}

Test(settings, integers_are_whole_and_in_range) {
    cr_assert_eq(assign("max-tokens", "64"), STATUS_OK);
    cr_assert_eq(settings.max_tokens, 64);
    const char *const wrong[] = {"0", "-1", "", "12x", "1e3", "99999999999999999999", "many"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_assert_eq(assign("max-tokens", wrong[i]), STATUS_BAD_INPUT, "%s", wrong[i]);
        cr_assert(strstr(error.text, "--max-tokens") != NULL);
    }
    cr_assert_eq(settings.max_tokens, 64);
}

Test(settings, sizes_know_units_and_shares) {
    cr_assert_eq(assign("kv-memory", "6G"), STATUS_OK);
    cr_assert_eq(settings.kv_memory.bytes, UINT64_C(6) << 30);
    cr_assert_eq(assign("kv-memory", "1.5M"), STATUS_OK);
    cr_assert_eq(settings.kv_memory.bytes, 1572864u);
    cr_assert_eq(assign("kv-memory", "80%"), STATUS_OK);
    cr_assert_eq(settings.kv_memory.percent, 80);
    cr_assert_eq(settings.kv_memory.bytes, 0u);
    const char *const wrong[] = {"0", "-1G", "6X", "101%", "%", "nan", "1e99G"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_assert_eq(assign("kv-memory", wrong[i]), STATUS_BAD_INPUT, "%s", wrong[i]);
}

Test(settings, the_tile_cache_may_have_no_space_but_no_share) {
    settings_init(&settings);
    cr_assert_eq(settings.tile_cache.bytes, UINT64_C(20) << 30);
    cr_assert_eq(assign("tile-cache", "500M"), STATUS_OK);
    cr_assert_eq(settings.tile_cache.bytes, UINT64_C(500) << 20);
    cr_assert_eq(assign("tile-cache", "0"), STATUS_OK);
    cr_assert_eq(settings.tile_cache.bytes, 0u);
    const char *const wrong[] = {"", "80%", "0%", "off", "-1", "1X"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        cr_assert_eq(assign("tile-cache", wrong[i]), STATUS_BAD_INPUT, "%s", wrong[i]);
}

Test(settings, choices_list_what_there_is) {
    cr_assert_eq(assign("too-long", "keep-ends"), STATUS_OK);
    cr_assert_eq(settings.too_long, TOO_LONG_KEEP_ENDS);
    cr_assert_eq(assign("too-long", "cut"), STATUS_BAD_INPUT);
    cr_assert(strstr(error.text, "error, keep-head, keep-tail, keep-ends") != NULL);
    cr_assert_eq(assign("prefix-cache", "off"), STATUS_OK);
    cr_assert_eq(settings.prefix_cache, 0);
}

Test(settings, repeated_texts_add_up) {
    cr_assert_eq(assign("stop", "END"), STATUS_OK);
    cr_assert_eq(assign("stop", "\n\n"), STATUS_OK);
    cr_assert_eq(settings.stop.count, 2);
    cr_assert_str_eq(settings.stop.items[1], "\n\n");
    cr_assert_eq(assign("stop", ""), STATUS_BAD_INPUT);
}

Test(settings, suggestions_know_other_programs_and_typos) {
    cr_assert_str_eq(settings_config_suggest("ctx-size"), "context");
    cr_assert_str_eq(settings_config_suggest("n-predict"), "max-tokens");
    cr_assert_str_eq(settings_config_suggest("temp"), "temperature");
    cr_assert_str_eq(settings_config_suggest("max-tokes"), "max-tokens");
    cr_assert_null(settings_config_suggest("zzzzzzzzzz"));
}

static enum status load(const char *yaml, const bool *is_set, struct path_list *inputs) {
    char path[] = "/tmp/sheaf-test-XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, yaml, strlen(yaml)) == (ssize_t)strlen(yaml));
    close(fd);
    enum status status =
        settings_config_load(&settings, path, is_set, inputs, COMMAND_RUN, &arena, &error);
    unlink(path);
    return status;
}

Test(settings, a_job_file_sets_options_and_the_command_line_wins) {
    bool is_set[SETTINGS_OPTIONS_MAX] = {false};
    size_t index = 0;
    settings_option_find("seed", 4, &index);
    is_set[index] = true;
    settings.seed = 7;
    struct path_list inputs = {0};
    cr_assert_eq(load("prompt: |\n  Sum up:\n\n  {document}\nmax-tokens: 9\nseed: 1\nstop: [a, b]\n"
                      "ignore-eos: true\ninput:\n  - docs\n  - more.txt\n",
                      is_set, &inputs),
                 STATUS_OK, "%s", error.text);
    cr_assert_eq(settings.max_tokens, 9);
    cr_assert_eq(settings.seed, 7);
    cr_assert_eq(settings.stop.count, 2);
    cr_assert(settings.ignore_eos);
    cr_assert_eq(inputs.count, 2);
    cr_assert_str_eq(inputs.items[1], "more.txt");
}

Test(settings, an_unknown_key_names_its_line) {
    bool is_set[SETTINGS_OPTIONS_MAX] = {false};
    struct path_list inputs = {0};
    cr_assert_eq(load("max-tokens: 9\n\nctx-size: 100\n", is_set, &inputs), STATUS_BAD_INPUT);
    cr_assert(strstr(error.text, "line 3") != NULL, "%s", error.text);
    cr_assert(strstr(error.text, "context") != NULL, "%s", error.text);
    cr_assert_eq(load("max-tokens: many\n", is_set, &inputs), STATUS_BAD_INPUT);
    cr_assert(strstr(error.text, "line 1") != NULL, "%s", error.text);
    cr_assert_eq(load("- a\n- b\n", is_set, &inputs), STATUS_BAD_INPUT);
}

Test(settings, contradictions_are_refused) {
    settings.force = settings.resume = true;
    cr_assert_eq(settings_check_run(&settings, &error), STATUS_BAD_INPUT);
    settings_init(&settings);
    settings.resume = true;
    cr_assert_eq(settings_check_run(&settings, &error), STATUS_BAD_INPUT);
    cr_assert(strstr(error.text, "-o") != NULL);
    settings.output = "x";
    cr_assert_eq(settings_check_run(&settings, &error), STATUS_OK);
}
