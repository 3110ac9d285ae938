/* Memory that ends exactly at a page without access: a read or write behind it is a fault, whatever
 * the build. Running out of memory ends the test. */
#ifndef TESTS_SUPPORT_GUARD_PAGES_H
#define TESTS_SUPPORT_GUARD_PAGES_H

#include <stddef.h>

struct guard_pages {
    void *bytes; /* `byte_count` bytes, the last one right before the guard; filled with 0xff */
    size_t byte_count;
    void *map;
    size_t map_bytes;
};

struct guard_pages guard_pages_create(size_t byte_count);
void guard_pages_destroy(struct guard_pages *pages);

#endif
