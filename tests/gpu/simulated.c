/* What both devices of the kernel tests share. */
#include "tests/gpu/simulated.h"

#include <math.h>

#include "core/weights/quant_type.h"

float simulated_noise(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(*seed >> 32) * 0x1p-31f;
}

double simulated_distance(const double *wanted, const double *got, size_t count) {
    double difference = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        difference += (got[i] - wanted[i]) * (got[i] - wanted[i]);
        size += wanted[i] * wanted[i];
    }
    return size > 0 ? sqrt(difference / size) : sqrt(difference);
}

double simulated_element(const void *array, enum element element, size_t index) {
    if (element == ELEMENT_F32)
        return (double)((const float *)array)[index];
    uint16_t bits = ((const uint16_t *)array)[index];
    return (double)(element == ELEMENT_F16 ? quant_type_f16_to_f32(bits)
                                           : quant_type_bf16_to_f32(bits));
}

void simulated_each(void (*test)(struct simulated *device)) {
    static const int capabilities[] = {61, 75, 80};
    for (size_t i = 0; i < sizeof capabilities / sizeof capabilities[0]; i++) {
        struct simulated device;
        if (!simulated_has(capabilities[i]))
            continue;
        simulated_create(&device, capabilities[i]);
        test(&device);
        simulated_destroy(&device);
    }
}

float *simulated_floats(struct simulated *device, uint64_t address, size_t count) {
    return simulated_view(device, address, count * sizeof(float));
}

uint64_t simulated_noise_floats(struct simulated *device, size_t count, float size,
                                uint64_t *seed) {
    uint64_t address = simulated_upload(device, NULL, count * sizeof(float));
    float *view = simulated_floats(device, address, count);
    for (size_t i = 0; i < count; i++)
        view[i] = size * simulated_noise(seed);
    return address;
}
