/* The layout of KV pages: where a token's dimensions lie, how they are rounded, what is cleared. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels/attention_page.h"
#include "core/weights/quant_type.h"
#include "tests/support/random_tensor.h"

enum { DIM = 20, PADDED = 32 };

static void fill(float *keys, float *values, int count, uint64_t seed) {
    for (int i = 0; i < count * DIM; i++) {
        keys[i] = random_tensor_float(&seed);
        values[i] = random_tensor_float(&seed);
    }
}

static void *make_page(enum attention_page_type type) {
    void *page = aligned_alloc(64, attention_page_bytes(type, DIM));
    memset(page, 0xff, attention_page_bytes(type, DIM));
    return page;
}

struct panels {
    const uint16_t *keys;
    const uint16_t *values;
};

static struct panels read_page(enum attention_page_type type, const void *page, uint16_t *scratch) {
    const struct attention_kernels *scalar = attention_variant_at(attention_variant_count() - 1);
    return (struct panels){
        attention_page_keys(scalar, type, DIM, page, scratch),
        attention_page_values(scalar, type, DIM, page, scratch + PADDED * PANEL_COLUMNS)};
}

static float key_at(struct panels panels, int slot, int d) {
    return quant_type_bf16_to_f32(panels.keys[(d / 2 * PANEL_COLUMNS + slot) * 2 + d % 2]);
}

static float value_at(struct panels panels, int slot, int d) {
    return quant_type_bf16_to_f32(panels.values[(slot / 2 * PADDED + d) * 2 + slot % 2]);
}

static void write_both(enum attention_page_type type, void *page, const float *keys,
                       const float *values, int split, int count) {
    struct attention_page_tokens first = {keys, values, DIM, 0, split};
    struct attention_page_tokens second = {keys + split * DIM, values + split * DIM, DIM, split,
                                           count - split};
    attention_page_write(type, DIM, page, &first);
    attention_page_write(type, DIM, page, &second);
}

static void check_page(enum attention_page_type type) {
    enum { COUNT = 37 };
    float keys[COUNT * DIM], values[COUNT * DIM];
    fill(keys, values, COUNT, 1);
    void *page = make_page(type);
    uint16_t *scratch = aligned_alloc(64, attention_page_bytes(ATTENTION_PAGE_BF16, DIM));
    write_both(type, page, keys, values, 11, COUNT);
    struct panels panels = read_page(type, page, scratch);
    double allowed = type == ATTENTION_PAGE_INT8 ? 1.0 / 120 : 1.0 / 500;
    for (int slot = 0; slot < PANEL_COLUMNS; slot++)
        for (int d = 0; d < PADDED; d++) {
            bool real = slot < COUNT && d < DIM;
            float key = real ? keys[slot * DIM + d] : 0, value = real ? values[slot * DIM + d] : 0;
            cr_assert(fabs(key_at(panels, slot, d) - key) <= (real ? allowed : 0), "%d %d", slot,
                      d);
            cr_assert(fabs(value_at(panels, slot, d) - value) <= (real ? allowed : 0), "%d %d",
                      slot, d);
        }
    free(page);
    free(scratch);
}

Test(attention_page, bf16_layout_and_cleared_tail) {
    check_page(ATTENTION_PAGE_BF16);
}

Test(attention_page, int8_layout_and_cleared_tail) {
    check_page(ATTENTION_PAGE_INT8);
}

Test(attention_page, bytes_do_not_depend_on_the_chunks) {
    enum { COUNT = 64 };
    float keys[COUNT * DIM], values[COUNT * DIM];
    fill(keys, values, COUNT, 2);
    for (int type = ATTENTION_PAGE_BF16; type <= ATTENTION_PAGE_INT8; type++) {
        void *one = make_page(type), *two = make_page(type);
        struct attention_page_tokens all = {keys, values, DIM, 0, COUNT};
        attention_page_write(type, DIM, one, &all);
        write_both(type, two, keys, values, 63, COUNT);
        cr_expect_arr_eq(one, two, attention_page_bytes(type, DIM));
        free(one);
        free(two);
    }
}

Test(attention_page, int8_of_zeros_denormals_and_the_largest) {
    float keys[2 * DIM] = {0}, values[2 * DIM] = {0};
    keys[0] = 1e-42f, keys[3] = -1e-42f;
    values[1] = -3e38f, values[2] = 3e38f;
    void *page = make_page(ATTENTION_PAGE_INT8);
    uint16_t *scratch = aligned_alloc(64, attention_page_bytes(ATTENTION_PAGE_BF16, DIM));
    struct attention_page_tokens tokens = {keys, values, DIM, 0, 2};
    attention_page_write(ATTENTION_PAGE_INT8, DIM, page, &tokens);
    struct panels panels = read_page(ATTENTION_PAGE_INT8, page, scratch);
    cr_expect_eq(key_at(panels, 0, 0), 0);
    cr_expect_eq(key_at(panels, 1, 0), 0);
    cr_expect_float_eq(value_at(panels, 0, 1), -3e38f, 2e36f);
    cr_expect_float_eq(value_at(panels, 0, 2), 3e38f, 2e36f);
    free(page);
    free(scratch);
}
