/* Bars for shares, a logarithmic plane for the roofline, steps for what changes in time. Colours
 * are classes, which the page's style sets for light and dark. */
#include "core/profile/report_plot.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = REPORT_PLOT_WIDTH,
    LABEL_WIDTH = 330, /* left of bars */
    BAR_HEIGHT = 18,
    BAR_GAP = 4,
    BARS_MAX = 24,
    PLANE_HEIGHT = 340,
    MARGIN = 76, /* around a plane, for its scales */
    BIN_COUNT = 40,
};

bool report_plot_escape(struct text *out, const char *value) {
    bool fine = true;
    for (; *value && fine; value++) {
        const char *replaced = *value == '<'    ? "&lt;"
                               : *value == '>'  ? "&gt;"
                               : *value == '&'  ? "&amp;"
                               : *value == '"'  ? "&quot;"
                               : *value == '\'' ? "&#39;"
                                                : NULL;
        fine = replaced ? text_append_string(out, replaced) : text_append_char(out, *value);
    }
    return fine;
}

double report_plot_number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : 0;
}

static const char *string_of(const json_t *object, const char *key) {
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

static bool begin(struct text *out, int height, const char *title) {
    return text_append_format(
        out,
        "<div class=\"wide\"><svg role=\"img\" viewBox=\"0 0 %d %d\" aria-label=\"%s\">\n"
        "<title>%s</title>\n",
        WIDTH, height, title, title);
}

static bool end(struct text *out) {
    return text_append_string(out, "</svg></div>\n");
}

static bool rectangle(struct text *out, const char *class, double x, double y, double width,
                      double height) {
    return text_append_format(
        out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", class,
        x, y, width > 0 ? width : 0, height);
}

static bool line(struct text *out, const char *class, double x0, double y0, double x1, double y1) {
    return text_append_format(
        out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x0,
        y0, x1, y1);
}

/* anchor: "start", "middle" or "end". */
static bool label(struct text *out, double x, double y, const char *anchor, const char *value) {
    return text_append_format(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y,
                              anchor) &&
           report_plot_escape(out, value) && text_append_string(out, "</text>\n");
}

/* A number and its unit. */
static bool amount(struct text *out, double x, double y, const char *anchor, double value,
                   const char *unit) {
    return text_append_format(out,
                              "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%.4g %s</text>\n", x,
                              y, anchor, value, unit);
}

/* ---- bars ---- */

static double largest_of(const json_t *array, const char *key) {
    double largest = 0;
    for (size_t i = 0; i < json_array_size(array); i++)
        largest = fmax(largest, report_plot_number(json_array_get(array, i), key));
    return largest;
}

static bool op_bar(struct text *out, const json_t *op, double y, double scale) {
    double seconds = report_plot_number(op, "seconds");
    double floor_x = LABEL_WIDTH + report_plot_number(op, "floor_seconds") * scale;
    struct text name;
    text_init(&name, 512);
    bool fine = text_append_format(&name, "%s %s", string_of(op, "phase"), string_of(op, "path")) &&
                label(out, LABEL_WIDTH - 8, y + BAR_HEIGHT - 5, "end", name.bytes);
    text_deinit(&name);
    return fine &&
           rectangle(out, strcmp(string_of(op, "op"), "attention") == 0 ? "attention" : "bar",
                     LABEL_WIDTH, y, seconds * scale, BAR_HEIGHT) &&
           line(out, "floor", floor_x, y - 1, floor_x, y + BAR_HEIGHT + 1) &&
           amount(out, LABEL_WIDTH + seconds * scale + 6, y + BAR_HEIGHT - 5, "start", seconds,
                  "s");
}

/* The op before which `rank` others come by their seconds; ops are few. */
static const json_t *op_of_rank(const json_t *ops, size_t rank) {
    for (size_t i = 0; i < json_array_size(ops); i++) {
        double seconds = report_plot_number(json_array_get(ops, i), "seconds");
        size_t before = 0;
        for (size_t j = 0; j < json_array_size(ops); j++) {
            double other = report_plot_number(json_array_get(ops, j), "seconds");
            before += other > seconds || (other == seconds && j < i);
        }
        if (before == rank)
            return json_array_get(ops, i);
    }
    return NULL;
}

bool report_plot_ops(struct text *out, const json_t *ops) {
    size_t count = json_array_size(ops);
    count = count < BARS_MAX ? count : BARS_MAX;
    double largest = largest_of(ops, "seconds");
    double scale = largest > 0 ? (WIDTH - LABEL_WIDTH - 80) / largest : 0;
    bool fine = begin(out, (int)count * (BAR_HEIGHT + BAR_GAP) + 10, "Seconds by operation");
    for (size_t i = 0; i < count && fine; i++)
        fine = op_bar(out, op_of_rank(ops, i), 5 + (double)i * (BAR_HEIGHT + BAR_GAP), scale);
    return fine && end(out);
}

/* ---- planes ---- */

/* Where values lie in a plane of which the origin is at the lower left. */
struct plane {
    double x_low, x_high, y_low, y_high;
    bool logarithmic; /* both axes */
};

static double place(double value, double low, double high, bool logarithmic) {
    if (logarithmic)
        value = log10(value), low = log10(low), high = log10(high);
    double share = high > low ? (value - low) / (high - low) : 0;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

static double x_of(const struct plane *plane, double value) {
    return MARGIN +
           place(value, plane->x_low, plane->x_high, plane->logarithmic) * (WIDTH - 2 * MARGIN);
}

static double y_of(const struct plane *plane, double value) {
    return PLANE_HEIGHT - MARGIN / 2.0 -
           place(value, plane->y_low, plane->y_high, plane->logarithmic) * (PLANE_HEIGHT - MARGIN);
}

static bool axes(struct text *out, const struct plane *plane) {
    return line(out, "axis", MARGIN, y_of(plane, plane->y_low), WIDTH - MARGIN,
                y_of(plane, plane->y_low)) &&
           line(out, "axis", MARGIN, MARGIN / 2.0, MARGIN, PLANE_HEIGHT - MARGIN / 2.0);
}

static bool decades(struct text *out, const struct plane *plane) {
    bool fine = true;
    for (double x = plane->x_low; x <= plane->x_high * 1.001 && fine; x *= 10)
        fine = line(out, "grid", x_of(plane, x), MARGIN / 2.0, x_of(plane, x),
                    PLANE_HEIGHT - MARGIN / 2.0) &&
               amount(out, x_of(plane, x), PLANE_HEIGHT - 12, "middle", x, "");
    for (double y = plane->y_low; y <= plane->y_high * 1.001 && fine; y *= 10)
        fine = line(out, "grid", MARGIN, y_of(plane, y), WIDTH - MARGIN, y_of(plane, y)) &&
               amount(out, MARGIN - 6, y_of(plane, y) + 4, "end", y / 1e9, "G");
    return fine;
}

/* A roof: what bandwidth allows up to the peak, then the peak. */
static bool roof(struct text *out, const struct plane *plane, double bandwidth, double peak,
                 const char *name) {
    if (bandwidth <= 0 || peak <= 0)
        return true;
    double ridge = peak / bandwidth, from = fmax(plane->x_low, plane->y_low / bandwidth);
    return line(out, "roof", x_of(plane, from), y_of(plane, from * bandwidth), x_of(plane, ridge),
                y_of(plane, peak)) &&
           line(out, "roof", x_of(plane, ridge), y_of(plane, peak), x_of(plane, plane->x_high),
                y_of(plane, peak)) &&
           label(out, x_of(plane, from) + 8, y_of(plane, from * bandwidth) - 8, "start", name);
}

static bool op_point(struct text *out, const struct plane *plane, const json_t *op,
                     double largest) {
    double bytes = report_plot_number(op, "bytes_moved"), flops = report_plot_number(op, "flops");
    double seconds = report_plot_number(op, "seconds");
    double rate = report_plot_number(op, "flops_per_second");
    if (bytes <= 0 || flops <= 0 || rate <= 0 || seconds < largest / 1000)
        return true;
    double x = x_of(plane, flops / bytes), y = y_of(plane, rate);
    bool is_attention = strcmp(string_of(op, "op"), "attention") == 0;
    return text_append_format(
               out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>",
               is_attention ? "attention" : "bar", x, y, 3 + 9 * sqrt(seconds / largest)) &&
           report_plot_escape(out, string_of(op, "phase")) && text_append_char(out, ' ') &&
           report_plot_escape(out, string_of(op, "path")) &&
           text_append_format(out, ": %.3g s, %.3g FLOP/byte, %.3g GFLOP/s</title></circle>\n",
                              seconds, flops / bytes, rate / 1e9);
}

/* The ceilings of as many threads as the run had. */
static const json_t *ceilings_of_run(const json_t *machine) {
    const json_t *list = json_object_get(json_object_get(machine, "ceilings"), "by_threads");
    const json_t *found = NULL;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (report_plot_number(json_array_get(list, i), "threads") <=
            report_plot_number(machine, "threads"))
            found = json_array_get(list, i);
    return found;
}

bool report_plot_roofline(struct text *out, const json_t *report) {
    const json_t *ops = json_object_get(report, "ops"),
                 *machine = json_object_get(report, "machine");
    const json_t *ceilings = json_object_get(machine, "ceilings");
    const json_t *all = ceilings_of_run(machine);
    double peak = report_plot_number(all, "flops");
    struct plane plane = {0.1, 1e4, 1e8, 1e13, true};
    while (peak > 0 && plane.y_high > 30 * peak)
        plane.y_high /= 10;
    bool fine = begin(out, PLANE_HEIGHT, "Roofline: useful FLOP/s over FLOP per byte") &&
                decades(out, &plane) &&
                roof(out, &plane, report_plot_number(all, "memory_bytes"), peak, "memory") &&
                roof(out, &plane, report_plot_number(ceilings, "cache_bytes"), peak, "cache");
    double largest = largest_of(ops, "seconds");
    for (size_t i = 0; i < json_array_size(ops) && fine; i++)
        fine = op_point(out, &plane, json_array_get(ops, i), largest);
    return fine && label(out, WIDTH - MARGIN, PLANE_HEIGHT - 36, "end", "FLOP per byte moved") &&
           end(out);
}

/* ---- layers ---- */

static double layer_seconds(const json_t *layer, bool attention) {
    static const char *const keys[2][3] = {
        {"prefill_seconds", "decode_seconds", "mixed_seconds"},
        {"prefill_attention_seconds", "decode_attention_seconds", "mixed_attention_seconds"}};
    double seconds = 0;
    for (int i = 0; i < 3; i++)
        seconds += report_plot_number(layer, keys[attention][i]);
    return seconds;
}

bool report_plot_layers(struct text *out, const json_t *layers) {
    size_t count = json_array_size(layers);
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, layer_seconds(json_array_get(layers, i), false));
    struct plane plane = {0, count > 0 ? (double)count : 1, 0, largest, false};
    bool fine = begin(out, PLANE_HEIGHT, "Seconds by layer") && axes(out, &plane) &&
                amount(out, MARGIN - 6, MARGIN / 2.0 + 4, "end", largest, "s");
    double width = (WIDTH - 2.0 * MARGIN) / (count > 0 ? (double)count : 1);
    double base = y_of(&plane, 0);
    for (size_t i = 0; i < count && fine; i++) {
        const json_t *layer = json_array_get(layers, i);
        double all = y_of(&plane, layer_seconds(layer, false));
        double attention = y_of(&plane, layer_seconds(layer, true));
        double x = MARGIN + width * (double)i;
        fine =
            rectangle(out, "bar", x + 1, all, width - 2, base - all) &&
            rectangle(out, "attention", x + 1, attention, width - 2, base - attention) &&
            (i % 5 != 0 || amount(out, x + width / 2, PLANE_HEIGHT - 12, "middle", (double)i, ""));
    }
    return fine && end(out);
}

/* ---- in time ---- */

static double memory_of(const json_t *step, const char *key) {
    return report_plot_number(json_object_get(step, "memory"), key);
}

/* What holds from a step's begin to the next one's. */
static bool staircase(struct text *out, const struct plane *plane, const json_t *steps,
                      const char *key, const char *class) {
    bool fine = text_append_format(out, "<path class=\"%s\" d=\"M%.1f %.1f", class, (double)MARGIN,
                                   y_of(plane, 0));
    for (size_t i = 0; i < json_array_size(steps) && fine; i++) {
        const json_t *step = json_array_get(steps, i);
        double from = report_plot_number(step, "at_seconds");
        double to = from + report_plot_number(step, "seconds");
        double y = y_of(plane, memory_of(step, key));
        fine = text_append_format(out, "L%.1f %.1fL%.1f %.1f", x_of(plane, from), y,
                                  x_of(plane, to), y);
    }
    return fine && text_append_string(out, "\"/>\n");
}

bool report_plot_memory(struct text *out, const json_t *steps) {
    static const struct {
        const char *key, *name;
    } lines[] = {{"kv_reserved", "reserved"}, {"kv_used", "used"}, {"kv_shared", "shared"}};
    struct plane plane = {0, 0, 0, 0, false};
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        plane.x_high = fmax(plane.x_high, report_plot_number(step, "at_seconds") +
                                              report_plot_number(step, "seconds"));
        for (size_t j = 0; j < sizeof lines / sizeof lines[0]; j++)
            plane.y_high = fmax(plane.y_high, memory_of(step, lines[j].key));
    }
    bool fine = begin(out, PLANE_HEIGHT, "KV memory over the run") && axes(out, &plane) &&
                amount(out, MARGIN - 6, MARGIN / 2.0 + 4, "end", plane.y_high / 1e6, "MB") &&
                amount(out, WIDTH - MARGIN, PLANE_HEIGHT - 12, "end", plane.x_high, "s");
    for (size_t j = 0; j < sizeof lines / sizeof lines[0] && fine; j++) {
        double x = MARGIN + 20 + 110.0 * (double)j;
        fine = staircase(out, &plane, steps, lines[j].key, lines[j].name) &&
               rectangle(out, lines[j].name, x, 8, 12, 12) &&
               label(out, x + 18, 18, "start", lines[j].name);
    }
    return fine && end(out);
}

