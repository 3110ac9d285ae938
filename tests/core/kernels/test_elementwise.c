/* Element-wise kernels: every variant this CPU has against the C library in double, all small
 * counts right before guard pages, and the odd values: ties, NaN, infinities, far arguments. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/base/cpu_features.h"
#include "core/kernels/kernels.h"
#include "tests/support/guard_pages.h"
#include "tests/support/random_tensor.h"

static const struct elementwise_kernels *variant(size_t index) {
    struct cpu_features features = cpu_features_detect();
    const struct elementwise_kernels *kernels = elementwise_variant_at(index);
    return kernels->available(&features) ? kernels : NULL;
}

static void expect_close(const char *name, double found, double expected, double allowed) {
    cr_assert(fabs(found - expected) <= allowed * fabs(expected) + 1e-37, "%s: %.9g, not %.9g",
              name, found, expected);
}

/* Three arrays of `count` floats that end at guard pages. */
struct arrays {
    struct guard_pages pages[3];
    float *a, *b, *out;
};

static struct arrays make_arrays(int count, float size, uint64_t seed) {
    struct arrays arrays;
    for (int i = 0; i < 3; i++)
        arrays.pages[i] = guard_pages_create((size_t)count * sizeof(float));
    arrays.a = arrays.pages[0].bytes;
    arrays.b = arrays.pages[1].bytes;
    arrays.out = arrays.pages[2].bytes;
    for (int i = 0; i < count; i++) {
        arrays.a[i] = size * random_tensor_float(&seed);
        arrays.b[i] = random_tensor_float(&seed);
    }
    return arrays;
}

static void free_arrays(struct arrays *arrays) {
    for (int i = 0; i < 3; i++)
        guard_pages_destroy(&arrays->pages[i]);
}

static void check_norm(const struct elementwise_kernels *kernels, int count) {
    struct arrays arrays = make_arrays(count, 3, (uint64_t)count);
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += (double)arrays.a[i] * arrays.a[i];
    double factor = 1 / sqrt(sum / count + 1e-5);
    kernels->rms_norm(arrays.a, arrays.b, count, 1e-5f, arrays.out);
    for (int i = 0; i < count; i++)
        expect_close(kernels->name, arrays.out[i], arrays.a[i] * factor * arrays.b[i], 1e-6);
    kernels->rms_norm(arrays.a, arrays.b, count, 1e-5f, arrays.a);
    cr_assert_arr_eq(arrays.a, arrays.out, (size_t)count * sizeof(float));
    free_arrays(&arrays);
}

static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static void check_gates(const struct elementwise_kernels *kernels, int count) {
    struct arrays arrays = make_arrays(count, 12, (uint64_t)count + 77);
    kernels->silu_mul(arrays.a, arrays.b, count, arrays.out);
    for (int i = 0; i < count; i++)
        expect_close(kernels->name, arrays.out[i],
                     arrays.a[i] / (1 + exp(-(double)arrays.a[i])) * arrays.b[i], 5e-7);
    kernels->gelu_tanh_mul(arrays.a, arrays.b, count, arrays.out);
    for (int i = 0; i < count; i++) {
        double expected = gelu(arrays.a[i]) * arrays.b[i];
        cr_assert(fabs(arrays.out[i] - expected) <= 2e-6 * fabs(expected) + 1e-12,
                  "%s: gelu %g: %.9g, not %.9g", kernels->name, arrays.a[i], arrays.out[i],
                  expected);
    }
    free_arrays(&arrays);
}

static void check_sums_and_caps(const struct elementwise_kernels *kernels, int count) {
    struct arrays arrays = make_arrays(count, 90, (uint64_t)count + 5);
    memcpy(arrays.out, arrays.a, (size_t)count * sizeof(float));
    kernels->add(arrays.out, arrays.b, count);
    for (int i = 0; i < count; i++)
        cr_assert_eq(arrays.out[i], arrays.a[i] + arrays.b[i]);
    memcpy(arrays.out, arrays.a, (size_t)count * sizeof(float));
    kernels->softcap(arrays.out, count, 30);
    for (int i = 0; i < count; i++)
        expect_close(kernels->name, arrays.out[i], 30 * tanh(arrays.a[i] / 30.0), 1e-6);
    free_arrays(&arrays);
}

Test(elementwise, every_count_against_double) {
    static const int counts[] = {1,  2,  3,  7,  8,  9,  15, 16,  17,  24,
                                 31, 32, 33, 47, 48, 63, 64, 100, 576, 1000};
    for (size_t v = 0; v < elementwise_variant_count(); v++) {
        const struct elementwise_kernels *kernels = variant(v);
        for (size_t i = 0; kernels != NULL && i < sizeof counts / sizeof counts[0]; i++) {
            check_norm(kernels, counts[i]);
            check_gates(kernels, counts[i]);
            check_sums_and_caps(kernels, counts[i]);
        }
    }
}

