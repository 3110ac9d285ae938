/* From a finished sample run to the profiler's facts. */
#ifndef CMD_PROFILE_FACTS_H
#define CMD_PROFILE_FACTS_H

#include "cmd/sample_run.h"
#include "core/profile/report.h"

/* A run measured against the ceilings before and after it, with what-ifs; and the advice. */
struct profile_facts {
    struct machine before, after;
    struct facts facts;
    struct rules_advice advice;
    struct machine_others others;
    double drift;
    const char *unreliable; /* why the advice should not be given, or NULL */
};

/* Ops are told apart by the CPU's clock: other devices are refused. */
enum status profile_facts_check(const struct settings *settings, struct error *error);

/* Measures the machine for these settings: before a run. */
enum status profile_facts_begin(struct profile_facts *profile, const struct settings *settings,
                                struct error *error);
/* After it; closes the run's engine, whose recorder stays. */
enum status profile_facts_end(struct profile_facts *profile, struct sample_run *run,
                              struct error *error);

#endif
