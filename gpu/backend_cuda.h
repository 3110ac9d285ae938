/* The CUDA backend: weights as in the model's file, read by kernels that decode them as they
 * multiply; paged KV and activations in device memory. One stream, one upload and one wait a step.
 *
 * Every matmul is a kernel of ours, so that a row's bits depend on its own values only, whatever
 * the number of rows (cuBLAS promises no such thing). */
#ifndef GPU_BACKEND_CUDA_H
#define GPU_BACKEND_CUDA_H

#include "core/model/backend.h"
#include "gpu/device.h"

/* Opens the device; fails as device_open does. */
enum status backend_cuda_create(const struct device_options *options, struct backend **backend,
                                struct error *error);

const struct device *backend_cuda_device(const struct backend *backend);

/* What pages hold when nobody asks for something: bf16, or f16 where the device has no bf16. */
enum kv_type backend_cuda_kv_type(const struct backend *backend);

/* Device memory that is free now. */
uint64_t backend_cuda_available(const struct backend *backend);

/* Before memory and prepare: weights, without rope tables, may take so many bytes of device memory,
 * 0: all they need. The linears that do not fit are copied to the device in every step, from the
 * model's file, which must stay mapped. */
void backend_cuda_stream_limit(struct backend *backend, uint64_t bytes);
/* Bytes that a step copies under the limit; 0: everything stays. */
uint64_t backend_cuda_stream_step_bytes(const struct backend *backend, const struct model *model);
/* Bytes copied so far. */
uint64_t backend_cuda_stream_copied(const struct backend *backend);

/* Of all steps so far, where inputs of matmuls are fp16: rows that had to be scaled to fit, and
 * values beyond even that. */
struct backend_cuda_counts {
    uint32_t scaled_rows, overflowed_values;
};
enum status backend_cuda_counts(struct backend *backend, struct backend_cuda_counts *counts,
                                struct error *error);

#endif
