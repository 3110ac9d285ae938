/* The cuBLAS side: the checks of the real one, and matmuls that are queued on the handle's stream.
 */
#include <stdlib.h>

#include "tests/fakecuda/fakecuda_state.h"

struct blas_handle {
    struct fake_object object;
    struct fake_stream *stream;
    int math_mode;
};

/* What cuBLAS says when the driver under it fails. */
static int enter(const char *call) {
    const int entered = fakecuda_state_enter_current(call);
    return entered == 0                          ? BLAS_SUCCESS
           : entered == DRIVER_OUT_OF_MEMORY     ? BLAS_ALLOC_FAILED
           : entered == FAKE_NOT_INITIALIZED     ? BLAS_NOT_INITIALIZED
           : entered == DRIVER_NO_BINARY_FOR_GPU ? BLAS_ARCH_MISMATCH
                                                 : BLAS_EXECUTION_FAILED;
}

static int enter_handle(const char *call, const struct blas_handle *handle) {
    const int entered = enter(call);
    if (entered)
        return entered;
    if (!fakecuda_state_alive(handle, FAKE_BLAS))
        return fakecuda_state_misuse(BLAS_NOT_INITIALIZED, "%s: a handle that is not alive", call);
    return BLAS_SUCCESS;
}

int cublasCreate(struct blas_handle **handle) {
    const int entered = enter(__func__);
    if (entered)
        return entered;
    if (fakecuda_state.settings.no_blas)
        return BLAS_NOT_INITIALIZED;
    struct blas_handle *created = fakecuda_state_add(FAKE_BLAS, sizeof *created);
    *handle = created;
    return created ? BLAS_SUCCESS : BLAS_ALLOC_FAILED;
}

int cublasDestroy(struct blas_handle *handle) {
    const int entered = enter(__func__);
    if (!fakecuda_state_alive(handle, FAKE_BLAS))
        return fakecuda_state_misuse(BLAS_NOT_INITIALIZED, "a cuBLAS handle that is not alive");
    fakecuda_state_remove(handle);
    return entered;
}

int cublasGetVersion(struct blas_handle *handle, int *version) {
    const int entered = enter_handle(__func__, handle);
    if (entered == BLAS_SUCCESS)
        *version = 130000;
    return entered;
}

int cublasSetStream(struct blas_handle *handle, struct driver_stream *stream) {
    const int entered = enter_handle(__func__, handle);
    if (entered)
        return entered;
    if (!fakecuda_state_alive(stream, FAKE_STREAM))
        return fakecuda_state_misuse(BLAS_INVALID_VALUE, "cublasSetStream: a dead stream");
    handle->stream = (struct fake_stream *)stream;
    return BLAS_SUCCESS;
}

int cublasSetWorkspace(struct blas_handle *handle, void *workspace, size_t bytes) {
    const int entered = enter_handle(__func__, handle);
    if (entered)
        return entered;
    const uint64_t address = (uint64_t)(uintptr_t)workspace;
    if (address % 256 != 0 || !ptxsim_memory_host(fakecuda_state.machine, address, bytes))
        return fakecuda_state_misuse(BLAS_INVALID_VALUE, "cublasSetWorkspace: no such memory");
    return BLAS_SUCCESS;
}

int cublasSetMathMode(struct blas_handle *handle, int mode) {
    const int entered = enter_handle(__func__, handle);
    if (entered == BLAS_SUCCESS)
        handle->math_mode = mode;
    return entered;
}

static int check_types(int a_type, int b_type, int c_type, int compute_type) {
    const bool known = a_type == BLAS_TYPE_F32 || a_type == BLAS_TYPE_F16 ||
                       (a_type == BLAS_TYPE_BF16 && fakecuda_state.settings.capability >= 80);
    if (!known || a_type != b_type || c_type != BLAS_TYPE_F32 || compute_type != BLAS_COMPUTE_F32)
        return fakecuda_state_misuse(BLAS_NOT_SUPPORTED, "cublasGemmEx: types %d, %d, %d, %d",
                                     a_type, b_type, c_type, compute_type);
    return BLAS_SUCCESS;
}

static int check_shape(const struct fake_multiply *m) {
    const uint64_t bytes = m->type == BLAS_TYPE_F32 ? 4 : 2;
    if (m->m < 0 || m->n < 0 || m->k < 0)
        return fakecuda_state_misuse(BLAS_INVALID_VALUE, "cublasGemmEx: %d × %d × %d", m->m, m->n,
                                     m->k);
    if (m->lda < (m->k > 1 ? m->k : 1) || m->ldb < (m->k > 1 ? m->k : 1) ||
        m->ldc < (m->m > 1 ? m->m : 1))
        return fakecuda_state_misuse(BLAS_INVALID_VALUE,
                                     "cublasGemmEx: leading dimensions %d %d %d", m->lda, m->ldb,
                                     m->ldc);
    if (m->a % bytes || m->b % bytes || m->c % sizeof(float))
        return fakecuda_state_misuse(BLAS_INVALID_VALUE, "cublasGemmEx: a misaligned matrix");
    return BLAS_SUCCESS;
}

int cublasGemmEx(struct blas_handle *handle, int a_operation, int b_operation, int m, int n, int k,
                 const void *alpha, const void *a, int a_type, int lda, const void *b, int b_type,
                 int ldb, const void *beta, void *c, int c_type, int ldc, int compute_type,
                 int algorithm) {
    int result = enter_handle(__func__, handle);
    if (result == BLAS_SUCCESS)
        result = check_types(a_type, b_type, c_type, compute_type);
    if (result)
        return result;
    if (a_operation != BLAS_OPERATION_TRANSPOSED || b_operation != BLAS_OPERATION_NONE ||
        algorithm != BLAS_ALGORITHM_DEFAULT)
        return fakecuda_state_misuse(BLAS_NOT_SUPPORTED, "cublasGemmEx: operations or algorithm");
    if (!handle->stream || !fakecuda_state_alive(handle->stream, FAKE_STREAM))
        return fakecuda_state_misuse(BLAS_EXECUTION_FAILED,
                                     "a matmul on the default stream, or a dead one");
    const struct fake_multiply multiply = {.m = m,
                                           .n = n,
                                           .k = k,
                                           .lda = lda,
                                           .ldb = ldb,
                                           .ldc = ldc,
                                           .type = a_type,
                                           .alpha = *(const float *)alpha,
                                           .beta = *(const float *)beta,
                                           .a = (uint64_t)(uintptr_t)a,
                                           .b = (uint64_t)(uintptr_t)b,
                                           .c = (uint64_t)(uintptr_t)c};
    result = check_shape(&multiply);
    if (result || m == 0 || n == 0)
        return result;
    struct fake_operation *operation = fakecuda_run_operation(FAKE_MULTIPLY);
    if (!operation)
        return BLAS_ALLOC_FAILED;
    operation->multiply = multiply;
    fakecuda_run_queue(handle->stream, operation);
    return BLAS_SUCCESS;
}
