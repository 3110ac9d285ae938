/* The tables behind codes.h. */
#include "core/job/codes.h"

#include <string.h>

static const struct error_code error_codes[] = {
    {"not_found", true, "the path does not exist"},
    {"unreadable", true, "the operating system refused to read it"},
    {"empty", false, "the document has no text"},
    {"not_text", false, "binary data, another encoding, or too many bytes that are not UTF-8"},
    {"invalid_utf8", false, "bytes that are not UTF-8, and --invalid-bytes error"},
    {"too_large", false, "more bytes than a document may have"},
    {"bad_json", false, "a JSONL line is not valid JSON"},
    {"bad_line", false, "a JSONL line has a field of the wrong kind, or none that is text"},
    {"unknown_option", false, "a JSONL line names an option that does not exist"},
    {"bad_option", false, "a JSONL line gives an option a value out of range"},
    {"duplicate_id", false, "an earlier document has the same id"},
    {"no_prompt", false, "no prompt was given for it"},
    {"bad_template", false, "the chat template refused the conversation"},
    {"too_long", false, "the prompt and --max-tokens do not fit the context"},
    {"never_fits", false, "more KV memory than the whole budget"},
    {"not_a_number", true, "the model computed logits that are not finite"},
    {"output_exists", false, "with --format files: its file cannot be made or belongs to another"},
    {"out_of_memory", true, "memory ran out while preparing the document"},
};

_Static_assert(sizeof error_codes / sizeof error_codes[0] <= (size_t)ERROR_CODES_MAX,
               "raise ERROR_CODES_MAX");

size_t codes_error_count(void) {
    return sizeof error_codes / sizeof error_codes[0];
}

const struct error_code *codes_error_at(size_t index) {
    return &error_codes[index];
}

const struct error_code *codes_error_find(const char *name) {
    for (size_t i = 0; i < codes_error_count(); i++) {
        if (strcmp(error_codes[i].name, name) == 0)
            return &error_codes[i];
    }
    return NULL;
}

static const char *const warning_names[WARNING_COUNT] = {
    [WARNING_REPLACED_BYTES] = "replaced_bytes",
    [WARNING_SHORTENED] = "shortened",
    [WARNING_EMPTY_OUTPUT] = "empty_output",
    [WARNING_CUT_AT_MAX] = "cut_at_max_tokens",
};

const char *codes_warning_name(enum warning warning) {
    return warning_names[warning];
}

enum warning codes_warning_find(const char *name, size_t length) {
    for (int i = 0; i < WARNING_COUNT; i++) {
        if (strlen(warning_names[i]) == length && memcmp(warning_names[i], name, length) == 0)
            return (enum warning)i;
    }
    return WARNING_COUNT;
}
