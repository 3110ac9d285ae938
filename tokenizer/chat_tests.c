/* Tests: a table of names and predicates. */
#include "tokenizer/chat_tests.h"

#include <string.h>
#include <utf8proc.h>

#include "tokenizer/chat_filters.h"
#include "tokenizer/chat_operators.h"

struct chat_test {
    struct chat_signature signature;
    bool (*holds)(struct chat_value value); /* NULL: `compare` */
    enum status (*compare)(struct chat_evaluator *evaluator, struct chat_value value,
                           struct chat_value argument, bool *result);
};

static bool is_defined(struct chat_value value) {
    return value.kind != CHAT_UNDEFINED;
}
static bool is_undefined(struct chat_value value) {
    return value.kind == CHAT_UNDEFINED;
}
static bool is_none(struct chat_value value) {
    return value.kind == CHAT_NONE;
}
static bool is_boolean(struct chat_value value) {
    return value.kind == CHAT_BOOL;
}
static bool is_true(struct chat_value value) {
    return value.kind == CHAT_BOOL && value.as.boolean;
}
static bool is_false(struct chat_value value) {
    return value.kind == CHAT_BOOL && !value.as.boolean;
}
static bool is_integer(struct chat_value value) {
    return value.kind == CHAT_INTEGER;
}
static bool is_float(struct chat_value value) {
    return value.kind == CHAT_FLOAT;
}
static bool is_string(struct chat_value value) {
    return value.kind == CHAT_STRING;
}
static bool is_mapping(struct chat_value value) {
    return value.kind == CHAT_DICT;
}
static bool is_sequence(struct chat_value value) { /* has a length and items */
    return value.kind == CHAT_STRING || value.kind == CHAT_DICT || chat_value_is_sequence(value) ||
           value.kind == CHAT_UNDEFINED;
}
static bool is_iterable(struct chat_value value) {
    return is_sequence(value) || value.kind == CHAT_LOOP || value.kind == CHAT_ITERATOR;
}
static bool is_callable(struct chat_value value) {
    return value.kind == CHAT_FUNCTION || value.kind == CHAT_METHOD || value.kind == CHAT_MACRO ||
           value.kind == CHAT_LOOP;
}

static enum status test_equal(struct chat_evaluator *evaluator, struct chat_value value,
                              struct chat_value argument, bool *result) {
    return chat_operators_compare(evaluator, CHAT_EQUAL, value, argument, result);
}
static enum status test_unequal(struct chat_evaluator *evaluator, struct chat_value value,
                                struct chat_value argument, bool *result) {
    return chat_operators_compare(evaluator, CHAT_UNEQUAL, value, argument, result);
}
static enum status test_less(struct chat_evaluator *evaluator, struct chat_value value,
                             struct chat_value argument, bool *result) {
    return chat_operators_compare(evaluator, CHAT_LESS, value, argument, result);
}
static enum status test_less_equal(struct chat_evaluator *evaluator, struct chat_value value,
                                   struct chat_value argument, bool *result) {
    return chat_operators_compare(evaluator, CHAT_LESS_EQUAL, value, argument, result);
}
static enum status test_greater(struct chat_evaluator *evaluator, struct chat_value value,
                                struct chat_value argument, bool *result) {
    return chat_operators_compare(evaluator, CHAT_GREATER, value, argument, result);
}
static enum status test_greater_equal(struct chat_evaluator *evaluator, struct chat_value value,
                                      struct chat_value argument, bool *result) {
    return chat_operators_compare(evaluator, CHAT_GREATER_EQUAL, value, argument, result);
}
static enum status test_in(struct chat_evaluator *evaluator, struct chat_value value,
                           struct chat_value argument, bool *result) {
    return chat_operators_compare(evaluator, CHAT_IN, value, argument, result);
}

static enum status test_divisible(struct chat_evaluator *evaluator, struct chat_value value,
                                  struct chat_value argument, bool *result) {
    struct chat_value rest;
    TRY(chat_operators_apply(evaluator, CHAT_MODULO, value, argument, &rest));
    *result = !chat_value_truth(rest);
    return STATUS_OK;
}

static enum status test_even(struct chat_evaluator *evaluator, struct chat_value value,
                             struct chat_value argument, bool *result) {
    (void)argument;
    return test_divisible(evaluator, value, chat_value_integer(2), result);
}

static enum status test_odd(struct chat_evaluator *evaluator, struct chat_value value,
                            struct chat_value argument, bool *result) {
    struct chat_value rest;
    (void)argument;
    TRY(chat_operators_apply(evaluator, CHAT_MODULO, value, chat_value_integer(2), &rest));
    *result = chat_value_equal(rest, chat_value_integer(1));
    return STATUS_OK;
}

