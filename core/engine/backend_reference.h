/* The reference backend (`--device reference`, `sheaf verify`): every op in float64 on dequantised
 * weights, straightforward and slow; KV kept in float64 pages. The oracle of all other backends. */
#ifndef CORE_ENGINE_BACKEND_REFERENCE_H
#define CORE_ENGINE_BACKEND_REFERENCE_H

#include "core/base/thread_pool.h"
#include "core/model/backend.h"

/* `pool` spreads rows and columns; the result does not depend on it. */
enum status backend_reference_create(struct thread_pool *pool, struct backend **backend,
                                     struct error *error);

#endif
