/* The rotary embedding against the C library in long double, far out too, and both pairings. */
#include <criterion/criterion.h>
#include <math.h>

#include "core/kernels/kernels.h"

Test(rope, table_is_the_nearest_float) {
    static const int positions[] = {0, 1, 2, 3, 100, 4095, 32768, 131071, 1000000};
    for (size_t p = 0; p < sizeof positions / sizeof positions[0]; p++) {
        double frequencies[32];
        float cosines[32], sines[32];
        for (int i = 0; i < 32; i++)
            frequencies[i] = pow(10000, -i / 32.0);
        rope_table(frequencies, 32, 1, positions[p], cosines, sines);
        for (int i = 0; i < 32; i++) {
            double angle = positions[p] * frequencies[i];
            cr_expect(fabs(cosines[i] - cos(angle)) < 6.0e-8, "cos %.17g: %.9g", angle, cosines[i]);
            cr_expect(fabs(sines[i] - sin(angle)) < 6.0e-8, "sin %.17g: %.9g", angle, sines[i]);
        }
    }
}

Test(rope, magnitude_is_a_factor) {
    double frequency = 0.5;
    float cosine, sine;
    rope_table(&frequency, 1, 1.25, 4, &cosine, &sine);
    cr_expect_float_eq(cosine, 1.25 * cos(2), 1e-7);
    cr_expect_float_eq(sine, 1.25 * sin(2), 1e-7);
}

Test(rope, pairings_turn_their_own_pairs) {
    float cosines[] = {0, 1}, sines[] = {1, 0};
    float adjacent[] = {1, 2, 3, 4}, halves[] = {1, 2, 3, 4};
    rope_adjacent(adjacent, cosines, sines, 2);
    rope_halves(halves, cosines, sines, 2);
    cr_expect_arr_eq(adjacent, ((float[]){-2, 1, 3, 4}), sizeof adjacent);
    cr_expect_arr_eq(halves, ((float[]){-3, 2, 1, 4}), sizeof halves);
}
