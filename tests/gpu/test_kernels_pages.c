/* kv_write against double: q in place, k and v as the pages hold them. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/weights/quant_type.h"
#include "tests/gpu/simulated.h"

enum { ROWS = 3, HEADS = 4, KV_HEADS = 2, ALL = HEADS + 2 * KV_HEADS, PAGES = 3 };

struct setting {
    enum kv_element kv;
    int head_dim;
    int rope_dims;
    enum kernel_rope rope;
    bool norms;
};

static double norm_weight(int d) {
    return 0.5 + 0.01 * d;
}

static double angle(int position, int pair) {
    return position * pow(100.0, -0.1 * pair);
}

/* One head of one row: what the kernel must make of `in`. */
static void expect_head(const struct setting *s, const float *in, int position, bool rotated,
                        double *out) {
    int pairs = s->rope_dims / 2;
    double sum = 0;
    for (int d = 0; d < s->head_dim; d++)
        sum += (double)in[d] * (double)in[d];
    for (int d = 0; d < s->head_dim; d++)
        out[d] = rotated && s->norms
                     ? (double)in[d] / sqrt(sum / s->head_dim + 1e-6) * norm_weight(d)
                     : (double)in[d];
    for (int i = 0; i < pairs && rotated && s->rope != KERNEL_ROPE_NONE; i++) {
        int first = s->rope == KERNEL_ROPE_HALVES ? i : 2 * i;
        int second = s->rope == KERNEL_ROPE_HALVES ? i + pairs : 2 * i + 1;
        double a = out[first], b = out[second], t = angle(position, i);
        out[first] = a * cos(t) - b * sin(t);
        out[second] = a * sin(t) + b * cos(t);
    }
}

static double e4m3_value(int byte) {
    int exponent = byte >> 3 & 15, mantissa = byte & 7;
    double size = exponent ? ldexp(1 + mantissa / 8.0, exponent - 7) : ldexp((double)mantissa, -9);
    return byte & 128 ? -size : size;
}

static double held(const struct setting *s, const uint8_t *share, int place, bool is_value, int d) {
    size_t at = (size_t)(((is_value ? KV_TILE : 0) + place) * s->head_dim + d);
    const float *scales = (const float *)(const void *)(share + 2 * KV_TILE * s->head_dim);
    double scale = (double)scales[(is_value ? KV_TILE : 0) + place];
    switch (s->kv) {
    case KV_ELEMENT_F16:
        return simulated_element(share, ELEMENT_F16, at);
    case KV_ELEMENT_BF16:
        return simulated_element(share, ELEMENT_BF16, at);
    case KV_ELEMENT_INT8:
        return (int8_t)share[at] * scale;
    case KV_ELEMENT_E4M3:
        return e4m3_value(share[at]) * scale;
    }
    return NAN;
}

/* The largest error of an element of a vector with this largest size. */
static double step_of(const struct setting *s, double most, double value) {
    switch (s->kv) {
    case KV_ELEMENT_F16:
        return fabs(value) * 0x1p-11 + 1e-6;
    case KV_ELEMENT_BF16:
        return fabs(value) * 0x1p-8 + 1e-6;
    case KV_ELEMENT_INT8:
        return most / 254 * 1.001 + 1e-6;
    case KV_ELEMENT_E4M3:
        return fabs(value) * 0x1p-4 * 1.001 + most / 448 * 0x1p-10 + 1e-6;
    }
    return 0;
}

