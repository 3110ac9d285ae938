/* Choice of the kernels' variants from the CPU's features: they alone decide, never timing, so the
 * same machine always gives the same bits. */
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

void kernels_add_int8(struct kernels *kernels, const struct cpu_features *features) {
    size_t i = 0;
    while (!linear_int8_variant_at(i)->available(features))
        i++;
    kernels->linear_int8 = linear_int8_variant_at(i);
    snprintf(kernels->numerics, sizeof kernels->numerics, "cpu-%s/int8-%s", kernels->linear->name,
             kernels->linear_int8->name);
}
