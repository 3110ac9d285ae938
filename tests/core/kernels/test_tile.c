/* Tiles: every type of the table, packed and unpacked by every variant this CPU has, gives the
 * reference unpack's values to the bit (bf16: rounded to nearest even), touches no byte outside,
 * and costs at most a quarter more than the file. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cpu_features.h"
#include "core/kernels/kernels.h"
#include "core/kernels/tile.h"
#include "core/kernels/tile_layout.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/guard_pages.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/random_tensor.h"

static struct tile_set pack(const struct tensor *const *parts, int part_count) {
    struct tile_set set;
    struct error error;
    cr_assert_eq(tile_set_create(&set, parts, part_count, &error), STATUS_OK);
    for (int b = 0; b < set.block_count; b++)
        tile_set_pack_block(&set, parts, b);
    return set;
}

static float panel_value(const struct linear_kernels *kernels, const void *panel, int k,
                         int column) {
    if (kernels->unit == UNIT_F32)
        return ((const float *)panel)[k * PANEL_COLUMNS + column];
    return quant_type_bf16_to_f32(
        ((const uint16_t *)panel)[(k / 2 * PANEL_COLUMNS + column) * 2 + k % 2]);
}

static float rounded(const struct linear_kernels *kernels, float value) {
    return kernels->unit == UNIT_F32 ? value
                                     : quant_type_bf16_to_f32(quant_type_f32_to_bf16(value));
}

/* reference: [64][in] of this block, zeros for columns behind the last. */
static void check_block(const struct linear_kernels *kernels, const struct tile_set *set, int block,
                        const float *reference, const char *type_name) {
    struct tile_block place = tile_set_block(set, block);
    for (int first = 0; first < set->in; first += 256) {
        int count = set->in - first < 256 ? set->in - first : 256;
        struct guard_pages panel =
            guard_pages_create(linear_row_bytes(kernels->unit, count) * PANEL_COLUMNS);
        kernels->unpack_panel(place.tile, place.block, first, count, panel.bytes);
        for (int k = 0; k < (count + 1) / 2 * 2; k++)
            for (int c = 0; c < PANEL_COLUMNS; c++) {
                float expected = k < count ? reference[c * set->in + first + k] : 0;
                float found = panel_value(kernels, panel.bytes, k, c);
                cr_assert(found == rounded(kernels, expected),
                          "%s %s block %d k %d column %d: %a, not %a", kernels->name, type_name,
                          block, first + k, c, found, rounded(kernels, expected));
            }
        guard_pages_destroy(&panel);
    }
}

static void check_type(const struct linear_kernels *kernels, const struct quant_type *type, int in,
                       int out) {
    struct tensor tensor = random_tensor_create(type, in, out, (uint64_t)(in * 1000 + out));
    const struct tensor *parts[] = {&tensor};
    struct tile_set set = pack(parts, 1);
    float *reference = calloc((size_t)PANEL_COLUMNS * in, sizeof *reference);
    for (int b = 0; b < set.block_count; b++) {
        memset(reference, 0, (size_t)PANEL_COLUMNS * in * sizeof *reference);
        for (int c = 0; c < PANEL_COLUMNS && b * PANEL_COLUMNS + c < out; c++)
            tensor_unpack_row(&tensor, b * PANEL_COLUMNS + c, reference + c * in);
        check_block(kernels, &set, b, reference, type->name);
    }
    free(reference);
    tile_set_destroy(&set);
    random_tensor_destroy(&tensor);
}

Test(tile, every_variant_unpacks_every_type_as_the_reference_does) {
    static const int outs[] = {1, 63, 64, 65, 130};
    struct cpu_features features = cpu_features_detect();
    for (size_t v = 0; v < kernel_variants_linear_count(); v++) {
        const struct linear_kernels *kernels = kernel_variants_linear_at(v);
        if (!kernels->available(&features))
            continue;
        for (size_t t = 0; t < quant_type_count(); t++) {
            const struct quant_type *type = quant_type_at(t);
            int block = (int)type->block_values;
            for (size_t o = 0; o < sizeof outs / sizeof outs[0]; o++)
                check_type(kernels, type, block, outs[o]);
            check_type(kernels, type, block == 256 ? 768 : 608, 70);
            if (block == 1)
                check_type(kernels, type, 259, 70);
        }
    }
}

Test(tile, every_type_has_a_format_with_the_same_block) {
    for (size_t t = 0; t < quant_type_count(); t++) {
        const struct quant_type *type = quant_type_at(t);
        const struct tile_format *format = tile_format_find(type->id);
        cr_assert(format != NULL, "%s has no tile format", type->name);
        if (type->block_values > 1)
            cr_assert_eq(format->chunk, (int)type->block_values, "%s", type->name);
        struct tile_offsets at = tile_format_offsets(format);
        cr_assert_eq((at.min | at.group_scale | at.group_min | at.low | at.high | at.end) % 64, 0,
                     "%s", type->name);
    }
}

Test(tile, tiles_cost_at_most_a_quarter_more_than_the_file) {
    for (size_t t = 0; t < quant_type_count(); t++) {
        const struct quant_type *type = quant_type_at(t);
        struct tensor tensor = random_tensor_create(type, 768, 192, t);
        const struct tensor *parts[] = {&tensor};
        cr_expect(tile_bytes(parts, 1) * 4 <= tensor.byte_count * 5, "%s: %llu for %zu", type->name,
                  (unsigned long long)tile_bytes(parts, 1), tensor.byte_count);
        random_tensor_destroy(&tensor);
    }
}

