/* The stable words of rows: error codes and warnings. One row a code: what it means, whether
 * running again may help. Users' scripts compare these; they change only with a major version. */
#ifndef CORE_JOB_CODES_H
#define CORE_JOB_CODES_H

#include <stdbool.h>
#include <stddef.h>

enum { ERROR_CODES_MAX = 32 }; /* room for counters, one a code */

struct error_code {
    const char *name;
    bool retryable; /* the same input may succeed in another run */
    const char *meaning;
};

size_t codes_error_count(void);
const struct error_code *codes_error_at(size_t index);
const struct error_code *codes_error_find(const char *name); /* or NULL */

enum warning {
    WARNING_REPLACED_BYTES, /* bytes that were not UTF-8 became U+FFFD; counted */
    WARNING_SHORTENED,      /* the document was cut to fit the context */
    WARNING_EMPTY_OUTPUT,   /* the model ended at once */
    WARNING_CUT_AT_MAX,     /* the output reached --max-tokens */
    WARNING_COUNT
};

const char *codes_warning_name(enum warning warning);
/* WARNING_COUNT when unknown. */
enum warning codes_warning_find(const char *name, size_t length);

#endif