static enum status test_same(struct chat_evaluator *evaluator, struct chat_value value,
                             struct chat_value argument, bool *result) {
    *result = value.kind == argument.kind;
    return *result ? test_equal(evaluator, value, argument, result) : STATUS_OK;
}

/* str.isupper and str.islower: a cased character, and none of the other case. */
static enum status test_case(struct chat_evaluator *evaluator, struct chat_value value,
                             int (*is_case)(utf8proc_int32_t), int (*is_other)(utf8proc_int32_t),
                             bool *result) {
    const struct chat_string *text;
    bool other = false;
    *result = false;
    TRY(chat_eval_text(evaluator, value, &text));
    TRY(chat_eval_charge(evaluator, text->length));
    for (size_t i = 0; i < text->length && !other;) {
        int32_t character;
        i += chat_string_character(text->bytes + i, text->length - i, &character);
        other = character >= 0 && is_other(character);
        *result = *result || (character >= 0 && is_case(character));
    }
    *result = *result && !other;
    return STATUS_OK;
}

static enum status test_lower(struct chat_evaluator *evaluator, struct chat_value value,
                              struct chat_value argument, bool *result) {
    (void)argument;
    return test_case(evaluator, value, utf8proc_islower, utf8proc_isupper, result);
}

static enum status test_upper(struct chat_evaluator *evaluator, struct chat_value value,
                              struct chat_value argument, bool *result) {
    (void)argument;
    return test_case(evaluator, value, utf8proc_isupper, utf8proc_islower, result);
}

static const struct chat_test tests[] = {
    {{"defined", 0, 0, {0}}, is_defined, NULL},
    {{"undefined", 0, 0, {0}}, is_undefined, NULL},
    {{"none", 0, 0, {0}}, is_none, NULL},
    {{"boolean", 0, 0, {0}}, is_boolean, NULL},
    {{"true", 0, 0, {0}}, is_true, NULL},
    {{"false", 0, 0, {0}}, is_false, NULL},
    {{"integer", 0, 0, {0}}, is_integer, NULL},
    {{"float", 0, 0, {0}}, is_float, NULL},
    {{"number", 0, 0, {0}}, chat_value_is_number, NULL},
    {{"string", 0, 0, {0}}, is_string, NULL},
    {{"mapping", 0, 0, {0}}, is_mapping, NULL},
    {{"sequence", 0, 0, {0}}, is_sequence, NULL},
    {{"iterable", 0, 0, {0}}, is_iterable, NULL},
    {{"callable", 0, 0, {0}}, is_callable, NULL},
    {{"even", 0, 0, {0}}, NULL, test_even},
    {{"odd", 0, 0, {0}}, NULL, test_odd},
    {{"lower", 0, 0, {0}}, NULL, test_lower},
    {{"upper", 0, 0, {0}}, NULL, test_upper},
    {{"divisibleby", 1, 1, {"num"}}, NULL, test_divisible},
    {{"sameas", 1, 1, {"other"}}, NULL, test_same},
    {{"eq", 1, 1, {""}}, NULL, test_equal},
    {{"equalto", 1, 1, {""}}, NULL, test_equal},
    {{"==", 1, 1, {""}}, NULL, test_equal},
    {{"ne", 1, 1, {""}}, NULL, test_unequal},
    {{"!=", 1, 1, {""}}, NULL, test_unequal},
    {{"lt", 1, 1, {""}}, NULL, test_less},
    {{"lessthan", 1, 1, {""}}, NULL, test_less},
    {{"<", 1, 1, {""}}, NULL, test_less},
    {{"le", 1, 1, {""}}, NULL, test_less_equal},
    {{"<=", 1, 1, {""}}, NULL, test_less_equal},
    {{"gt", 1, 1, {""}}, NULL, test_greater},
    {{"greaterthan", 1, 1, {""}}, NULL, test_greater},
    {{">", 1, 1, {""}}, NULL, test_greater},
    {{"ge", 1, 1, {""}}, NULL, test_greater_equal},
    {{">=", 1, 1, {""}}, NULL, test_greater_equal},
    {{"in", 1, 1, {"seq"}}, NULL, test_in},
};

const struct chat_test *chat_tests_find(struct view name) {
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (view_is(name, tests[i].signature.name))
            return &tests[i];
    }
    return NULL;
}

enum status chat_tests_apply(struct chat_evaluator *evaluator, const struct chat_test *test,
                             struct chat_value value, const struct chat_arguments *arguments,
                             bool *result) {
    struct chat_value bound[CHAT_CALL_PARAMETERS_MAX];
    TRY(chat_call_bind(evaluator, &test->signature, arguments, bound));
    if (!test->holds)
        return test->compare(evaluator, value, bound[0], result);
    *result = test->holds(value);
    return STATUS_OK;
}
