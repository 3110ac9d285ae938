/* What nvcc makes of kernels/products.cu, on three devices, against sums computed here. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptxsim/ptx_numbers.h"
#include "tests/ptxsim/ptxsim.h"

struct device {
    struct ptxsim *machine;
    struct ptxsim_module *module;
    struct ptxsim_report report;
};

#ifdef PTXSIM_HAS_NVCC
static const int capabilities[] = {75, 80, 89};

static void open_device(struct device *device, int capability) {
    char path[512];
    static char text[1 << 20];
    struct error error = {0};
    struct ptxsim_device description;
    snprintf(path, sizeof path, SHEAF_BINARY_DIR "/ptxsim/products.sm_%d.ptx", capability);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    const size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    ptxsim_device_describe(capability, &description);
    cr_assert_eq(ptxsim_create(&description, &device->machine, &error), STATUS_OK);
    cr_assert_eq(ptxsim_module_load(device->machine, text, length, &device->module, &error),
                 STATUS_OK, "%s", error.text);
}

static void close_device(struct device *device) {
    ptxsim_module_unload(device->module);
    ptxsim_destroy(device->machine);
}

static void *allocate(struct device *device, uint64_t bytes, uint64_t *address) {
    struct error error = {0};
    cr_assert_eq(ptxsim_memory_alloc(device->machine, bytes, address, &error), STATUS_OK);
    return ptxsim_memory_host(device->machine, *address, bytes);
}

static void launch(struct device *device, const char *name, const void *params, uint32_t blocks,
                   uint32_t threads) {
    struct error error = {0};
    const struct ptxsim_launch launch = {
        .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .params = params};
    const enum status status =
        ptxsim_launch(device->machine, ptxsim_module_kernel(device->module, name), &launch,
                      &device->report, &error);
    cr_assert_eq(status, STATUS_OK, "%s", error.text);
}

static const struct product {
    const char *kernel;
    enum ptx_type type;
    int depth;
} products[] = {
    {"f16_k8", PTX_F16, 8}, {"f16_k16", PTX_F16, 16}, {"bf16_k16", PTX_BF16, 16},
    {"s8_k16", PTX_S8, 16}, {"s8_k32", PTX_S8, 32},   {"e4m3_k32", PTX_E4M3, 32},
};

/* Small whole numbers (and halves), so that every sum is exact in any order. */
static void fill(const struct product *product, void *to, double *values, int count, int step) {
    for (int i = 0; i < count; i++) {
        values[i] = (i * step) % 13 - 6;
        const uint32_t bits = product->type == PTX_S8
                                  ? (uint32_t)(int)values[i]
                                  : ptx_numbers_round(product->type, values[i], PTX_NEAREST, false);
        if (ptx_types_bytes(product->type) == 1)
            ((uint8_t *)to)[i] = (uint8_t)bits;
        else
            ((uint16_t *)to)[i] = (uint16_t)bits;
    }
}

static void check_product(struct device *device, const struct product *product) {
    uint64_t params[3];
    double a[16 * 32], b[8 * 32];
    const uint64_t bytes = ptx_types_bytes(product->type);
    const int depth = product->depth;
    void *a_bits = allocate(device, 16u * (unsigned)depth * bytes, &params[0]);
    void *b_bits = allocate(device, 8u * (unsigned)depth * bytes, &params[1]);
    const void *out = allocate(device, 16 * 8 * 4, &params[2]);
    fill(product, a_bits, a, 16 * depth, 5);
    fill(product, b_bits, b, 8 * depth, 7);
    launch(device, product->kernel, params, 1, 32);
    cr_expect_eq(device->report.counters.matrix_instructions, 1);
    for (int row = 0; row < 16; row++) {
        for (int column = 0; column < 8; column++) {
            double wanted = 1 + column % 2 + (row < 8 ? 0 : 2);
            for (int k = 0; k < depth; k++)
                wanted += a[row * depth + k] * b[column * depth + k];
            const int at = row * 8 + column;
            const double got = product->type == PTX_S8 ? (double)((const int32_t *)out)[at]
                                                       : (double)((const float *)out)[at];
            cr_expect_eq(got, wanted, "%s (%d,%d): %g, not %g", product->kernel, row, column, got,
                         wanted);
        }
    }
}

Test(ptxsim_compiled, matrix_products) {
    for (int c = 0; c < 3; c++) {
        struct device device = {0};
        int count = 0;
        open_device(&device, capabilities[c]);
        for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
            if (!ptxsim_module_kernel(device.module, products[i].kernel))
                continue; /* not on this device */
            check_product(&device, &products[i]);
            count++;
        }
        cr_expect_eq(count, capabilities[c] == 75 ? 1 : (capabilities[c] == 80 ? 5 : 6));
        close_device(&device);
    }
}

Test(ptxsim_compiled, expf_of_the_compiler) {
    struct device device = {0};
    struct {
        uint64_t in, out;
        int count;
    } params = {.count = 1000};
    open_device(&device, 80);
    float *in = allocate(&device, 4000, &params.in);
    const float *out = allocate(&device, 4000, &params.out);
    for (int i = 0; i < 1000; i++)
        in[i] = (float)(i - 500) * 0.2f;
    launch(&device, "exponentials", &params, 8, 128);
    for (int i = 0; i < 1000; i++) {
        const double wanted = exp((double)in[i]);
        const double most = wanted > 0x1.fffffep127 ? INFINITY : wanted;
        cr_expect(isinf(most) ? isinf(out[i]) : fabs(out[i] - most) <= most * 3e-7 + 1e-38,
                  "exp(%g) = %g", (double)in[i], (double)out[i]);
    }
    cr_expect_eq(device.report.counters.global_sectors, device.report.counters.global_sectors_min);
    close_device(&device);
}

/* Results and counters depend neither on the order nor on the number of host threads. */
Test(ptxsim_compiled, host_threads_change_nothing) {
    struct device device = {0};
    struct {
        uint64_t out;
        int count;
    } params = {.count = 100};
    struct ptxsim_report reports[2];
    struct error error = {0};
    float first[8 * 64];
    open_device(&device, 80);
    float *out = allocate(&device, sizeof first, &params.out);
    for (int i = 0; i < 2; i++) {
        const struct ptxsim_launch launch = {.grid = {8, 1, 1},
                                             .block = {64, 1, 1},
                                             .params = &params,
                                             .order = i ? PTXSIM_RANDOM : PTXSIM_ASCENDING,
                                             .host_threads = i ? 3 : 1};
        memset(out, 0xff, sizeof first);
        cr_assert_eq(ptxsim_launch(device.machine, ptxsim_module_kernel(device.module, "steps"),
                                   &launch, &reports[i], &error),
                     STATUS_OK, "%s", error.text);
        if (i == 0)
            memcpy(first, out, sizeof first);
    }
    cr_expect_eq(memcmp(first, out, sizeof first), 0);
    cr_expect_eq(memcmp(&reports[0].counters, &reports[1].counters, sizeof reports[0].counters), 0);
    close_device(&device);
}
#else
Test(ptxsim_compiled, needs_nvcc) {
    cr_skip_test("this build compiles no CUDA kernels (no nvcc, or sanitizers): none was run");
}
#endif
