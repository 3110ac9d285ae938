/* Choice of the kernels' variants from the CPU's features, and the rotary embedding, which is too
 * small a part of a step to have variants. The choice depends on the features alone, never on
 * timing: the same machine always gives the same bits. */
#include "core/kernels/kernels.h"

#include <assert.h>
#include <stdio.h>

static const struct linear_kernels *best_linear(const struct cpu_features *features) {
    for (size_t i = 0; i < linear_variant_count(); i++)
        if (linear_variant_at(i)->available(features))
            return linear_variant_at(i);
    assert(!"the scalar variant is always available");
    return NULL;
}

static const struct attention_kernels *best_attention(const struct cpu_features *features,
                                                      enum unit unit) {
    for (size_t i = 0; i < attention_variant_count(); i++) {
        const struct attention_kernels *variant = attention_variant_at(i);
        if (variant->unit == unit && variant->available(features))
            return variant;
    }
    assert(!"every unit has an attention variant wherever it has a linear one");
    return NULL;
}

static const struct elementwise_kernels *best_elementwise(const struct cpu_features *features) {
    for (size_t i = 0; i < elementwise_variant_count(); i++)
        if (elementwise_variant_at(i)->available(features))
            return elementwise_variant_at(i);
    assert(!"the scalar variant is always available");
    return NULL;
}

struct kernels kernels_select(const struct cpu_features *features) {
    struct kernels kernels = {.linear = best_linear(features)};
    kernels.attention = best_attention(features, kernels.linear->unit);
    kernels.elementwise = best_elementwise(features);
    snprintf(kernels.numerics, sizeof kernels.numerics, "cpu-%s", kernels.linear->name);
    return kernels;
}

void kernels_rope_adjacent(float *head, const float *cosines, const float *sines, int pair_count) {
    for (int i = 0; i < pair_count; i++) {
        float x = head[2 * i], y = head[2 * i + 1];
        head[2 * i] = x * cosines[i] - y * sines[i];
        head[2 * i + 1] = x * sines[i] + y * cosines[i];
    }
}

void kernels_rope_halves(float *head, const float *cosines, const float *sines, int pair_count) {
    for (int i = 0; i < pair_count; i++) {
        float x = head[i], y = head[i + pair_count];
        head[i] = x * cosines[i] - y * sines[i];
        head[i + pair_count] = x * sines[i] + y * cosines[i];
    }
}

/* Taylor series, enough terms for a double on |x| ≤ π/4; coefficients from the highest power down.
 */
static double sine_series(double x) {
    static const double factors[] = {
        1 / 355687428096000.0, -1 / 1307674368000.0, 1 / 6227020800.0, -1 / 39916800.0,
        1 / 362880.0,          -1 / 5040.0,          1 / 120.0,        -1 / 6.0};
    double square = x * x, sum = 0;
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++)
        sum = sum * square + factors[i];
    return x + x * square * sum;
}

static double cosine_series(double x) {
    static const double factors[] = {
        1 / 20922789888000.0, -1 / 87178291200.0, 1 / 479001600.0, -1 / 3628800.0,
        1 / 40320.0,          -1 / 720.0,         1 / 24.0,        -1 / 2.0};
    double square = x * x, sum = 0;
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++)
        sum = sum * square + factors[i];
    return 1 + square * sum;
}

/* π/2 as 33 bits + 33 bits + rest: products with a quarter count below 2^20 are exact. */
static void sine_and_cosine(double angle, double *sine, double *cosine) {
    static const double high = 0x1.921fb544p+0, middle = 0x1.0b4611a6p-34,
                        low = 0x1.3198a2e037073p-69;
    static const double quarters_per_radian = 0x1.45f306dc9c883p-1;
    double scaled = angle * quarters_per_radian;
    long long quarter = (long long)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    double count = (double)quarter;
    double rest = ((angle - count * high) - count * middle) - count * low;
    double s = sine_series(rest), c = cosine_series(rest);
    switch (quarter & 3) {
    case 0:
        *sine = s, *cosine = c;
        break;
    case 1:
        *sine = c, *cosine = -s;
        break;
    case 2:
        *sine = -s, *cosine = -c;
        break;
    default:
        *sine = -c, *cosine = s;
        break;
    }
}

void kernels_rope_table(const double *frequencies, int pair_count, double magnitude, int position,
                        float *cosines, float *sines) {
    for (int i = 0; i < pair_count; i++) {
        double sine, cosine;
        sine_and_cosine((double)position * frequencies[i], &sine, &cosine);
        cosines[i] = (float)(cosine * magnitude);
        sines[i] = (float)(sine * magnitude);
    }
}
