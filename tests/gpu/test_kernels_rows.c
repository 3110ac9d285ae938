/* Kernels over rows against double. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/simulated.h"

enum { ROWS = 5 };

/* What rms_norm must give, from the values before it. */
static double norm_of(const float *in, const float *scale, const float *bias, const float *residual,
                      const float *weight, int width, int row, int column) {
    double sum = 0, value = 0;
    for (int i = 0; i < width; i++) {
        double x = (double)in[row * width + i] * (scale ? (double)scale[row] : 1);
        x += bias ? (double)bias[i] : 0;
        x += residual ? (double)residual[row * width + i] : 0;
        sum += x * x;
        value = i == column ? x : value;
    }
    return value * (double)weight[column] / sqrt(sum / width + 1e-5);
}

static void check_norm(struct simulated *device, int width, enum element element, bool fused) {
    uint64_t seed = 3;
    size_t count = (size_t)(ROWS * width);
    struct rms_norm_arguments a = {
        .in = simulated_noise_floats(device, count, 3, &seed),
        .row_scale = fused ? simulated_noise_floats(device, ROWS, 4, &seed) : 0,
        .bias = fused ? simulated_noise_floats(device, (size_t)width, 1, &seed) : 0,
        .residual = fused ? simulated_noise_floats(device, count, 2, &seed) : 0,
        .weight = simulated_noise_floats(device, (size_t)width, 2, &seed),
        .out = simulated_upload(device, NULL, count * 4),
        .out_scale = simulated_upload(device, NULL, ROWS * 4),
        .rows = ROWS,
        .width = width,
        .epsilon = 1e-5f,
        .out_element = (int)element,
    };
    const float *in = simulated_floats(device, a.in, count);
    float *before = malloc(count * sizeof *before);
    if (fused)
        memcpy(before, simulated_floats(device, a.residual, count), count * sizeof *before);
    simulated_launch(device, launch_config_find(KERNEL_RMS_NORM), ROWS, &a, sizeof a);
    double *wanted = calloc(count, sizeof *wanted), *got = calloc(count, sizeof *got);
    for (size_t i = 0; i < count; i++) {
        wanted[i] =
            norm_of(in, fused ? simulated_floats(device, a.row_scale, ROWS) : NULL,
                    fused ? simulated_floats(device, a.bias, (size_t)width) : NULL,
                    fused ? before : NULL, simulated_floats(device, a.weight, (size_t)width), width,
                    (int)i / width, (int)i % width);
        got[i] = simulated_element(simulated_view(device, a.out, count * 2), element, i);
    }
    cr_expect_lt(simulated_distance(wanted, got, count),
                 element == ELEMENT_F32   ? 1e-6
                 : element == ELEMENT_F16 ? 5e-4
                                          : 4e-3,
                 "width %d, element %d", width, element);
    free(before);
    free(wanted);
    free(got);
}

static void try_rms_norm(struct simulated *device) {
    static const int widths[] = {8, 576, 1001};
    for (int i = 0; i < 3; i++)
        for (int element = ELEMENT_F32; element <= ELEMENT_BF16; element++) {
            check_norm(device, widths[i], (enum element)element, false);
            check_norm(device, widths[i], (enum element)element, true);
        }
}

Test(kernel_rows, rms_norm) {
    simulated_each(try_rms_norm);
}

/* A row that fp16 cannot hold is divided by a power of two, and counted; its neighbour is not. */
static void try_fp16_rows_are_scaled_by_powers_of_two(struct simulated *device) {
    enum { WIDTH = 64 };
    float in[2 * WIDTH], weight[WIDTH];
    uint32_t none[COUNTER_COUNT] = {0};
    for (int i = 0; i < WIDTH; i++) {
        in[i] = in[WIDTH + i] = i % 2 ? 1.0f : -1.0f;
        weight[i] = 98304.0f;
    }
    in[0] = 0; /* smaller mean of squares: larger rows */
    struct rms_norm_arguments a = {
        .in = simulated_upload(device, in, sizeof in),
        .weight = simulated_upload(device, weight, sizeof weight),
        .out = simulated_upload(device, NULL, sizeof in),
        .out_scale = simulated_upload(device, NULL, 8),
        .counters = simulated_upload(device, none, sizeof none),
        .rows = 2,
        .width = WIDTH,
        .epsilon = 0,
        .out_element = ELEMENT_F16,
    };
    simulated_launch(device, launch_config_find(KERNEL_RMS_NORM), 2, &a, sizeof a);
    const float *scale = simulated_floats(device, a.out_scale, 2);
    const uint32_t *counters = simulated_view(device, a.counters, sizeof none);
    cr_expect_eq(scale[0], 4.0f);
    cr_expect_eq(scale[1], 4.0f);
    cr_expect_eq(counters[COUNTER_SCALED_ROWS], 2);
    cr_expect_eq(counters[COUNTER_OVERFLOWED_VALUES], 0);
    const void *out = simulated_view(device, a.out, 4 * WIDTH);
    cr_expect_eq(simulated_element(out, ELEMENT_F16, WIDTH), -24576.0);
    cr_expect_eq(simulated_element(out, ELEMENT_F16, 0), 0.0);
}

