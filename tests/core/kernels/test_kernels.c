/* Which variants a machine gets: from its features alone, and as --isa narrows them. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/kernels/kernels.h"

/* A Xeon with AMX; its bf16 dot product of AVX-512 is slower than fp32. */
static const struct cpu_features tiles = {
    .avx2 = true,
    .avx_vnni = true,
    .avx512 = true,
    .avx512_vnni = true,
    .avx512_bf16 = true,
    .amx_bf16 = true,
    .amx_int8 = true,
};

static void expect(struct cpu_features features, const char *matmul, const char *elementwise) {
    struct kernels kernels = kernels_select(&features);
    cr_expect_str_eq(kernels.linear->name, matmul);
    cr_expect_str_eq(kernels.attention->name, matmul);
    cr_expect_eq(kernels.attention->unit, kernels.linear->unit);
    cr_expect_str_eq(kernels.elementwise->name, elementwise);
    cr_expect_str_eq(kernels.numerics + strlen("cpu-"), matmul);
}

Test(kernels, tiles_where_there_are_any) {
    expect(tiles, "amx-bf16", "avx512");
}

Test(kernels, masks_reach_every_narrower_path) {
    static const char *const names[ISA_COUNT] = {"scalar", "avx2", "avx512", "amx-bf16"};
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        struct cpu_features features = tiles;
        cpu_features_mask(&features, (enum isa)isa);
        expect(features, names[isa], isa == ISA_AMX ? "avx512" : names[isa]);
    }
}

/* As detection says it when the kernel keeps tile data from the program. */
Test(kernels, refused_tiles_leave_fp32) {
    struct cpu_features features = tiles;
    features.amx_bf16 = features.amx_int8 = false;
    expect(features, "avx512", "avx512");
}

Test(kernels, the_dot_product_where_it_is_fast) {
    struct cpu_features features = tiles;
    features.amx_bf16 = features.amx_int8 = false;
    features.avx512_bf16_fast = true;
    expect(features, "avx512-bf16", "avx512");
}

static void expect_int8(struct cpu_features features, const char *numerics) {
    struct kernels kernels = kernels_select(&features);
    kernels_add_int8(&kernels, &features);
    cr_expect_str_eq(kernels.numerics, numerics);
}

Test(kernels, int8_as_narrow_as_the_machine) {
    struct cpu_features features = tiles;
    features.amx_bf16 = features.amx_int8 = false;
    expect_int8(features, "cpu-avx512/int8-avx512-vnni");
    features.avx512_vnni = features.avx_vnni = false;
    expect_int8(features, "cpu-avx512/int8-avx2");
    features = tiles;
    cpu_features_mask(&features, ISA_AVX2);
    expect_int8(features, "cpu-avx2/int8-avx-vnni");
    features.avx_vnni = false;
    expect_int8(features, "cpu-avx2/int8-avx2");
    cpu_features_mask(&features, ISA_SCALAR);
    expect_int8(features, "cpu-scalar/int8-scalar");
}
