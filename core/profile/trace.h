/* Sampled steps as Chrome's trace format, which ui.perfetto.dev reads: a process with a thread for
 * the engine (step over ops) and one for each worker (its part of each parallel section); counters
 * of KV and rows for all steps that were kept. Capped by bytes: whole events are left out, never a
 * part. */
#ifndef CORE_PROFILE_TRACE_H
#define CORE_PROFILE_TRACE_H

#include "core/profile/report.h"

enum { TRACE_BYTES_MAX = 64 << 20 };

/* false: out of memory. What does not fit below the text's maximum is left out. */
bool trace_write(struct text *out, const struct report *report);

#endif