Test(kernel_rows, fp16_rows_are_scaled_by_powers_of_two) {
    simulated_each(try_fp16_rows_are_scaled_by_powers_of_two);
}

static void try_finish_adds_parts_scale_bias_and_residual(struct simulated *device) {
    uint64_t seed = 5;
    enum { COLUMNS = 77, COUNT = ROWS * COLUMNS, PARTS = 3 };
    struct finish_arguments a = {
        .parts = simulated_noise_floats(device, COUNT * PARTS, 1, &seed),
        .row_scale = simulated_noise_floats(device, ROWS, 2, &seed),
        .bias = simulated_noise_floats(device, COLUMNS, 1, &seed),
        .out = simulated_noise_floats(device, COUNT, 1, &seed),
        .rows = ROWS,
        .columns = COLUMNS,
        .split_count = PARTS,
        .accumulate = 1,
    };
    const float *parts = simulated_floats(device, a.parts, COUNT * PARTS);
    float wanted[COUNT];
    for (int i = 0; i < COUNT; i++) {
        float sum = (parts[i] + parts[COUNT + i]) + parts[2 * COUNT + i];
        float scaled = sum * simulated_floats(device, a.row_scale, ROWS)[i / COLUMNS];
        float biased = scaled + simulated_floats(device, a.bias, COLUMNS)[i % COLUMNS];
        wanted[i] = simulated_floats(device, a.out, COUNT)[i] + biased;
    }
    simulated_launch(device, launch_config_find(KERNEL_FINISH), 2, &a, sizeof a);
    cr_expect(memcmp(simulated_floats(device, a.out, COUNT), wanted, sizeof wanted) == 0);
}

Test(kernel_rows, finish_adds_parts_scale_bias_and_residual) {
    simulated_each(try_finish_adds_parts_scale_bias_and_residual);
}

