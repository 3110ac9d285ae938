/* The prompts of a run: one, or the questions of --prompts. */
#ifndef CMD_QUESTIONS_H
#define CMD_QUESTIONS_H

#include "cmd/runtime.h"
#include "core/job/job.h"

struct questions {
    struct job_question *items; /* in the runtime's arena */
    int count;
    uint64_t hash; /* of ids and prompts, wherever they came from */
};

/* Compile the prompt (--prompt, --prompt-file) or read --prompts. Without any, one question without
 * prompt: documents must bring their own. */
enum status questions_load(struct runtime *runtime, struct questions *questions,
                           struct error *error);
void questions_deinit(struct questions *questions);

#endif