bool report_plot_steps(struct text *out, const json_t *steps) {
    double longest = largest_of(steps, "seconds");
    int bins[BIN_COUNT] = {0}, highest = 1;
    for (size_t i = 0; i < json_array_size(steps) && longest > 0; i++) {
        double seconds = report_plot_number(json_array_get(steps, i), "seconds");
        int bin = (int)(seconds / longest * BIN_COUNT);
        bin = bin < 0 ? 0 : bin >= BIN_COUNT ? BIN_COUNT - 1 : bin;
        bins[bin]++;
        highest = bins[bin] > highest ? bins[bin] : highest;
    }
    struct plane plane = {0, longest, 0, highest, false};
    bool fine = begin(out, PLANE_HEIGHT, "Steps by duration") && axes(out, &plane) &&
                amount(out, MARGIN - 6, MARGIN / 2.0 + 4, "end", highest, "steps") &&
                amount(out, WIDTH - MARGIN, PLANE_HEIGHT - 12, "end", longest * 1e3, "ms");
    double width = (WIDTH - 2.0 * MARGIN) / BIN_COUNT;
    for (int i = 0; i < BIN_COUNT && fine; i++)
        if (bins[i] > 0)
            fine = rectangle(out, "bar", MARGIN + width * i + 1, y_of(&plane, bins[i]), width - 2,
                             y_of(&plane, 0) - y_of(&plane, bins[i]));
    return fine && end(out);
}

