/* A table of measurements: aligned columns for a person, JSON for a program. */
#ifndef CMD_BENCH_REPORT_H
#define CMD_BENCH_REPORT_H

#include <stdbool.h>

#include "core/base/json.h"

struct bench_report {
    json_t *rows; /* array of objects in column order */
    bool json;
};

void bench_report_init(struct bench_report *report, bool json);
void bench_report_deinit(struct bench_report *report);

void bench_report_begin(struct bench_report *report); /* a new row */
void bench_report_text(struct bench_report *report, const char *column, const char *value);
/* The unit becomes part of the column's name. NaN: not measured, null in JSON. */
void bench_report_number(struct bench_report *report, const char *column, double value,
                         const char *unit);
void bench_report_print(const struct bench_report *report, const char *numerics, int threads);

#endif
