/* What queued operations do when their turn comes. A range that is not inside one allocation then
 * is an illegal address, as for a kernel. */
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fakecuda_state.h"
#include "tests/ptxsim/ptx_numbers.h"

static void *device_bytes(uint64_t address, uint64_t bytes) {
    return ptxsim_memory_host(fakecuda_state.machine, address, bytes);
}

static int illegal(const char *what, uint64_t address, uint64_t bytes) {
    return fakecuda_state_misuse(DRIVER_ILLEGAL_ADDRESS, "%s: %llu bytes at 0x%llx are no memory",
                                 what, (unsigned long long)bytes, (unsigned long long)address);
}

static int to_device(const struct fake_operation *operation) {
    void *to = device_bytes(operation->to, operation->bytes);
    if (!to)
        return illegal("copy to the device", operation->to, operation->bytes);
    memcpy(to, operation->owned ? operation->owned : operation->host_from, operation->bytes);
    fakecuda_state.report.uploaded += operation->bytes;
    return 0;
}

static int to_host(const struct fake_operation *operation) {
    const void *from = device_bytes(operation->from, operation->bytes);
    if (!from)
        return illegal("copy to the host", operation->from, operation->bytes);
    memcpy(operation->host_to, from, operation->bytes);
    return 0;
}

static int within(const struct fake_operation *operation) {
    void *to = device_bytes(operation->to, operation->bytes);
    const void *from = device_bytes(operation->from, operation->bytes);
    if (!to || !from)
        return illegal("copy within the device", to ? operation->from : operation->to,
                       operation->bytes);
    memmove(to, from, operation->bytes);
    return 0;
}

static int fill(const struct fake_operation *operation) {
    void *to = device_bytes(operation->to, operation->bytes);
    if (!to)
        return illegal("fill", operation->to, operation->bytes);
    memset(to, operation->value, operation->bytes);
    return 0;
}

/* CUDA's result of a fault. */
static int fault_result(enum ptxsim_fault_kind fault) {
    return fault == PTXSIM_FAULT_BOUNDS || fault == PTXSIM_FAULT_READ_ONLY ? DRIVER_ILLEGAL_ADDRESS
           : fault == PTXSIM_FAULT_ALIGNMENT ? DRIVER_MISALIGNED_ADDRESS
                                             : DRIVER_LAUNCH_FAILED;
}

static int launch(const struct fake_operation *operation) {
    const struct fakecuda_settings *settings = &fakecuda_state.settings;
    static const enum ptxsim_order orders[] = {
        [FAKECUDA_LAZY] = PTXSIM_ASCENDING,
        [FAKECUDA_EAGER] = PTXSIM_DESCENDING,
        [FAKECUDA_RANDOM] = PTXSIM_RANDOM,
    };
    struct ptxsim_launch call = {.shared_bytes = operation->shared_bytes,
                                 .shared_optin = operation->shared_optin,
                                 .params = operation->owned,
                                 .order = orders[settings->order],
                                 .seed = settings->seed,
                                 .host_threads = settings->host_threads};
    memcpy(call.grid, operation->grid, sizeof call.grid);
    memcpy(call.block, operation->block, sizeof call.block);
    struct ptxsim_report report = {0};
    struct error error = {0};
    fakecuda_state.report.launches++;
    if (ptxsim_launch(fakecuda_state.machine, operation->kernel, &call, &report, &error) ==
        STATUS_OK)
        return 0;
    return fakecuda_state_misuse(fault_result(report.fault), "%s: %s", operation->kernel->name,
                                 error.text);
}

static size_t element_bytes(int type) {
    return type == BLAS_TYPE_F32 ? 4 : 2;
}

/* `count` elements as floats. */
static void widen(const void *from, int type, int count, float *to) {
    for (int i = 0; i < count; i++)
        to[i] = type == BLAS_TYPE_F32   ? ((const float *)from)[i]
                : type == BLAS_TYPE_F16 ? ptx_numbers_f16(((const uint16_t *)from)[i])
                                        : ptx_numbers_bf16(((const uint16_t *)from)[i]);
}

/* Elements of `count` columns of `rows`, ld apart. */
static uint64_t extent(int rows, int count, int ld) {
    return (uint64_t)(count - 1) * (uint64_t)ld + (uint64_t)rows;
}

/* Eight outputs at a time: each is one sum over ascending k, and they do not wait for each other.
 */
static void multiply_column(const struct fake_multiply *m, const float *a, const float *b,
                            float *c) {
    enum { TOGETHER = 8 };
    for (int first = 0; first < m->m; first += TOGETHER) {
        const int count = m->m - first < TOGETHER ? m->m - first : TOGETHER;
        float sums[TOGETHER] = {0};
        for (int k = 0; k < m->k; k++)
            for (int i = 0; i < count; i++)
                sums[i] += a[(size_t)(first + i) * (size_t)m->k + (size_t)k] * b[k];
        for (int i = 0; i < count; i++)
            c[first + i] = m->alpha * sums[i] + (m->beta != 0 ? m->beta * c[first + i] : 0);
    }
}

/* a is k × m (used transposed), b is k × n, c is m × n, column-major. */
static int multiply(const struct fake_operation *operation) {
    const struct fake_multiply *m = &operation->multiply;
    const size_t size = element_bytes(m->type);
    const char *a = device_bytes(m->a, extent(m->k, m->m, m->lda) * size);
    const char *b = device_bytes(m->b, extent(m->k, m->n, m->ldb) * size);
    float *c = device_bytes(m->c, extent(m->m, m->n, m->ldc) * sizeof *c);
    if (!a || !b || !c)
        return illegal("cublasGemmEx", !a ? m->a : !b ? m->b : m->c, 0);
    float *wide = malloc(((size_t)m->m + 1) * (size_t)m->k * sizeof *wide);
    if (!wide)
        return fakecuda_state_misuse(DRIVER_LAUNCH_FAILED, "the host has no memory for a matmul");
    float *column = wide + (size_t)m->m * (size_t)m->k;
    for (int i = 0; i < m->m; i++)
        widen(a + (size_t)i * (size_t)m->lda * size, m->type, m->k,
              wide + (size_t)i * (size_t)m->k);
    for (int j = 0; j < m->n; j++) {
        widen(b + (size_t)j * (size_t)m->ldb * size, m->type, m->k, column);
        multiply_column(m, wide, column, c + (size_t)j * (size_t)m->ldc);
    }
    free(wide);
    fakecuda_state.report.multiplies++;
    return 0;
}

/* Time is the count of operations, a microsecond each. */
static int record(const struct fake_operation *operation) {
    if (operation->event->completed < operation->recording)
        operation->event->completed = operation->recording;
    operation->event->time_ms = (double)fakecuda_state.report.operations * 1e-3;
    return 0;
}

static int nothing(const struct fake_operation *operation) {
    (void)operation;
    return 0;
}

int fakecuda_execute(const struct fake_operation *operation) {
    static int (*const kinds[])(const struct fake_operation *operation) = {
        [FAKE_TO_DEVICE] = to_device, [FAKE_TO_HOST] = to_host, [FAKE_WITHIN] = within,
        [FAKE_FILL] = fill,           [FAKE_LAUNCH] = launch,   [FAKE_MULTIPLY] = multiply,
        [FAKE_RECORD] = record,       [FAKE_WAIT] = nothing,    [FAKE_NOTHING] = nothing,
    };
    return kinds[operation->kind](operation);
}
