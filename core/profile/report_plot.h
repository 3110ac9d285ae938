/* The plots of the HTML report, each one SVG element. */
#ifndef CORE_PROFILE_REPORT_PLOT_H
#define CORE_PROFILE_REPORT_PLOT_H

#include "core/base/json.h"
#include "core/base/text.h"

enum { REPORT_PLOT_WIDTH = 900 };

/* Text with what HTML would take for markup replaced. */
bool report_plot_escape(struct text *out, const char *value);
/* A member's number; 0 when it is absent or null. */
double report_plot_number(const json_t *object, const char *key);

/* Seconds by op: a bar each, its floor marked in it. */
bool report_plot_ops(struct text *out, const json_t *ops);
/* FLOP/s over FLOP/byte, both logarithmic, under the measured roofs. */
bool report_plot_roofline(struct text *out, const json_t *report);
/* Seconds of each layer, attention's share of them apart. */
bool report_plot_layers(struct text *out, const json_t *layers);
/* KV used, shared and reserved, over the run. */
bool report_plot_memory(struct text *out, const json_t *steps);
/* How many steps took how long. */
bool report_plot_steps(struct text *out, const json_t *steps);
/* Each document's waiting, prefill and decoding on the run's clock. */
bool report_plot_documents(struct text *out, const json_t *documents);

#endif