static bool document_bar(struct text *out, const json_t *document, double y, double scale) {
    static const struct {
        const char *key, *class;
    } parts[] = {{"queued_seconds", "reserved"},
                 {"prefill_seconds", "bar"},
                 {"decode_seconds", "attention"}};
    double x = LABEL_WIDTH + report_plot_number(document, "at_seconds") * scale;
    bool fine = label(out, LABEL_WIDTH - 8, y + BAR_HEIGHT - 5, "end", string_of(document, "id"));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && fine; i++) {
        double width = report_plot_number(document, parts[i].key) * scale;
        fine = rectangle(out, parts[i].class, x, y, width, BAR_HEIGHT);
        x += width;
    }
    return fine;
}

bool report_plot_documents(struct text *out, const json_t *documents) {
    size_t count = json_array_size(documents);
    count = count < BARS_MAX ? count : BARS_MAX;
    double longest = 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *document = json_array_get(documents, i);
        longest = fmax(longest, report_plot_number(document, "at_seconds") +
                                    report_plot_number(document, "queued_seconds") +
                                    report_plot_number(document, "prefill_seconds") +
                                    report_plot_number(document, "decode_seconds"));
    }
    double scale = longest > 0 ? (WIDTH - LABEL_WIDTH - 20) / longest : 0;
    bool fine = begin(out, (int)count * (BAR_HEIGHT + BAR_GAP) + 10, "Documents over the run");
    for (size_t i = 0; i < count && fine; i++)
        fine = document_bar(out, json_array_get(documents, i),
                            5 + (double)i * (BAR_HEIGHT + BAR_GAP), scale);
    return fine && end(out);
}
