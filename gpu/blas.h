/* cuBLAS by dlopen, for matmuls: libcublas.so.13, .12 or .11, the first that is there and works on
 * the device (13 is not tried below compute capability 7.5). It is optional: where none works the
 * kernels `linear_<type>` do every matmul. */
#ifndef GPU_BLAS_H
#define GPU_BLAS_H

#include "gpu/device.h"

/* out[row][column] = Σ in[row][k] × weights[column][k], summed in fp32, to fp32. All row-major. */
struct blas_matmul {
    uint64_t weights;     /* [columns][k] of `element`, rows weight_stride elements apart */
    uint64_t in;          /* [rows][k] of `element`, rows in_stride elements apart */
    uint64_t out;         /* fp32 [rows][columns], rows out_stride elements apart */
    enum element element; /* of weights and in */
    bool accumulate;      /* add to out instead of setting it */
    int rows, columns, k; /* 0 rows: nothing is done */
    int weight_stride, in_stride, out_stride;
};

/* Find a library, create its handle on the compute stream, allocate its workspace (tag scratch).
 * Once a device; again is nothing. STATUS_NOT_FOUND with the reasons when none works. */
enum status blas_open(struct device *device, struct error *error);
/* What was opened: 12040 for 12.4; 0: not open. */
int blas_version(const struct device *device);
/* Device memory that blas_open takes for its workspace. */
uint64_t blas_workspace_bytes(const struct device *device);

/* Queue it on the compute stream; may be captured in a graph. blas_open must have succeeded.
 * Addresses 16-byte aligned and strides multiples of 8 keep to the fast kernels. */
enum status blas_multiply(struct device *device, const struct blas_matmul *matmul,
                          struct error *error);

#endif
