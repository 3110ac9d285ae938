/* `sheaf bench attention BATCH...`: every variant of attention on batches of the user's shape. */
#ifndef CMD_BENCH_BATCHES_H
#define CMD_BENCH_BATCHES_H

#include "cmd/bench_report.h"
#include "cmd/runtime.h"

/* Adds a row a variant. `batch` in the notation of core/kernels/bench_batch.h; the other dimensions
 * are settings. */
enum status bench_batches_add(struct bench_report *report, const struct runtime *runtime,
                              const char *batch, struct error *error);

#endif
