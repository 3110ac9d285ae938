/* `sheaf verify --rows OUT.jsonl`: the documents of finished rows are computed again, one at a
 * time, without prefix cache, and compared: text, finish reason, token counts. Settings must be
 * those of the run. */
#ifndef CMD_VERIFY_ROWS_H
#define CMD_VERIFY_ROWS_H

#include "core/base/arena.h"
#include "core/job/settings.h"

int verify_rows(const struct settings *settings, const struct path_list *inputs,
                struct arena *arena);

#endif
