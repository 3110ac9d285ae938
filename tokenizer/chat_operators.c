/* Operators. Integers are 64-bit: what would overflow is an error, not a wrong number. */
#include "tokenizer/chat_operators.h"

#include <math.h>
#include <string.h>

#include "tokenizer/chat_access.h"

static const char *operation_text(enum chat_operation operation) {
    static const char *const texts[] = {
        [CHAT_ADD] = "+",         [CHAT_SUBTRACT] = "-",       [CHAT_MULTIPLY] = "*",
        [CHAT_DIVIDE] = "/",      [CHAT_FLOOR_DIVIDE] = "//",  [CHAT_MODULO] = "%",
        [CHAT_POWER] = "**",      [CHAT_CONCATENATE] = "~",    [CHAT_EQUAL] = "==",
        [CHAT_UNEQUAL] = "!=",    [CHAT_LESS] = "<",           [CHAT_LESS_EQUAL] = "<=",
        [CHAT_GREATER] = ">",     [CHAT_GREATER_EQUAL] = ">=", [CHAT_IN] = "in",
        [CHAT_NOT_IN] = "not in",
    };
    return texts[operation];
}

static enum status fail_types(struct chat_evaluator *evaluator, enum chat_operation operation,
                              struct chat_value left, struct chat_value right) {
    if (left.kind == CHAT_UNDEFINED)
        return chat_access_fail(evaluator, left);
    if (right.kind == CHAT_UNDEFINED)
        return chat_access_fail(evaluator, right);
    return chat_eval_fail(evaluator, "unsupported operand types for %s: '%s' and '%s'",
                          operation_text(operation), chat_value_type_name(left),
                          chat_value_type_name(right));
}

