/* The whole queue read, tokenized and simulated without computing: what `sheaf plan` prints. */
#ifndef CMD_PLAN_QUEUE_H
#define CMD_PLAN_QUEUE_H

#include "cmd/questions.h"
#include "cmd/runtime.h"
#include "core/engine/simulate.h"
#include "core/job/job.h"

enum { LONGEST_MAX = 5 };

struct plan_longest {
    char id[96];
    long long tokens;
    bool too_long; /* it fails */
};

struct plan_report {
    long long documents, ready, failed, skipped;
    long long errors[ERROR_CODES_MAX];
    long long shortened;
    long long document_tokens, prompt_tokens, output_tokens_max;
    struct plan_longest longest[LONGEST_MAX];
    int longest_count;
    struct simulate_result simulated;
    uint64_t kv_bytes_peak, stated_bytes;
    bool found_prompt; /* --show-prompt's document was met */
};

/* `page_bytes`: of a page of each KV group. With --show-prompt the prompt is printed to stdout when
 * its document is met. */
enum status plan_queue_run(const struct job *job, const struct runtime *runtime,
                           const uint64_t *page_bytes, const struct simulate_costs *costs,
                           struct plan_report *report, struct error *error);

#endif
