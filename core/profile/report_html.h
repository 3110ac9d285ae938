/* The report as one HTML file that needs nothing else: no script, no network, plots as inline SVG,
 * the same numbers as JSON in a data block. Readable in print, in light and in dark. */
#ifndef CORE_PROFILE_REPORT_HTML_H
#define CORE_PROFILE_REPORT_HTML_H

#include "core/base/json.h"
#include "core/base/text.h"

/* `report`: as report_json gives it. False: out of memory. */
bool report_html_write(struct text *out, const json_t *report);

#endif
