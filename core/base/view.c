/* Comparisons by length first: a view may hold NUL bytes and need not end with one. */
#include "core/base/view.h"

#include <string.h>

struct view view_of(const char *string) {
    return (struct view){string, strlen(string)};
}

bool view_equal(struct view a, struct view b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

bool view_is(struct view view, const char *string) {
    return view_equal(view, view_of(string));
}
