/* The parts of the report that are lists over time: memory, and steps. */
#ifndef CORE_PROFILE_REPORT_MEMORY_H
#define CORE_PROFILE_REPORT_MEMORY_H

#include "core/profile/report.h"

json_t *report_memory_json(const struct report *report);
json_t *report_memory_steps(const struct span_recorder *recorder);

#endif
