/* `sheaf verify --against LOGITS`: another program's logits against the float64 reference, so that
 * two programs can be told apart by the same figures. The file is read from front to back, once (a
 * pipe will do), in this machine's byte order:
 *
 *     char    magic[8]                  "logits1\n"
 *     int32   vocab_count, token_count
 *     int32   tokens[token_count]       teacher-forced, one sequence from position 0
 *     float32 logits[token_count][vocab_count]
 */
#ifndef CMD_VERIFY_AGAINST_H
#define CMD_VERIFY_AGAINST_H

#include "core/base/arena.h"
#include "core/job/settings.h"

int verify_against(const struct settings *settings, struct arena *arena);

#endif
