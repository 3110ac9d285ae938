/* cuBLAS by dlopen, for matmuls: libcublas.so.13, .12 or .11, the first that is there and works on
 * the device (13 is not tried below compute capability 7.5). It is optional: where none works the
 * kernels `linear_<type>` do every matmul. */
#ifndef GPU_BLAS_H
#define GPU_BLAS_H

#include "gpu/device.h"

struct blas_handle; /* cublasHandle_t */

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
/* The library's own number, 120402 for 12.4.2; 0: not open. */
int blas_version(const struct device *device);
/* Device memory that blas_open takes for its workspace. */
uint64_t blas_workspace_bytes(const struct device *device);

/* Queue it on the compute stream; may be captured in a graph. blas_open must have succeeded.
 * Addresses 16-byte aligned and strides multiples of 8 keep to the fast kernels. */
enum status blas_multiply(struct device *device, const struct blas_matmul *matmul,
                          struct error *error);

/* X(field, symbol, parameters), as DRIVER_FUNCTIONS; each returns a cublasStatus_t. */
/* clang-format off */
#define BLAS_FUNCTIONS(X)                                                                         \
    X(cublasCreate, "cublasCreate_v2", (struct blas_handle **handle))                             \
    X(cublasDestroy, "cublasDestroy_v2", (struct blas_handle *handle))                            \
    X(cublasGetVersion, "cublasGetVersion_v2", (struct blas_handle *handle, int *version))        \
    X(cublasSetStream, "cublasSetStream_v2",                                                      \
      (struct blas_handle *handle, struct driver_stream *stream))                                 \
    X(cublasSetWorkspace, "cublasSetWorkspace_v2",                                                \
      (struct blas_handle *handle, void *workspace, size_t bytes))                                \
    X(cublasSetMathMode, "cublasSetMathMode", (struct blas_handle *handle, int mode))             \
    X(cublasGemmEx, "cublasGemmEx",                                                               \
      (struct blas_handle *handle, int a_operation, int b_operation, int m, int n, int k,         \
       const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type, int ldb, \
       const void *beta, void *c, int c_type, int ldc, int compute_type, int algorithm))
/* clang-format on */

/* cuBLAS's numbers. */
enum {
    BLAS_SUCCESS = 0,
    BLAS_NOT_INITIALIZED = 1,
    BLAS_ALLOC_FAILED = 3,
    BLAS_INVALID_VALUE = 7,
    BLAS_ARCH_MISMATCH = 8,
    BLAS_EXECUTION_FAILED = 13,
    BLAS_INTERNAL_ERROR = 14,
    BLAS_NOT_SUPPORTED = 15,
    BLAS_OPERATION_NONE = 0,
    BLAS_OPERATION_TRANSPOSED = 1,
    BLAS_TYPE_F32 = 0,
    BLAS_TYPE_F16 = 2,
    BLAS_TYPE_BF16 = 14,
    BLAS_COMPUTE_F32 = 68,
    BLAS_ALGORITHM_DEFAULT = -1,
    BLAS_MATH_DEFAULT = 0,
    BLAS_MATH_NO_REDUCED_REDUCTION = 16,
};

void blas_release(struct device *device); /* for device_close */

#endif
