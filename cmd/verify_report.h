/* What `sheaf verify` says of compared logits, for a person or a program, and its exit code. */
#ifndef CMD_VERIFY_REPORT_H
#define CMD_VERIFY_REPORT_H

#include "cmd/runtime.h"
#include "core/engine/verify.h"

/* Prints on stdout as --json says; `tested` names what was compared with the reference. */
int verify_report_print(const struct runtime *runtime, const struct verify_report *report,
                        const char *tested);

#endif
