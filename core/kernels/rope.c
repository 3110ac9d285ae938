/* The rotary embedding. Angles are reduced and their sine and cosine summed in double by our own
 * series: the C library's differ between CPUs. It is too small a part of a step to have variants.
 */
#include "core/kernels/kernels.h"

void rope_adjacent(float *head, const float *cosines, const float *sines, int pair_count) {
    for (int i = 0; i < pair_count; i++) {
        float x = head[2 * i], y = head[2 * i + 1];
        head[2 * i] = x * cosines[i] - y * sines[i];
        head[2 * i + 1] = x * sines[i] + y * cosines[i];
    }
}

void rope_halves(float *head, const float *cosines, const float *sines, int pair_count) {
    for (int i = 0; i < pair_count; i++) {
        float x = head[i], y = head[i + pair_count];
        head[i] = x * cosines[i] - y * sines[i];
        head[i + pair_count] = x * sines[i] + y * cosines[i];
    }
}

/* Taylor series, enough terms for a double on |x| ≤ π/4; coefficients from the highest
 * power down. */
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

void rope_table(const double *frequencies, int pair_count, double magnitude, int position,
                float *cosines, float *sines) {
    for (int i = 0; i < pair_count; i++) {
        double sine, cosine;
        sine_and_cosine((double)position * frequencies[i], &sine, &cosine);
        cosines[i] = (float)(cosine * magnitude);
        sines[i] = (float)(sine * magnitude);
    }
}