Test(elementwise, far_arguments) {
    float far[] = {-1e30f, -200, -88, -50, 50, 88, 200, 1e30f};
    float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1}, out[8];
    for (size_t v = 0; v < elementwise_variant_count(); v++) {
        const struct elementwise_kernels *kernels = variant(v);
        if (kernels == NULL)
            continue;
        kernels->silu_mul(far, ones, 8, out);
        for (int i = 0; i < 8; i++)
            cr_expect(i < 4 ? out[i] <= 0 && out[i] > -1e-7f * fabsf(far[i]) : out[i] == far[i],
                      "%s: silu %g is %g", kernels->name, far[i], out[i]);
        kernels->gelu_tanh_mul(far, ones, 8, out);
        for (int i = 1; i < 7; i++)
            cr_expect(i < 4 ? fabsf(out[i]) < 1e-20f : out[i] == far[i], "%s: gelu %g is %g",
                      kernels->name, far[i], out[i]);
        memcpy(out, far, sizeof out);
        kernels->softcap(out, 8, 10);
        cr_expect_eq(out[0], -10);
        cr_expect_eq(out[7], 10);
    }
}

Test(elementwise, not_a_number_goes_through) {
    for (size_t v = 0; v < elementwise_variant_count(); v++) {
        const struct elementwise_kernels *kernels = variant(v);
        if (kernels == NULL)
            continue;
        float in[17], ones[17], out[17];
        for (int i = 0; i < 17; i++)
            in[i] = ones[i] = 1;
        in[5] = in[16] = NAN;
        kernels->silu_mul(in, ones, 17, out);
        cr_expect(isnan(out[5]) && isnan(out[16]) && out[4] < 1, "%s: silu", kernels->name);
        kernels->gelu_tanh_mul(in, ones, 17, out);
        cr_expect(isnan(out[5]) && isnan(out[16]) && out[4] < 1, "%s: gelu", kernels->name);
        memcpy(out, in, sizeof out);
        kernels->softcap(out, 17, 3);
        cr_expect(isnan(out[5]) && isnan(out[16]) && out[4] < 1, "%s: softcap", kernels->name);
        kernels->rms_norm(in, ones, 17, 1e-5f, out);
        cr_expect(isnan(out[0]), "%s: norm", kernels->name);
    }
}

static void check_argmax(const struct elementwise_kernels *kernels, const float *values, int count,
                         int expected, bool expected_finite) {
    bool finite;
    int found = kernels->argmax(values, count, &finite);
    cr_expect_eq(finite, expected_finite, "%s: finite of %d", kernels->name, count);
    if (expected_finite)
        cr_expect_eq(found, expected, "%s: %d of %d, not %d", kernels->name, found, count,
                     expected);
    else
        cr_expect(found >= 0 && found < count);
}

Test(elementwise, argmax) {
    for (size_t v = 0; v < elementwise_variant_count(); v++) {
        const struct elementwise_kernels *kernels = variant(v);
        for (int count = 1; kernels != NULL && count <= 70; count++) {
            struct guard_pages pages = guard_pages_create((size_t)count * sizeof(float));
            float *values = pages.bytes;
            for (int best = 0; best < count; best++) {
                for (int i = 0; i < count; i++)
                    values[i] = -2 - (float)(i % 3);
                values[best] = -1;
                values[count - 1] = -1;
                check_argmax(kernels, values, count, best, true);
            }
            guard_pages_destroy(&pages);
        }
    }
}

Test(elementwise, argmax_finds_what_is_no_number_wherever_it_is) {
    static const float bad[] = {NAN, -NAN, INFINITY};
    for (size_t v = 0; v < elementwise_variant_count(); v++) {
        const struct elementwise_kernels *kernels = variant(v);
        for (int count = 1; kernels != NULL && count <= 70; count++) {
            float values[70] = {0};
            for (int i = 0; i < count; i++) {
                for (int b = 0; b < 3; b++) {
                    values[i] = bad[b];
                    check_argmax(kernels, values, count, 0, false);
                }
                values[i] = 0;
            }
        }
    }
}

Test(elementwise, argmax_passes_over_minus_infinity_and_signs_of_zero) {
    for (size_t v = 0; v < elementwise_variant_count(); v++) {
        const struct elementwise_kernels *kernels = variant(v);
        for (int count = 1; kernels != NULL && count <= 70; count++) {
            float values[70];
            for (int i = 0; i < count; i++)
                values[i] = -INFINITY;
            check_argmax(kernels, values, count, 0, false);
            values[count / 2] = -3e38f;
            check_argmax(kernels, values, count, count / 2, true);
            for (int i = 0; i < count; i++)
                values[i] = i % 2 ? 0.0f : -0.0f;
            check_argmax(kernels, values, count, 0, true);
        }
    }
}