static double gate_of(double x, int gate) {
    if (gate == KERNEL_GATE_SILU)
        return x / (1 + exp(-x));
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static void try_gated_activation(struct simulated *device) {
    for (int gate = KERNEL_GATE_SILU; gate <= KERNEL_GATE_GELU_TANH; gate++)
        for (int large = 0; large < 2; large++) {
            uint64_t seed = 9;
            enum { WIDTH = 333, COUNT = ROWS * WIDTH };
            struct gated_activation_arguments a = {
                .gate_up = simulated_noise_floats(device, 2 * COUNT, large ? 1000.0f : 6.0f, &seed),
                .out = simulated_upload(device, NULL, COUNT * 2),
                .out_scale = simulated_upload(device, NULL, ROWS * 4),
                .rows = ROWS,
                .width = WIDTH,
                .gate = gate,
                .out_element = ELEMENT_F16,
            };
            simulated_launch(device, launch_config_find(KERNEL_GATED_ACTIVATION), ROWS, &a,
                             sizeof a);
            const float *in = simulated_floats(device, a.gate_up, 2 * COUNT);
            const float *scale = simulated_floats(device, a.out_scale, ROWS);
            static double wanted[COUNT], got[COUNT];
            for (int i = 0; i < COUNT; i++) {
                const float *row = in + i / WIDTH * 2 * WIDTH;
                wanted[i] = gate_of((double)row[i % WIDTH], gate) * (double)row[WIDTH + i % WIDTH];
                got[i] = simulated_element(simulated_view(device, a.out, COUNT * 2), ELEMENT_F16,
                                           (size_t)i) *
                         (double)scale[i / WIDTH];
            }
            cr_expect_lt(simulated_distance(wanted, got, COUNT), 5e-4, "gate %d", gate);
            cr_expect(large ? scale[0] > 1 : scale[0] == 1);
        }
}

Test(kernel_rows, gated_activation) {
    simulated_each(try_gated_activation);
}

static void try_softcap(struct simulated *device) {
    enum { COUNT = 1000 };
    static float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(i - 500) * (i % 3 ? 0.01f : 1.0f);
    struct softcap_arguments a = {simulated_upload(device, values, sizeof values), COUNT, 30, 0};
    simulated_launch(device, launch_config_find(KERNEL_SOFTCAP), 1, &a, sizeof a);
    for (int i = 0; i < COUNT; i++) {
        double wanted = 30 * tanh((double)values[i] / 30);
        double got = (double)simulated_floats(device, a.values, COUNT)[i];
        cr_assert_float_eq(got, wanted, 2e-6 * fabs(wanted), "%d: %g, not %g", i, got, wanted);
    }
}

Test(kernel_rows, softcap) {
    simulated_each(try_softcap);
}

static void try_gather_rows(struct simulated *device) {
    enum { WORDS = 37 };
    uint32_t in[4][WORDS];
    float scale[4] = {1, 2, 4, 8};
    int32_t indices[2] = {3, 1};
    for (int i = 0; i < 4 * WORDS; i++)
        in[i / WORDS][i % WORDS] = (uint32_t)i;
    struct gather_rows_arguments a = {
        .in = simulated_upload(device, in, sizeof in),
        .indices = simulated_upload(device, indices, sizeof indices),
        .out = simulated_upload(device, NULL, 2 * sizeof in[0]),
        .scale_in = simulated_upload(device, scale, sizeof scale),
        .scale_out = simulated_upload(device, NULL, 8),
        .row_bytes = sizeof in[0],
        .rows = 2,
    };
    simulated_launch(device, launch_config_find(KERNEL_GATHER_ROWS), 1, &a, sizeof a);
    const uint32_t *out = simulated_view(device, a.out, 2 * sizeof in[0]);
    cr_expect(memcmp(out, in[3], sizeof in[0]) == 0);
    cr_expect(memcmp(out + WORDS, in[1], sizeof in[0]) == 0);
    cr_expect_eq(simulated_floats(device, a.scale_out, 2)[0], 8);
    cr_expect_eq(simulated_floats(device, a.scale_out, 2)[1], 2);
}

Test(kernel_rows, gather_rows) {
    simulated_each(try_gather_rows);
}

static void try_argmax(struct simulated *device) {
    enum { CASES = 7, COUNT = 700 };
    {
        static float values[CASES][COUNT];
        static const int32_t ids[CASES] = {699, 5, 0, 0, -1, -1, -1};
        for (int row = 0; row < CASES; row++)
            for (int i = 0; i < COUNT; i++)
                values[row][i] = row == 6 ? -INFINITY : -1.0f;
        values[0][699] = 2;
        values[1][5] = values[1][6] = values[1][300] = 1; /* a tie: the lowest */
        values[2][0] = -0.0f, values[2][1] = 0.0f;        /* −0 is 0 */
        values[3][1] = -INFINITY;                         /* rules out its index only */
        values[4][257] = NAN;
        values[5][3] = INFINITY;
        struct argmax_arguments a = {
            .values = simulated_upload(device, values, sizeof values),
            .ids = simulated_upload(device, NULL, sizeof ids),
            .finite = simulated_upload(device, NULL, sizeof ids),
            .stride = COUNT,
            .rows = CASES,
            .count = COUNT,
        };
        simulated_launch(device, launch_config_find(KERNEL_ARGMAX), CASES, &a, sizeof a);
        const int32_t *got = simulated_view(device, a.ids, sizeof ids);
        const int32_t *finite = simulated_view(device, a.finite, sizeof ids);
        for (int i = 0; i < CASES; i++) {
            cr_expect_eq(finite[i], ids[i] >= 0, "case %d", i);
            cr_expect(ids[i] < 0 || got[i] == ids[i], "case %d: %d", i, got[i]);
        }
    }
}

Test(kernel_rows, argmax) {
    simulated_each(try_argmax);
}
