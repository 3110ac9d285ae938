/* The built-in model families: the YAML files of core/model/families, embedded when sheaf is built.
 */
#ifndef CORE_MODEL_FAMILIES_H
#define CORE_MODEL_FAMILIES_H

#include <stddef.h>

struct family_source {
    const char *name;
    const char *bytes; /* YAML, not NUL-terminated */
    size_t length;
};

extern const struct family_source families_table[];
extern const size_t families_count;

#endif
