/* Expressions of descriptions: everything in the grammar, and the errors for what is not. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/model/expression.h"

static const char *const names[] = {"width", "heads", "head_dim"};
static const double values[] = {576, 9, 64};

static int find(const void *context, struct view name) {
    (void)context;
    for (int i = 0; i < 3; i++)
        if (view_is(name, names[i]))
            return i;
    return -1;
}
static const struct expression_names scope = {NULL, find};

Test(expression, values) {
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"width", 576},
        {"12", 12},
        {"1e-6", 1e-6},
        {".5", 0.5},
        {"width / heads", 64},
        {"width/heads", 64},
        {" heads  *  head_dim ", 576},
        {"3 * heads", 27},
        {"1 / sqrt(head_dim)", 0.125},
        {"sqrt(width)", 24},
        {"sqrt( 16 ) * heads", 36},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct expression expression;
        struct error error = {0};
        enum status status = expression_parse(cases[i].text, &scope, &expression, &error);
        cr_assert_eq(status, STATUS_OK, "%s: %s", cases[i].text, error.text);
        cr_expect_eq(expression_evaluate(&expression, values), cases[i].value, "%s", cases[i].text);
        cr_expect_str_eq(expression.text, cases[i].text);
    }
}

Test(expression, errors) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "a name or a number is missing"},
        {"*", "a name or a number is missing"},
        {"-1", "a name or a number is missing before '-1'"},
        {"width /", "a name or a number is missing"},
        {"depth", "'depth' is not in the config above"},
        {"width * depth", "'depth' is not in the config above"},
        {"width * heads * 2", "'* 2' is left over"},
        {"width + 1", "'+ 1' is left over"},
        {"(width)", "a name or a number is missing"},
        {"sqrt(width", "')' is missing"},
        {"sqrt(width * 2)", "')' is missing"},
        {"sqrt(sqrt(width))", "'sqrt' is not in the config above"},
        {"1.5.2", "'.2' is left over"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct expression expression;
        struct error error = {0};
        enum status status = expression_parse(cases[i].text, &scope, &expression, &error);
        cr_expect_eq(status, STATUS_BAD_INPUT, "%s", cases[i].text);
        cr_expect_not_null(strstr(error.text, cases[i].message), "%s: %s", cases[i].text,
                           error.text);
    }
}

Test(expression, division_by_zero_is_not_finite) {
    struct expression expression;
    struct error error = {0};
    cr_assert_eq(expression_parse("width / 0", &scope, &expression, &error), STATUS_OK);
    cr_expect(isinf(expression_evaluate(&expression, values)));
    cr_expect_eq(expression_evaluate(&(struct expression){.left = {.name = -1}}, values), 0);
    struct expression constant = expression_constant(7);
    cr_expect_eq(expression_evaluate(&constant, NULL), 7);
}
