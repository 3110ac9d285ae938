/* Rows are kept as JSON objects until the end, when the widths of the columns are known. */
#include "cmd/bench_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void bench_report_init(struct bench_report *report, bool json) {
    *report = (struct bench_report){.rows = json_array(), .json = json};
}

void bench_report_deinit(struct bench_report *report) {
    json_decref(report->rows);
}

void bench_report_begin(struct bench_report *report) {
    json_array_append_new(report->rows, json_object());
}

static json_t *last_row(struct bench_report *report) {
    return json_array_get(report->rows, json_array_size(report->rows) - 1);
}

void bench_report_text(struct bench_report *report, const char *column, const char *value) {
    json_object_set_new(last_row(report), column, json_string(value));
}

void bench_report_number(struct bench_report *report, const char *column, double value,
                         const char *unit) {
    char name[64];
    snprintf(name, sizeof name, "%s%s%s", column, unit[0] ? " " : "", unit);
    json_t *number = isnan(value)                                  ? json_null()
                     : value == floor(value) && fabs(value) < 1e15 ? json_integer((json_int_t)value)
                                                                   : json_real(value);
    json_object_set_new(last_row(report), name, number);
}

static void cell_text(const json_t *cell, char *text, size_t bytes) {
    if (json_is_string(cell))
        snprintf(text, bytes, "%s", json_string_value(cell));
    else if (json_is_null(cell))
        snprintf(text, bytes, "-");
    else if (json_is_integer(cell))
        snprintf(text, bytes, "%lld", (long long)json_integer_value(cell));
    else
        snprintf(text, bytes, "%.*f", json_real_value(cell) < 10 ? 3 : 1, json_real_value(cell));
}

static int column_width(const struct bench_report *report, const char *column) {
    size_t width = strlen(column), index;
    json_t *row;
    json_array_foreach(report->rows, index, row) {
        char text[128];
        cell_text(json_object_get(row, column), text, sizeof text);
        if (strlen(text) > width)
            width = strlen(text);
    }
    return (int)width;
}

static void print_row(const struct bench_report *report, json_t *row, bool header) {
    const char *column;
    json_t *cell;
    json_object_foreach(row, column, cell) {
        char text[128];
        cell_text(cell, text, sizeof text);
        int width = column_width(report, column);
        if (json_is_string(cell))
            printf("%-*s  ", width, header ? column : text);
        else
            printf("%*s  ", width, header ? column : text);
    }
    printf("\n");
}

void bench_report_print(const struct bench_report *report, const char *numerics, int threads) {
    if (report->json) {
        json_t *whole = json_pack("{s:s, s:i, s:O}", "numerics", numerics, "threads", threads,
                                  "rows", report->rows);
        json_dumpf(whole, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
        printf("\n");
        json_decref(whole);
        return;
    }
    printf("%s, %d thread%s\n", numerics, threads, threads == 1 ? "" : "s");
    size_t index;
    json_t *row;
    json_array_foreach(report->rows, index, row) {
        if (index == 0)
            print_row(report, row, true);
        print_row(report, row, false);
    }
}
