/* A backend that forwards every op to another one and tells a recorder when each ended. The engine
 * and the decoder know nothing of it. */
#ifndef CORE_PROFILE_SPAN_BACKEND_H
#define CORE_PROFILE_SPAN_BACKEND_H

#include "core/model/backend.h"
#include "core/profile/span.h"

struct span_backend {
    struct backend base; /* what the engine is given */
    struct backend *inner;
    struct span_recorder *recorder; /* NULL: forwards only */
};

/* `inner` is borrowed, and prepared by its owner. Destroying it does nothing: it holds nothing. */
void span_backend_init(struct span_backend *backend, struct backend *inner);

#endif
