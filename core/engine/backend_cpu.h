/* The CPU backend: kernels of core/kernels over a thread pool; paged KV in anonymous memory. */
#ifndef CORE_ENGINE_BACKEND_CPU_H
#define CORE_ENGINE_BACKEND_CPU_H

#include "core/base/cpu_features.h"
#include "core/base/thread_pool.h"
#include "core/engine/tile_cache.h"
#include "core/engine/weight_stream.h"
#include "core/kernels/kernels.h"
#include "core/model/backend.h"

/* `pool` is borrowed and must outlive the backend. The numeric path follows from the features
 * alone; backend_cpu_create_with is for int8 matmuls. */
enum status backend_cpu_create(struct thread_pool *pool, const struct cpu_features *features,
                               struct backend **backend, struct error *error);

/* The same with kernels of the caller's choice, all of one unit. */
enum status backend_cpu_create_with(struct thread_pool *pool, const struct kernels *kernels,
                                    struct backend **backend, struct error *error);

/* Before prepare: packed weights are looked for in this cache. */
enum status backend_cpu_use_cache(struct backend *backend, const struct tile_cache_options *options,
                                  struct error *error);
/* What all packed weights take. */
uint64_t backend_cpu_weights_total(const struct model *model);
/* Before `memory`: weights take at most `bytes` of memory (0: no limit). What is more is read from
 * the tile cache in every step; prepare fails when there is none, or when the limit is too small
 * for two of the largest matrices. */
void backend_cpu_stream_limit(struct backend *backend, uint64_t bytes);
/* About the bytes of weights that every step then reads; 0: all stay. */
uint64_t backend_cpu_stream_step_bytes(const struct backend *backend, const struct model *model);
/* What was read so far; zeros when nothing is streamed. */
struct weight_stream_totals backend_cpu_stream_totals(const struct backend *backend);
/* Between steps, once: weights that had to be packed are kept there; given up when `stop` (or NULL)
 * is not 0. It takes as long as writing them, so it is for the end of a run. */
void backend_cpu_weights_keep(struct backend *backend, const atomic_int *stop);

#endif
