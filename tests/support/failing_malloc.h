/* Makes the n-th allocation of the code under test fail. Every test program is linked with --wrap
 * for the allocation functions, so calls from our objects come here; shared libraries keep their
 * own. */
#ifndef TESTS_SUPPORT_FAILING_MALLOC_H
#define TESTS_SUPPORT_FAILING_MALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* From now on the n-th allocation (1 is the next) of any thread returns NULL; 0: none does. */
void failing_malloc_arm(int n);

/* Ends the arming; true when the allocation meant to fail was reached. A loop over n until this is
 * false has failed every allocation there is. */
bool failing_malloc_disarm(void);

/* Counted like malloc, for libraries that take allocation functions. */
void *failing_malloc_allocate(size_t bytes);

#endif