Test(tile, parts_of_different_types_lie_side_by_side) {
    struct tensor q = random_tensor_create(quant_type_find(QUANT_Q4_1), 256, 100, 1);
    struct tensor k = random_tensor_create(quant_type_find(QUANT_Q8_0), 256, 64, 2);
    struct tensor v = random_tensor_create(quant_type_find(QUANT_Q6_K), 256, 10, 3);
    const struct tensor *parts[] = {&q, &k, &v};
    struct tile_set set = pack(parts, 3);
    static const int firsts[] = {0, 64, 100, 164}, counts[] = {64, 36, 64, 10},
                     blocks[] = {0, 1, 0, 0};
    cr_assert_eq(set.block_count, 4);
    cr_assert_eq(set.out, 174);
    cr_assert_eq(set.in, 256);
    cr_assert_eq(set.memory_bytes, tile_bytes(parts, 3));
    for (int b = 0; b < set.block_count; b++) {
        struct tile_block place = tile_set_block(&set, b);
        cr_expect_eq(place.out_first, firsts[b]);
        cr_expect_eq(place.out_count, counts[b]);
        cr_expect_eq(place.block, blocks[b]);
        cr_expect_eq((uintptr_t)place.tile->bytes % 64, 0);
    }
    tile_set_destroy(&set);
    random_tensor_destroy(&q);
    random_tensor_destroy(&k);
    random_tensor_destroy(&v);
}

Test(tile, packing_a_block_touches_that_block_only) {
    struct tensor tensor = random_tensor_create(quant_type_find(QUANT_Q5_K), 512, 192, 7);
    const struct tensor *parts[] = {&tensor};
    struct tile_set set = pack(parts, 1), again;
    struct error error;
    cr_assert_eq(tile_set_create(&again, parts, 1, &error), STATUS_OK);
    memset(again.memory, 0x5a, again.memory_bytes);
    tile_set_pack_block(&again, parts, 1);
    size_t stride = set.memory_bytes / 3;
    const uint8_t *bytes = again.memory;
    for (size_t i = 0; i < again.memory_bytes; i++) {
        bool inside = i / stride == 1;
        cr_assert_eq(bytes[i], inside ? ((const uint8_t *)set.memory)[i] : 0x5a);
    }
    tile_set_destroy(&set);
    tile_set_destroy(&again);
    random_tensor_destroy(&tensor);
}

Test(tile, parts_with_different_rows_are_refused_by_name) {
    struct tensor a = random_tensor_create(quant_type_find(QUANT_Q8_0), 64, 8, 1);
    struct tensor b = random_tensor_create(quant_type_find(QUANT_Q8_0), 96, 8, 2);
    a.name = "blk.0.attn_q.weight";
    b.name = "blk.0.attn_k.weight";
    const struct tensor *parts[] = {&a, &b};
    struct tile_set set;
    struct error error;
    cr_assert_eq(tile_set_create(&set, parts, 2, &error), STATUS_UNSUPPORTED);
    cr_expect_str_eq(error.text, "tensor 'blk.0.attn_k.weight' has rows of 96 values, "
                                 "'blk.0.attn_q.weight' beside it has 64");
    random_tensor_destroy(&a);
    random_tensor_destroy(&b);
}

Test(tile, every_failing_allocation_is_an_error_and_leaves_nothing_behind) {
    struct tensor tensor = random_tensor_create(quant_type_find(QUANT_Q4_0), 64, 64, 1);
    const struct tensor *parts[] = {&tensor};
    struct tile_set set;
    struct error error;
    int failures = 0;
    for (int n = 1; n < 100; n++) {
        failing_malloc_arm(n);
        enum status status = tile_set_create(&set, parts, 1, &error);
        bool failed = failing_malloc_disarm();
        cr_assert_eq(status, failed ? STATUS_NO_MEMORY : STATUS_OK);
        cr_assert(!failed || (set.memory == NULL && set.tiles == NULL));
        if (!failed)
            break;
        failures++;
    }
    cr_expect_geq(failures, 2);
    tile_set_destroy(&set);
    random_tensor_destroy(&tensor);
}

static uint64_t hash_more(uint64_t hash, const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

/* Packed weights are kept between runs of different versions of the program: when this hash
 * changes, so must TILE_LAYOUT_VERSION. */
Test(tile, the_layout_is_that_of_its_version) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < quant_type_count(); i++) {
        struct tensor tensor = random_tensor_create(quant_type_at(i), 512, 70, 5);
        const struct tensor *parts[] = {&tensor};
        struct tile_set set = pack(parts, 1);
        hash = hash_more(hash, set.memory, set.memory_bytes);
        tile_set_destroy(&set);
        random_tensor_destroy(&tensor);
    }
    cr_expect_eq(TILE_LAYOUT_VERSION, 1);
    cr_expect_eq(hash, UINT64_C(0xdf6a46f1cb200b30), "the hash is %#llx", (unsigned long long)hash);
}

Test(tile, a_set_in_memory_of_the_callers_is_the_same_and_leaves_it) {
    struct tensor tensor = random_tensor_create(quant_type_find(QUANT_Q4_K), 256, 100, 3);
    const struct tensor *parts[] = {&tensor};
    struct tile_set set = pack(parts, 1), other;
    struct error error;
    uint8_t *memory = aligned_alloc(64, set.memory_bytes);
    cr_assert_eq(tile_set_create_in(&other, parts, 1, memory, &error), STATUS_OK);
    for (int b = 0; b < other.block_count; b++)
        tile_set_pack_block(&other, parts, b);
    tile_set_destroy(&other);
    cr_expect_eq(memcmp(memory, set.memory, set.memory_bytes), 0);
    free(memory);
    tile_set_destroy(&set);
    random_tensor_destroy(&tensor);
}
