/* A borrowed piece of text: not NUL-terminated, not owned. */
#ifndef CORE_BASE_VIEW_H
#define CORE_BASE_VIEW_H

#include <stdbool.h>
#include <stddef.h>

struct view {
    const char *bytes;
    size_t length;
};

/* All of a NUL-terminated string. */
struct view view_of(const char *string);

/* The same bytes; `bytes` may be NULL where the length is 0. */
bool view_equal(struct view a, struct view b);
bool view_is(struct view view, const char *string);

#endif
