/* Expressions of model descriptions: `a`, `a * b` or `a / b`, where an operand is a number, a name
 * of the description's config, or sqrt() of either. Nothing more, so that a description stays data.
 */
#ifndef CORE_MODEL_EXPRESSION_H
#define CORE_MODEL_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"
#include "core/base/text.h"

struct expression_operand {
    int name; /* index into the config, or -1: `number` */
    bool root;
    double number;
};

struct expression {
    char operation; /* 0: left alone; '*'; '/' */
    struct expression_operand left, right;
    const char *text; /* as written; borrowed */
};

/* The names an expression may use, in the order of their values. */
struct expression_names {
    const void *context;
    int (*find)(const void *context, struct view name); /* index, or -1 */
};

/* `text` is NUL-terminated and outlives the expression. The error quotes what is wrong. */
enum status expression_parse(const char *text, const struct expression_names *names,
                             struct expression *expression, struct error *error);

struct expression expression_constant(double number);

/* values: one for each name. The result may be infinite or not a number: callers check ranges. */
double expression_evaluate(const struct expression *expression, const double *values);

#endif