static int64_t floor_divide(int64_t a, int64_t b) {
    int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/* base ** exponent; false on overflow. */
static bool integer_power(int64_t base, int64_t exponent, int64_t *result) {
    *result = 1;
    for (; exponent > 0; exponent--) {
        if (__builtin_mul_overflow(*result, base, result))
            return false;
        if (*result == 0 || *result == 1)
            break;
        if (*result == -1 && base == -1) {
            *result = exponent % 2 == 0 ? 1 : -1;
            break;
        }
    }
    return true;
}

static enum status apply_integers(struct chat_evaluator *evaluator, enum chat_operation operation,
                                  int64_t a, int64_t b, struct chat_value *result) {
    int64_t value = 0;
    bool overflow = false;
    bool divides = operation == CHAT_FLOOR_DIVIDE || operation == CHAT_MODULO;
    if (divides && b == 0)
        return chat_eval_fail(evaluator, "division by zero");
    if (divides && b == -1) {
        overflow = __builtin_sub_overflow((int64_t)0, a, &value);
        value = operation == CHAT_MODULO ? 0 : value;
        overflow = overflow && operation != CHAT_MODULO;
    } else if (operation == CHAT_ADD) {
        overflow = __builtin_add_overflow(a, b, &value);
    } else if (operation == CHAT_SUBTRACT) {
        overflow = __builtin_sub_overflow(a, b, &value);
    } else if (operation == CHAT_MULTIPLY) {
        overflow = __builtin_mul_overflow(a, b, &value);
    } else if (operation == CHAT_FLOOR_DIVIDE) {
        value = floor_divide(a, b);
    } else if (operation == CHAT_MODULO) {
        value = a - floor_divide(a, b) * b;
    } else {
        overflow = !integer_power(a, b, &value);
    }
    if (overflow)
        return chat_eval_fail(evaluator, "integer is too large");
    *result = chat_value_integer(value);
    return STATUS_OK;
}

static enum status apply_floats(struct chat_evaluator *evaluator, enum chat_operation operation,
                                double a, double b, struct chat_value *result) {
    bool divides =
        operation == CHAT_DIVIDE || operation == CHAT_FLOOR_DIVIDE || operation == CHAT_MODULO;
    if (divides && b == 0.0)
        return chat_eval_fail(evaluator, "division by zero");
    double value = pow(a, b);
    if (operation == CHAT_ADD)
        value = a + b;
    else if (operation == CHAT_SUBTRACT)
        value = a - b;
    else if (operation == CHAT_MULTIPLY)
        value = a * b;
    else if (operation == CHAT_DIVIDE)
        value = a / b;
    else if (operation == CHAT_FLOOR_DIVIDE)
        value = floor(a / b);
    else if (operation == CHAT_MODULO)
        value = a - floor(a / b) * b;
    *result = chat_value_float(value);
    return STATUS_OK;
}

static enum status apply_numbers(struct chat_evaluator *evaluator, enum chat_operation operation,
                                 struct chat_value left, struct chat_value right,
                                 struct chat_value *result) {
    int64_t a;
    int64_t b;
    bool integers = chat_value_to_integer(left, &a) && chat_value_to_integer(right, &b);
    if (integers && operation != CHAT_DIVIDE && !(operation == CHAT_POWER && b < 0))
        return apply_integers(evaluator, operation, a, b, result);
    return apply_floats(evaluator, operation, chat_value_to_double(left),
                        chat_value_to_double(right), result);
}

static enum status join_lists(struct chat_evaluator *evaluator, struct chat_value left,
                              struct chat_value right, struct chat_value *result) {
    const struct chat_list *a = left.as.list;
    const struct chat_list *b = right.as.list;
    struct chat_list *list;
    TRY(chat_eval_new_list(evaluator, a->count + b->count, &list));
    if (a->count > 0)
        memcpy(list->items, a->items, a->count * sizeof *a->items);
    if (b->count > 0)
        memcpy(list->items + a->count, b->items, b->count * sizeof *b->items);
    *result = (struct chat_value){.kind = left.kind, .as.list = list};
    return STATUS_OK;
}

static enum status repeat_string(struct chat_evaluator *evaluator, struct chat_value value,
                                 int64_t count, struct chat_value *result) {
    TRY(chat_eval_flatten(evaluator, &value));
    const struct chat_string *string = value.as.string;
    if (count > 0 && string->length > evaluator->bytes_max / (size_t)count)
        return chat_eval_full(evaluator);
    TRY(chat_eval_charge(evaluator, count > 0 ? (size_t)count : 0));
    struct chat_string_builder builder;
    chat_string_builder_init(&builder, &evaluator->arena);
    for (int64_t i = 0; i < count && string->length > 0; i++)
        chat_string_builder_append_slice(&builder, string, 0, string->length);
    return chat_eval_built(evaluator, &builder, result);
}

static enum status repeat_list(struct chat_evaluator *evaluator, struct chat_value value,
                               int64_t count, struct chat_value *result) {
    const struct chat_list *from = value.as.list;
    if (count < 0)
        count = 0;
    size_t total;
    if (__builtin_mul_overflow((size_t)count, from->count, &total))
        return chat_eval_full(evaluator);
    struct chat_list *list;
    TRY(chat_eval_new_list(evaluator, total, &list));
    for (size_t i = 0; i < total; i++)
        list->items[i] = from->items[i % from->count];
    *result = (struct chat_value){.kind = value.kind, .as.list = list};
    return STATUS_OK;
}

static enum status concatenate(struct chat_evaluator *evaluator, struct chat_value left,
                               struct chat_value right, struct chat_value *result) {
    const struct chat_string *a = left.as.string;
    const struct chat_string *b = right.as.string;
    if (left.kind != CHAT_STRING)
        TRY(chat_eval_text(evaluator, left, &a));
    if (right.kind != CHAT_STRING)
        TRY(chat_eval_text(evaluator, right, &b));
    const struct chat_string *joined;
    TRY(chat_eval_concat(evaluator, a, b, &joined));
    *result = chat_value_string(joined);
    return STATUS_OK;
}

enum status chat_operators_apply(struct chat_evaluator *evaluator, enum chat_operation operation,
                                 struct chat_value left, struct chat_value right,
                                 struct chat_value *result) {
    int64_t count;
    if (operation == CHAT_CONCATENATE)
        return concatenate(evaluator, left, right, result);
    if (chat_value_is_number(left) && chat_value_is_number(right))
        return apply_numbers(evaluator, operation, left, right, result);
    if (operation == CHAT_ADD && left.kind == right.kind) {
        if (left.kind == CHAT_STRING)
            return concatenate(evaluator, left, right, result);
        if (chat_value_is_sequence(left))
            return join_lists(evaluator, left, right, result);
    }
    if (operation == CHAT_MULTIPLY && chat_value_to_integer(left, &count)) {
        struct chat_value other = left; /* 3 * 'a' is 'a' * 3 */
        left = right;
        right = other;
    }
    if (operation == CHAT_MULTIPLY && chat_value_to_integer(right, &count)) {
        if (left.kind == CHAT_STRING)
            return repeat_string(evaluator, left, count, result);
        if (chat_value_is_sequence(left))
            return repeat_list(evaluator, left, count, result);
    }
    return fail_types(evaluator, operation, left, right);
}

enum status chat_operators_negate(struct chat_evaluator *evaluator, struct chat_value value,
                                  struct chat_value *result) {
    if (value.kind == CHAT_FLOAT) {
        *result = chat_value_float(-value.as.number);
        return STATUS_OK;
    }
    int64_t integer;
    if (!chat_value_to_integer(value, &integer))
        return fail_types(evaluator, CHAT_SUBTRACT, chat_value_integer(0), value);
    return apply_integers(evaluator, CHAT_SUBTRACT, 0, integer, result);
}

/* Whether `item` is in `container`. */
static enum status contains(struct chat_evaluator *evaluator, struct chat_value item,
                            struct chat_value container, bool *result) {
    *result = false;
    if (container.kind == CHAT_STRING) {
        if (item.kind != CHAT_STRING)
            return fail_types(evaluator, CHAT_IN, item, container);
        TRY(chat_eval_charge(evaluator, container.as.string->length));
        *result = chat_string_find(chat_string_view(container.as.string),
                                   chat_string_view(item.as.string), 0) != SIZE_MAX;
    } else if (container.kind == CHAT_DICT) {
        TRY(chat_eval_charge(evaluator, container.as.dict->count * 16));
        *result = chat_value_dict_get(container.as.dict, item) != NULL;
    } else if (chat_value_is_sequence(container) || container.kind == CHAT_ITERATOR) {
        TRY(chat_eval_charge(evaluator, container.as.list->count * 16));
        for (size_t i = 0; i < container.as.list->count && !*result; i++)
            *result = chat_value_equal(container.as.list->items[i], item);
    } else if (container.kind != CHAT_UNDEFINED) {
        return fail_types(evaluator, CHAT_IN, item, container);
    }
    return STATUS_OK;
}

enum status chat_operators_compare(struct chat_evaluator *evaluator, enum chat_operation operation,
                                   struct chat_value left, struct chat_value right, bool *result) {
    if (operation == CHAT_IN || operation == CHAT_NOT_IN) {
        TRY(contains(evaluator, left, right, result));
        *result = *result == (operation == CHAT_IN);
        return STATUS_OK;
    }
    if (left.kind == CHAT_STRING && right.kind == CHAT_STRING)
        TRY(chat_eval_charge(evaluator, left.as.string->length));
    if (operation == CHAT_EQUAL || operation == CHAT_UNEQUAL) {
        *result = chat_value_equal(left, right) == (operation == CHAT_EQUAL);
        return STATUS_OK;
    }
    int order;
    if (!chat_value_compare(left, right, &order))
        return fail_types(evaluator, operation, left, right);
    if (operation == CHAT_LESS)
        *result = order < 0;
    else if (operation == CHAT_LESS_EQUAL)
        *result = order <= 0;
    else if (operation == CHAT_GREATER)
        *result = order > 0;
    else
        *result = order >= 0;
    return STATUS_OK;
}
