/* Advice: a table of rules, each from a measured symptom to one of our own settings, with the gain
 * that setting is predicted to bring and the numbers it was computed from. Pure functions of
 * `struct facts`; nothing is advised below the noise. */
#ifndef CORE_PROFILE_RULES_H
#define CORE_PROFILE_RULES_H

#include "core/profile/facts.h"

enum rules_consent {
    ADVICE_AUTOMATIC, /* results stay the same: the tuner may apply it */
    ADVICE_CONSENT,   /* changes results: only with the user's consent */
    ADVICE_ONLY,      /* nothing that the tuner can set */
};

struct advice {
    int rule;            /* 1 to 26 */
    const char *name;    /* "more sequences at once" */
    const char *setting; /* an option's long name, or NULL */
    enum rules_consent consent;
    char from[32], to[32];
    char evidence[320];           /* the numbers it was computed from */
    double saved;                 /* seconds of this run */
    double saved_low, saved_high; /* seconds */
    double gain;                  /* time of the run before / after − 1, as predicted */
    double gain_low, gain_high;
    const char *confidence; /* "high": what-ifs were measured; "medium", "low" */
};

enum { RULES_COUNT = 26, RULES_SHOWN_MAX = 5 };

struct rules_advice {
    int count;
    struct advice items[RULES_COUNT];
};

/* Share of the run below which nothing is advised: max(3 %, 2 σ). */
double rules_threshold(const struct facts *facts);

/* All rules that fire, by seconds saved, best first; of several for the same setting the best. */
void rules_run(const struct facts *facts, struct rules_advice *advice);

/* One rule alone, for tests and the tuner: whether its symptom is there, whatever the gain. */
bool rules_try(int rule, const struct facts *facts, struct advice *advice);
const char *rules_consent_name(enum rules_consent consent); /* "automatic" */

#endif
