/* The CPU backend: kernels of core/kernels over a thread pool; paged KV in anonymous memory. */
#ifndef CORE_ENGINE_BACKEND_CPU_H
#define CORE_ENGINE_BACKEND_CPU_H

#include "core/base/cpu_features.h"
#include "core/base/thread_pool.h"
#include "core/kernels/kernels.h"
#include "core/model/backend.h"

/* `pool` is borrowed and must outlive the backend. The numeric path follows from the features
 * alone; backend_cpu_create_with is for int8 matmuls. */
enum status backend_cpu_create(struct thread_pool *pool, const struct cpu_features *features,
                               struct backend **backend, struct error *error);

/* The same with kernels of the caller's choice, all of one unit. */
enum status backend_cpu_create_with(struct thread_pool *pool, const struct kernels *kernels,
                                    struct backend **backend, struct error *error);

#endif
