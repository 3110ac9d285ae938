/* The documents of a profiled run, from the rows it wrote: for the report. */
#ifndef CMD_PROFILE_DOCUMENTS_H
#define CMD_PROFILE_DOCUMENTS_H

#include "core/base/json.h"

enum { PROFILE_DOCUMENTS_MAX = 1000 };

/* [{id, queued_seconds, prefill_seconds, decode_seconds}] of the first rows at `path`, each on its
 * own clock, which began when it was read. Empty when the file cannot be read; NULL: out of memory.
 */
json_t *profile_documents_json(const char *path);

#endif