static void check(struct simulated *device, const struct setting *s) {
    static const int positions[ROWS] = {5, 6, 100};
    static const int64_t slots[ROWS] = {2 * KV_TILE + 5, 63, -1};
    size_t row = (size_t)(ALL * s->head_dim), share = kv_share_bytes(s->kv, s->head_dim);
    float *in = malloc(ROWS * row * sizeof *in), *weight = malloc((size_t)s->head_dim * 4);
    float *table = malloc(101 * (size_t)s->rope_dims * sizeof *table);
    uint64_t seed = 7;
    for (size_t i = 0; i < ROWS * row; i++)
        in[i] = 3 * simulated_noise(&seed);
    for (int d = 0; d < s->head_dim; d++)
        weight[d] = (float)norm_weight(d);
    for (int i = 0; i < 101 * s->rope_dims / 2; i++) {
        double t = angle(i / (s->rope_dims / 2), i % (s->rope_dims / 2));
        table[2 * i] = (float)cos(t);
        table[2 * i + 1] = (float)sin(t);
    }
    struct kv_write_arguments a = {
        .qkv = simulated_upload(device, in, ROWS * row * sizeof *in),
        .q_norm = s->norms ? simulated_upload(device, weight, (size_t)s->head_dim * 4) : 0,
        .rope_table = simulated_upload(device, table, 101 * (size_t)s->rope_dims * sizeof *table),
        .positions = simulated_upload(device, positions, sizeof positions),
        .slots = simulated_upload(device, slots, sizeof slots),
        .kv = simulated_upload(device, NULL, PAGES * KV_HEADS * share),
        .page_stride = (int64_t)(KV_HEADS * share),
        .head_stride = (int64_t)share,
        .rows = ROWS,
        .heads = HEADS,
        .kv_heads = KV_HEADS,
        .head_dim = s->head_dim,
        .rope_dims = s->rope_dims,
        .rope = (int)s->rope,
        .norm_epsilon = 1e-6f,
        .kv_element = (int)s->kv,
    };
    a.k_norm = a.q_norm;
    simulated_launch(device, launch_config_find(KERNEL_KV_WRITE), 3, &a, sizeof a);
    const float *out = simulated_view(device, a.qkv, ROWS * row * sizeof *out);
    const uint8_t *pool = simulated_view(device, a.kv, PAGES * KV_HEADS * share);
    for (int i = 0; i < ROWS * ALL; i++) {
        int r = i / ALL, head = i % ALL;
        double wanted[256], most = 0;
        bool is_value = head >= HEADS + KV_HEADS;
        expect_head(s, in + (size_t)i * (size_t)s->head_dim, positions[r], !is_value, wanted);
        for (int d = 0; d < s->head_dim; d++)
            most = fmax(most, fabs(wanted[d]));
        for (int d = 0; d < s->head_dim; d++) {
            double got = head < HEADS ? (double)out[i * s->head_dim + d] : wanted[d];
            double step = 1e-5;
            if (head >= HEADS && slots[r] >= 0) {
                int kv_head = (head - HEADS) % KV_HEADS;
                got = held(s,
                           pool + ((size_t)slots[r] / KV_TILE * KV_HEADS + (size_t)kv_head) * share,
                           (int)slots[r] % KV_TILE, is_value, d);
                step = step_of(s, most, wanted[d]);
            }
            cr_assert(fabs(got - wanted[d]) <= step, "kv %d row %d head %d at %d: %g, not %g",
                      s->kv, r, head, d, got, wanted[d]);
        }
    }
    free(in);
    free(weight);
    free(table);
}

static void try_kv_write(struct simulated *device) {
    static const struct setting settings[] = {
        {KV_ELEMENT_F16, 64, 64, KERNEL_ROPE_HALVES, false},
        {KV_ELEMENT_BF16, 128, 128, KERNEL_ROPE_ADJACENT, false},
        {KV_ELEMENT_INT8, 80, 32, KERNEL_ROPE_HALVES, true},
        {KV_ELEMENT_E4M3, 256, 256, KERNEL_ROPE_HALVES, true},
        {KV_ELEMENT_INT8, 96, 96, KERNEL_ROPE_NONE, false},
    };
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        check(device, &settings[i]);
}

Test(kernel_pages, kv_write) {
    simulated_each(try_kv_write);
}

/* All 256 bytes of e4m3: what is written for a value is the nearest, even on ties; NaN is marked.
 */
static void try_e4m3(struct simulated *device) {
    enum { DIM = 64, COUNT = 128 };
    {
        static float in[COUNT][3 * DIM];
        int64_t slots[COUNT];
        uint64_t seed = 2;
        for (int r = 0; r < COUNT; r++) {
            slots[r] = r;
            for (int d = 0; d < 3 * DIM; d++)
                in[r][d] = ldexpf(simulated_noise(&seed), d % 20 - 11);
            in[r][DIM] = in[r][2 * DIM] = 448; /* the scale is 1 */
        }
        in[7][DIM + 3] = INFINITY;
        size_t share = kv_share_bytes(KV_ELEMENT_E4M3, DIM);
        struct kv_write_arguments a = {
            .qkv = simulated_upload(device, in, sizeof in),
            .positions = simulated_upload(device, slots, sizeof slots),
            .slots = simulated_upload(device, slots, sizeof slots),
            .kv = simulated_upload(device, NULL, 2 * share),
            .page_stride = (int64_t)share,
            .head_stride = (int64_t)share,
            .rows = COUNT,
            .heads = 1,
            .kv_heads = 1,
            .head_dim = DIM,
            .kv_element = KV_ELEMENT_E4M3,
        };
        simulated_launch(device, launch_config_find(KERNEL_KV_WRITE), 7, &a, sizeof a);
        const uint8_t *pool = simulated_view(device, a.kv, 2 * share);
        const float *scales = (const float *)(const void *)(pool + 2 * KV_TILE * DIM);
        for (int r = 0; r < KV_TILE; r++)
            for (int d = 0; d < DIM && r != 7; d++) {
                double value = (double)in[r][DIM + d];
                int byte = pool[r * DIM + d], size = byte & 127;
                double error = fabs(e4m3_value(byte) - value);
                double down = size ? fabs(e4m3_value(size - 1) - fabs(value)) : INFINITY;
                double up = size < 126 ? fabs(e4m3_value(size + 1) - fabs(value)) : INFINITY;
                cr_assert(error <= down && error <= up, "%g became %g", value, e4m3_value(byte));
            }
        cr_expect(isnan(scales[7]));
        cr_expect_eq(scales[8], 1.0f);
    }
}

Test(kernel_pages, e4m3_is_rounded_to_the_nearest) {
    simulated_each(try_e4m3);
}
