/* Scanner and evaluator of description expressions; the grammar is in the header. Numbers are read
 * with strtod, which the C locale of the program keeps to plain decimal points. */
#include "core/model/expression.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *at) {
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

static bool is_name_character(char character) {
    return (character >= 'a' && character <= 'z') || (character >= '0' && character <= '9') ||
           character == '_';
}

/* A name or a number; *at moves behind it. */
static enum status parse_atom(const char **at, const struct expression_names *names,
                              struct expression_operand *operand, struct error *error) {
    const char *first = skip_blanks(*at);
    const char *end = first;
    if ((*first >= '0' && *first <= '9') || *first == '.') {
        char *number_end;
        operand->name = -1;
        operand->number = strtod(first, &number_end);
        *at = skip_blanks(number_end);
        return STATUS_OK;
    }
    while (is_name_character(*end))
        end++;
    struct view name = {first, (size_t)(end - first)};
    if (name.length == 0)
        return error_set(error, STATUS_BAD_INPUT, "a name or a number is missing before '%s'",
                         first);
    operand->name = names->find(names->context, name);
    if (operand->name < 0)
        return error_set(error, STATUS_BAD_INPUT, "'%.*s' is not in the config above",
                         (int)name.length, name.bytes);
    *at = skip_blanks(end);
    return STATUS_OK;
}

static enum status parse_operand(const char **at, const struct expression_names *names,
                                 struct expression_operand *operand, struct error *error) {
    static const char root[] = "sqrt(";
    const char *first = skip_blanks(*at);
    operand->root = strncmp(first, root, sizeof root - 1) == 0;
    if (!operand->root)
        return parse_atom(at, names, operand, error);
    *at = first + sizeof root - 1;
    TRY(parse_atom(at, names, operand, error));
    if (**at != ')')
        return error_set(error, STATUS_BAD_INPUT, "')' is missing");
    *at = skip_blanks(*at + 1);
    return STATUS_OK;
}

enum status expression_parse(const char *text, const struct expression_names *names,
                             struct expression *expression, struct error *error) {
    const char *at = text;
    *expression = (struct expression){.text = text};
    TRY(parse_operand(&at, names, &expression->left, error));
    if (*at == '*' || *at == '/') {
        expression->operation = *at++;
        TRY(parse_operand(&at, names, &expression->right, error));
    }
    if (*at != '\0')
        return error_set(error, STATUS_BAD_INPUT,
                         "'%s' is left over: an expression is a, a * b or a / b", at);
    return STATUS_OK;
}

struct expression expression_constant(double number) {
    return (struct expression){.left = {.name = -1, .number = number}, .text = "a constant"};
}

static double evaluate_operand(const struct expression_operand *operand, const double *values) {
    double value = operand->name < 0 ? operand->number : values[operand->name];
    return operand->root ? sqrt(value) : value;
}

double expression_evaluate(const struct expression *expression, const double *values) {
    double left = evaluate_operand(&expression->left, values);
    if (expression->operation == '*')
        return left * evaluate_operand(&expression->right, values);
    if (expression->operation == '/')
        return left / evaluate_operand(&expression->right, values);
    return left;
}
