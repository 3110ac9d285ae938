/* The body of a batch request, by tables: fields that have an option of ours, and fields that may
 * be there as long as they ask for nothing. `model` is ignored: the run has one. */
#include "core/job/input_openai.h"

#include <string.h>

#include "core/job/input_messages.h"
#include "core/job/input_record.h"

static const struct {
    const char *field, *option;
} options[] = {
    {"max_tokens", "max-tokens"},
    {"max_completion_tokens", "max-tokens"},
    {"temperature", "temperature"},
    {"top_p", "top-p"},
    {"top_k", "top-k"},
    {"min_p", "min-p"},
    {"repetition_penalty", "repeat-penalty"},
    {"seed", "seed"},
    {"stop", "stop"},
    {"ignore_eos", "ignore-eos"},
};

enum harmless { HARMLESS_ALWAYS, HARMLESS_FALSE, HARMLESS_ZERO, HARMLESS_ONE };

static const struct {
    const char *field;
    enum harmless when;
} ignored[] = {
    {"model", HARMLESS_ALWAYS},
    {"user", HARMLESS_ALWAYS},
    {"metadata", HARMLESS_ALWAYS},
    {"store", HARMLESS_ALWAYS},
    {"service_tier", HARMLESS_ALWAYS},
    {"stream", HARMLESS_FALSE},
    {"echo", HARMLESS_FALSE},
    {"logprobs", HARMLESS_FALSE},
    {"n", HARMLESS_ONE},
    {"best_of", HARMLESS_ONE},
    {"presence_penalty", HARMLESS_ZERO},
    {"frequency_penalty", HARMLESS_ZERO},
};

static const char *option_of(const char *field) {
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (strcmp(options[i].field, field) == 0)
            return options[i].option;
    return NULL;
}

static bool is_harmless(const char *field, const json_t *value) {
    if (json_is_null(value))
        return true;
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        if (strcmp(ignored[i].field, field) != 0)
            continue;
        switch (ignored[i].when) {
        case HARMLESS_ALWAYS:
            return true;
        case HARMLESS_FALSE:
            return json_is_false(value);
        case HARMLESS_ZERO:
            return json_is_number(value) && !(json_number_value(value) < 0) &&
                   !(json_number_value(value) > 0);
        case HARMLESS_ONE:
            return json_is_integer(value) && json_integer_value(value) == 1;
        }
    }
    return false;
}

bool input_openai_is_envelope(const json_t *line) {
    return json_is_object(json_object_get(line, "body")) ||
           (json_object_get(line, "custom_id") && json_object_get(line, "url"));
}

static enum status check_url(const json_t *url, const char **code, struct error *error) {
    static const char *const known[] = {"/v1/chat/completions", "/v1/completions"};
    *code = "bad_line";
    if (!url)
        return STATUS_OK;
    if (!json_is_string(url))
        return error_set(error, STATUS_BAD_INPUT, "\"url\" must be a string, got %s",
                         input_messages_kind(url));
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(json_string_value(url), known[i]) == 0)
            return STATUS_OK;
    return error_set(error, STATUS_UNSUPPORTED,
                     "\"url\" '%.100s' is not supported, only %s and %s are",
                     json_string_value(url), known[0], known[1]);
}

static enum status set_option(struct document *document, const char *field, json_t *value,
                              const char **code, struct error *error) {
    const char *option = option_of(field);
    if (is_harmless(field, value))
        return STATUS_OK;
    if (!option) {
        *code = "unknown_option";
        return error_set(error, STATUS_UNSUPPORTED, "\"%.100s\" in \"body\" is not supported",
                         field);
    }
    if (!document->options)
        document->options = json_object();
    if (!document->options || json_object_set(document->options, option, value) != 0)
        return error_no_memory(error, "a line's options");
    return STATUS_OK;
}

static enum status parse_body(json_t *body, struct document *document, const char **code,
                              struct error *error) {
    const char *field;
    json_t *value;
    json_t *messages = json_object_get(body, "messages");
    json_t *prompt = json_object_get(body, "prompt");
    *code = "bad_line";
    if (!messages == !prompt)
        return error_set(error, STATUS_BAD_INPUT,
                         "\"body\" must have either \"messages\" or \"prompt\"");
    json_object_foreach(body, field, value) {
        if (value != messages && value != prompt)
            TRY(set_option(document, field, value, code, error));
    }
    if (messages)
        return input_messages_parse(messages, &document->messages, code, error);
    return input_record_set_whole(document, prompt, code, error);
}

enum status input_openai_parse(json_t *line, struct document *document, const char **code,
                               struct error *error) {
    static const char *const own[] = {"custom_id", "method", "url", "body"};
    const char *key;
    json_t *value;
    TRY(input_record_set_id(document, json_object_get(line, "custom_id"), "custom_id", code,
                            error));
    json_object_foreach(line, key, value) {
        bool carried = true;
        for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
            carried = carried && strcmp(own[i], key) != 0;
        if (carried)
            TRY(input_record_carry(document, key, value, error));
    }
    TRY(check_url(json_object_get(line, "url"), code, error));
    json_t *body = json_object_get(line, "body");
    *code = "bad_line";
    if (!json_is_object(body))
        return error_set(error, STATUS_BAD_INPUT, "\"body\" must be an object, got %s",
                         input_messages_kind(body));
    return parse_body(body, document, code, error);
}
