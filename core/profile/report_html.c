/* Advice first, then plots, each with the table it was drawn from. */
#include "core/profile/report_html.h"

#include <string.h>

#include "core/profile/report_plot.h"

static const char HEAD[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<title>sheaf profile</title>\n<style>\n"
    ":root { --ink: #1b1f24; --paper: #fff; --faint: #d8dee4; --bar: #4c78a8; --attention: "
    "#d1603d;\n"
    "  --soft: #9db7d1; --floor: #111; }\n"
    "@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117;\n"
    "  --faint: #30363d; --bar: #6ea8dc; --attention: #f08a64; --soft: #41607f; --floor: #fff; } "
    "}\n"
    "body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);\n"
    "  max-width: 960px; margin: 0 auto; padding: 1em; }\n"
    "h1, h2 { line-height: 1.2; } h2 { margin-top: 2em; }\n"
    "table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }\n"
    "th, td { text-align: right; padding: 2px 8px; border-bottom: 1px solid var(--faint); }\n"
    "th:first-child, td:first-child, td.words, th.words { text-align: left; }\n"
    ".wide { overflow-x: auto; }\n"
    "svg { width: 100%; min-width: 640px; height: auto; } svg text { font-size: 12px; fill: "
    "var(--ink); }\n"
    ".bar { fill: var(--bar); } .attention { fill: var(--attention); }\n"
    ".floor { stroke: var(--floor); stroke-width: 2; } .axis { stroke: var(--ink); }\n"
    ".grid { stroke: var(--faint); } .roof { stroke: var(--ink); stroke-width: 2; }\n"
    "circle { fill-opacity: .7; }\n"
    "rect.reserved { fill: var(--faint); } rect.used { fill: var(--bar); }\n"
    "rect.shared { fill: var(--attention); }\n"
    "path { fill: none; stroke-width: 2; } path.reserved { stroke: var(--soft); }\n"
    "path.used { stroke: var(--bar); } path.shared { stroke: var(--attention); }\n"
    ".advice { border-left: 4px solid var(--attention); padding-left: 1em; margin: 1em 0; }\n"
    "@media print { body { max-width: none; } h2, svg, tr, .advice { break-inside: avoid; } }\n"
    "</style>\n</head>\n<body>\n";

static const char *string_of(const json_t *object, const char *key) {
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

/* ---- cells ---- */

static bool word_cell(struct text *out, const char *value) {
    return text_append_string(out, "<td class=\"words\">") && report_plot_escape(out, value) &&
           text_append_string(out, "</td>");
}

static bool number_cell(struct text *out, double value) {
    return text_append_format(out, "<td>%.4g</td>", value);
}

/* ---- sections ---- */

static bool append_head(struct text *out, const json_t *report) {
    const json_t *machine = json_object_get(report, "machine");
    const json_t *run = json_object_get(report, "run");
    const json_t *attention = json_object_get(report, "attention");
    return text_append_string(out, HEAD) && text_append_string(out, "<h1>") &&
           report_plot_escape(out, string_of(json_object_get(report, "model"), "name")) &&
           text_append_string(out, " on ") && report_plot_escape(out, string_of(machine, "cpu")) &&
           text_append_format(out,
                              "</h1>\n<p>%.0f documents in %.3g s and %.0f steps, %.0f of %.0f "
                              "threads, ",
                              report_plot_number(run, "documents"),
                              report_plot_number(run, "seconds"), report_plot_number(run, "steps"),
                              report_plot_number(machine, "threads"),
                              report_plot_number(machine, "threads_max")) &&
           report_plot_escape(out, string_of(machine, "numerics")) &&
           text_append_format(out,
                              ". Attention takes %.1f %% of the run at %.3g useful GFLOP/s. "
                              "Recording took %.2f %% of it.</p>\n",
                              100 * report_plot_number(attention, "share"),
                              report_plot_number(attention, "flops_per_second") / 1e9,
                              100 * report_plot_number(run, "overhead_share"));
}

/* A setting's value may be of any JSON type. */
static bool append_value(struct text *out, const json_t *value) {
    if (json_is_string(value))
        return report_plot_escape(out, json_string_value(value));
    struct text shown;
    text_init(&shown, 4096);
    bool fine =
        json_append(&shown, value ? value : json_null()) && report_plot_escape(out, shown.bytes);
    text_deinit(&shown);
    return fine;
}

static bool append_one_advice(struct text *out, const json_t *advice) {
    const json_t *gain = json_object_get(advice, "predicted_gain");
    bool fine = text_append_string(out, "<div class=\"advice\"><p><strong>");
    if (json_is_null(json_object_get(advice, "setting")) || !json_object_get(advice, "setting"))
        fine = fine && text_append_string(out, "Advice");
    else
        fine = fine && text_append_string(out, "--") &&
               report_plot_escape(out, string_of(advice, "setting")) &&
               text_append_string(out, ": ") &&
               append_value(out, json_object_get(advice, "from")) &&
               text_append_string(out, " → ") && append_value(out, json_object_get(advice, "to"));
    fine = fine && text_append_string(out, "</strong></p><p>") &&
           append_value(out, json_object_get(advice, "evidence"));
    if (fine && gain)
        fine = text_append_string(out, "</p><p>Predicted gain: ") && append_value(out, gain);
    return fine && text_append_string(out, "</p></div>\n");
}

static bool append_advice(struct text *out, const json_t *report) {
    const json_t *advice = json_object_get(report, "advice");
    const char *unreliable = string_of(json_object_get(report, "machine"), "unreliable");
    bool fine = text_append_string(out, "<h2>Advice</h2>\n");
    for (size_t i = 0; i < json_array_size(advice) && fine; i++)
        fine = append_one_advice(out, json_array_get(advice, i));
    if (fine && *unreliable)
        fine = text_append_string(out, "<p>No advice: ") && report_plot_escape(out, unreliable) &&
               text_append_string(out, ".</p>\n");
    else if (fine && json_array_size(advice) == 0)
        fine = text_append_string(out, "<p>Nothing that would gain more than the noise.</p>\n");
    return fine;
}

static bool append_op_row(struct text *out, const json_t *op) {
    return text_append_string(out, "<tr>") && word_cell(out, string_of(op, "phase")) &&
           word_cell(out, string_of(op, "path")) && word_cell(out, string_of(op, "shape")) &&
           number_cell(out, report_plot_number(op, "seconds")) &&
           number_cell(out, 100 * report_plot_number(op, "share")) &&
           number_cell(out, report_plot_number(op, "floor_seconds")) &&
           number_cell(out, 100 * report_plot_number(op, "efficiency")) &&
           number_cell(out, report_plot_number(op, "flops_per_second") / 1e9) &&
           number_cell(out, report_plot_number(op, "bytes_per_second") / 1e9) &&
           word_cell(out, string_of(op, "verdict")) && text_append_string(out, "</tr>\n");
}

static bool append_ops(struct text *out, const json_t *report) {
    const json_t *ops = json_object_get(report, "ops");
    bool fine = text_append_string(out, "<h2>Time by operation</h2>\n"
                                        "<p>A mark shows each one's floor: what the measured "
                                        "ceilings allow at best.</p>\n") &&
                report_plot_ops(out, ops) &&
                text_append_string(
                    out, "<div class=\"wide\"><table><tr><th>phase</th><th class=\"words\">path"
                         "</th><th class=\"words\">shape</th><th>s</th><th>%</th><th>floor s</th>"
                         "<th>efficiency %</th><th>GFLOP/s</th><th>GB/s</th>"
                         "<th class=\"words\">bound by</th></tr>\n");
    for (size_t i = 0; i < json_array_size(ops) && fine; i++)
        fine = append_op_row(out, json_array_get(ops, i));
    return fine && text_append_string(out, "</table></div>\n");
}

static bool append_plots(struct text *out, const json_t *report) {
    const json_t *steps = json_object_get(report, "steps");
    const json_t *documents = json_object_get(report, "documents");
    bool fine =
        text_append_string(out, "<h2>Roofline</h2>\n") && report_plot_roofline(out, report) &&
        text_append_string(out, "<h2>Layers</h2>\n<p>Attention is the part of each bar in a "
                                "colour of its own.</p>\n") &&
        report_plot_layers(out, json_object_get(report, "layers")) &&
        text_append_string(out, "<h2>KV memory</h2>\n") && report_plot_memory(out, steps) &&
        text_append_string(out, "<h2>Steps</h2>\n") && report_plot_steps(out, steps);
    if (fine && json_array_size(documents) > 0)
        fine = text_append_string(out, "<h2>Documents</h2>\n<p>Waiting, prefill and decoding of "
                                       "each, from when it was read.</p>\n") &&
               report_plot_documents(out, documents);
    return fine;
}

/* "</script>" inside a string would end the block: a slash may be escaped in JSON. */
static bool append_data(struct text *out, const json_t *report) {
    struct text data;
    text_init(&data, out->max);
    bool fine = json_append(&data, report) &&
                text_append_string(out, "<script type=\"application/json\" id=\"report\">");
    for (size_t i = 0; i < data.length && fine; i++) {
        if (data.bytes[i] == '<')
            fine = text_append_string(out, "\\u003c");
        else
            fine = text_append_char(out, data.bytes[i]);
    }
    text_deinit(&data);
    return fine && text_append_string(out, "</script>\n");
}

bool report_html_write(struct text *out, const json_t *report) {
    return append_head(out, report) && append_advice(out, report) && append_ops(out, report) &&
           append_plots(out, report) && append_data(out, report) &&
           text_append_string(out, "</body>\n</html>\n");
}
