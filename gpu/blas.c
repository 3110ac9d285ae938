/* Finding a cuBLAS that works here, and its one call. cuBLAS is column-major: out's transpose,
 * [columns] × [rows], is weights × in's transpose. */
#include "gpu/blas.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device_memory.h"

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration */
#define BLAS_FIELD(field, symbol, parameters) int(*field) parameters;

struct blas {
    void *library;
    struct blas_handle *handle;
    int version;
    BLAS_FUNCTIONS(BLAS_FIELD)
};

#define BLAS_ENTRY(field, symbol, parameters) {offsetof(struct blas, field), symbol},
static const struct entry {
    size_t offset;
    const char *symbol;
} entries[] = {BLAS_FUNCTIONS(BLAS_ENTRY)};

/* cuBLAS 13 has nothing below 7.5. */
static const char *const paths_turing[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                           NULL};
static const char *const *const paths_old = paths_turing + 1;

static const struct {
    int status;
    const char *name;
} status_names[] = {
    {BLAS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED"},
    {BLAS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED"},
    {BLAS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE"},
    {BLAS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH"},
    {BLAS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED"},
    {BLAS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR"},
    {BLAS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED"},
};

/* What a failing launch inside cuBLAS did to the device shows at the next call of the driver. */
static enum status check(int result, const char *call, struct error *error) {
    if (result == BLAS_SUCCESS)
        return STATUS_OK;
    const char *name = "unknown error";
    for (size_t i = 0; i < sizeof status_names / sizeof status_names[0]; i++)
        if (status_names[i].status == result)
            name = status_names[i].name;
    return error_set(error, result == BLAS_ALLOC_FAILED ? STATUS_NO_MEMORY : STATUS_DEVICE,
                     "%s: %s (%d)", call, name, result);
}

static enum status fill_table(struct blas *blas, struct error *error) {
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        void *symbol = dlsym(blas->library, entries[i].symbol);
        if (!symbol)
            return error_set(error, STATUS_NOT_FOUND, "it has no '%s'", entries[i].symbol);
        memcpy((char *)blas + entries[i].offset, &symbol, sizeof symbol);
    }
    return STATUS_OK;
}

/* NVIDIA's advice: 32 MiB for 9.0 to 11.x, 12 MiB from 12.0, 4 MiB elsewhere. */
uint64_t blas_workspace_bytes(const struct device *device) {
    return device->capability >= 120 ? 12 << 20 : device->capability >= 90 ? 32 << 20 : 4 << 20;
}

static enum status set_up(struct device *device, struct blas *blas, struct error *error) {
    TRY(check(blas->cublasCreate(&blas->handle), "cublasCreate", error));
    TRY(check(blas->cublasGetVersion(blas->handle, &blas->version), "cublasGetVersion", error));
    return check(blas->cublasSetStream(blas->handle, device->streams[DEVICE_COMPUTE]),
                 "cublasSetStream", error);
}

static void close_library(struct blas *blas) {
    if (blas->handle)
        (void)blas->cublasDestroy(blas->handle);
    if (blas->library)
        dlclose(blas->library);
    *blas = (struct blas){0};
}

static enum status open_library(struct device *device, const char *path, struct blas *blas,
                                struct error *error) {
    blas->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!blas->library)
        return error_set(error, STATUS_NOT_FOUND, "%s", dlerror());
    enum status status = fill_table(blas, error);
    if (status == STATUS_OK)
        status = set_up(device, blas, error);
    if (status != STATUS_OK) {
        close_library(blas);
        error_context(error, "%s", path);
    }
    return status;
}

/* The first that works; the reasons of all when none does. */
static enum status open_any(struct device *device, struct blas *blas, struct error *error) {
    const char *const *paths = device->blas_paths        ? device->blas_paths
                               : device->capability < 75 ? paths_old
                                                         : paths_turing;
    struct error reason;
    error_set(error, STATUS_NOT_FOUND, "no cuBLAS");
    for (int i = 0; paths[i]; i++) {
        if (open_library(device, paths[i], blas, &reason) == STATUS_OK)
            return STATUS_OK;
        if (device->driver.lost)
            return error_set(error, STATUS_DEVICE, "%s", reason.text);
        if (error) {
            const struct error before = *error;
            error_set(error, STATUS_NOT_FOUND, "%s%s %s", before.text, i == 0 ? ":" : ";",
                      reason.text);
        }
    }
    return STATUS_NOT_FOUND;
}

/* With a workspace of ours cuBLAS allocates nothing later, as graphs want it. Its address is a
 * pointer to cuBLAS, and a number to us. */
static enum status give_workspace(struct device *device, struct blas *blas, struct error *error) {
    uint64_t address = 0;
    const uint64_t bytes = blas_workspace_bytes(device);
    TRY(device_memory_alloc(device, DEVICE_MEMORY_SCRATCH, bytes, &address, error));
    enum status status =
        check(blas->cublasSetWorkspace(blas->handle, (void *)(uintptr_t)address, (size_t)bytes),
              "cublasSetWorkspace", error);
    if (status == STATUS_OK)
        status = check(blas->cublasSetMathMode(blas->handle, BLAS_MATH_NO_REDUCED_REDUCTION),
                       "cublasSetMathMode", error);
    if (status != STATUS_OK)
        device_memory_free(device, address);
    return status;
}

enum status blas_open(struct device *device, struct error *error) {
    if (device->blas)
        return STATUS_OK;
    struct blas *blas = calloc(1, sizeof *blas);
    if (!blas)
        return error_no_memory(error, "cuBLAS");
    enum status status = open_any(device, blas, error);
    if (status == STATUS_OK)
        status = give_workspace(device, blas, error);
    if (status != STATUS_OK) {
        close_library(blas);
        free(blas);
        return status;
    }
    device->blas = blas;
    return STATUS_OK;
}

int blas_version(const struct device *device) {
    return device->blas ? device->blas->version : 0;
}

enum status blas_multiply(struct device *device, const struct blas_matmul *matmul,
                          struct error *error) {
    static const int types[] = {[ELEMENT_F32] = BLAS_TYPE_F32,
                                [ELEMENT_F16] = BLAS_TYPE_F16,
                                [ELEMENT_BF16] = BLAS_TYPE_BF16};
    const struct blas *blas = device->blas;
    const float alpha = 1, beta = matmul->accumulate ? 1 : 0;
    const int type = types[matmul->element];
    if (matmul->rows == 0 || matmul->columns == 0)
        return STATUS_OK;
    return check(blas->cublasGemmEx(
                     blas->handle, BLAS_OPERATION_TRANSPOSED, BLAS_OPERATION_NONE, matmul->columns,
                     matmul->rows, matmul->k, &alpha, (const void *)(uintptr_t)matmul->weights,
                     type, matmul->weight_stride, (const void *)(uintptr_t)matmul->in, type,
                     matmul->in_stride, &beta, (void *)(uintptr_t)matmul->out, BLAS_TYPE_F32,
                     matmul->out_stride, BLAS_COMPUTE_F32, BLAS_ALGORITHM_DEFAULT),
                 "cublasGemmEx", error);
}

/* The workspace goes with the device's memory. */
void blas_release(struct device *device) {
    if (!device->blas)
        return;
    close_library(device->blas);
    free(device->blas);
    device->blas = NULL;
}
