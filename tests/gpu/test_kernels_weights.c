/* Weight blocks on the device: decoded to the bit as the host decodes them, and multiplied. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/weights/quant_type.h"
#include "tests/gpu/simulated.h"

/* Blocks of random bytes; the 16-bit scales among them made small and finite. */
static uint8_t *random_blocks(const struct quant_type *type, size_t count, uint64_t *seed) {
    size_t bytes = count * type->block_bytes;
    uint8_t *blocks = malloc(bytes);
    float unpacked[256];
    for (size_t i = 0; i < count; i++) {
        uint8_t *block = blocks + i * type->block_bytes;
        bool sound = false;
        while (!sound) { /* until all values are finite and of a usual size */
            for (uint32_t j = 0; j < type->block_bytes; j++)
                block[j] = (uint8_t)((int)(simulated_noise(seed) * 1e6f) & 255);
            type->unpack(block, 1, unpacked);
            sound = true;
            for (uint32_t j = 0; j < type->block_values; j++)
                sound = sound && fabsf(unpacked[j]) < 30000 &&
                        (unpacked[j] == 0 || fabsf(unpacked[j]) > 1e-6f);
        }
    }
    return blocks;
}

/* dequantise to fp32, fp16 and bf16, and embed, give the host's values. */
static void check_decode(struct simulated *device, const struct quant_type *type) {
    enum { TABLE_ROWS = 3, COLUMNS = 512, COUNT = TABLE_ROWS * COLUMNS };
    uint64_t seed = 17 + (uint64_t)type->id;
    static float wanted[COUNT];
    size_t row_bytes = COLUMNS / type->block_values * type->block_bytes;
    uint8_t *blocks = random_blocks(type, COUNT / type->block_values, &seed);
    type->unpack(blocks, COUNT / type->block_values, wanted);
    struct dequantise_arguments a = {
        .blocks = simulated_upload(device, blocks, TABLE_ROWS * row_bytes),
        .row_bytes = (int64_t)row_bytes,
        .out_stride = COLUMNS,
        .rows = TABLE_ROWS,
        .columns = COLUMNS,
        .type = (int)type->id,
    };
    for (int element = ELEMENT_F32; element <= ELEMENT_BF16; element++) {
        a.out = simulated_upload(device, NULL, COUNT * 4);
        a.out_element = element;
        simulated_launch(device, launch_config_find(KERNEL_DEQUANTISE), 2, &a, sizeof a);
        const void *out = simulated_view(device, a.out, COUNT * 2);
        for (size_t i = 0; i < COUNT; i++) {
            float value = element == ELEMENT_F32 ? wanted[i]
                          : element == ELEMENT_F16
                              ? quant_type_f16_to_f32(quant_type_f32_to_f16(wanted[i]))
                              : quant_type_bf16_to_f32(quant_type_f32_to_bf16(wanted[i]));
            double got = simulated_element(out, (enum element)element, i);
            cr_assert_eq(got, (double)value, "%s to %d at %zu: %.9g, not %.9g", type->name, element,
                         i, got, (double)value);
        }
    }
    int32_t tokens[3] = {2, 0, 3};
    struct embed_arguments e = {
        .table = a.blocks,
        .tokens = simulated_upload(device, tokens, sizeof tokens),
        .out = simulated_upload(device, NULL, COUNT * 4),
        .row_bytes = (int64_t)row_bytes,
        .rows = 3,
        .width = COLUMNS,
        .vocab = TABLE_ROWS,
        .type = (int)type->id,
        .scale = 1.5f,
    };
    simulated_launch(device, launch_config_find(KERNEL_EMBED), 1, &e, sizeof e);
    const float *out = simulated_view(device, e.out, COUNT * 4);
    for (int i = 0; i < COLUMNS; i++) {
        cr_assert_eq(out[i], wanted[2 * COLUMNS + i] * 1.5f, "%s", type->name);
        cr_assert_eq(out[COLUMNS + i], wanted[i] * 1.5f, "%s", type->name);
        cr_assert(isnan(out[2 * COLUMNS + i]), "a token outside the vocabulary");
    }
    free(blocks);
}

static void try_every_type(struct simulated *device) {
    for (size_t type = 0; type < quant_type_count(); type++)
        check_decode(device, quant_type_at(type));
}

Test(kernel_weights, every_type_is_decoded_as_on_the_host) {
    simulated_each(try_every_type);
}

/* One matmul from blocks. */
struct product {
    const struct quant_type *type;
    int rows;
    int columns;
    int k;
    int split_count;
    const uint8_t *blocks;
    const uint16_t *in;
};

/* The sum of the splits, [rows][columns]; the caller frees. */
static float *multiply(struct simulated *device, const struct product *p, bool many) {
    const struct launch_config *config = launch_config_linear((enum weight_type)p->type->id, many);
    size_t row_bytes = (size_t)p->k / p->type->block_values * p->type->block_bytes;
    size_t count = (size_t)(p->rows * p->columns);
    struct linear_arguments a = {
        .weights = simulated_upload(device, p->blocks, (size_t)p->columns * row_bytes),
        .in = simulated_upload(device, p->in, (size_t)(p->rows * p->k) * 2),
        .parts = simulated_upload(device, NULL, count * (size_t)p->split_count * 4),
        .row_bytes = (int64_t)row_bytes,
        .rows = p->rows,
        .columns = p->columns,
        .k = p->k,
        .split_count = p->split_count,
    };
    int64_t grid = (int64_t)((p->columns + LINEAR_COLUMNS - 1) / LINEAR_COLUMNS) * p->split_count *
                   ((p->rows + config->rows - 1) / config->rows);
    simulated_launch(device, config, grid, &a, sizeof a);
    const float *parts = simulated_view(device, a.parts, count * (size_t)p->split_count * 4);
    float *sum = calloc(count, sizeof *sum);
    for (int split = 0; split < p->split_count; split++)
        for (size_t i = 0; i < count; i++)
            sum[i] += parts[(size_t)split * count + i];
    return sum;
}

static double distance_of(const struct product *p, const float *got, enum element element) {
    size_t weights = (size_t)(p->columns * p->k), count = (size_t)(p->rows * p->columns);
    float *w = malloc(weights * sizeof *w);
    double *wanted = calloc(count, sizeof *wanted), *sums = calloc(count, sizeof *sums);
    p->type->unpack(p->blocks, weights / p->type->block_values, w);
    for (int row = 0; row < p->rows; row++)
        for (int column = 0; column < p->columns; column++) {
            size_t at = (size_t)(row * p->columns + column);
            for (int k = 0; k < p->k; k++)
                wanted[at] += simulated_element(p->in, element, (size_t)(row * p->k + k)) *
                              (double)w[(size_t)column * (size_t)p->k + (size_t)k];
            sums[at] = (double)got[at];
        }
    double distance = simulated_distance(wanted, sums, count);
    free(w);
    free(wanted);
    free(sums);
    return distance;
}

static void check_product(struct simulated *device, struct product *p) {
    enum element element = launch_config_matmul_element(launch_config_path(device->capability));
    uint64_t seed = 23;
    uint8_t *blocks =
        random_blocks(p->type, (size_t)(p->columns * p->k) / p->type->block_values, &seed);
    uint16_t *in = malloc((size_t)(p->rows * p->k) * sizeof *in);
    for (int i = 0; i < p->rows * p->k; i++)
        in[i] = element == ELEMENT_F16 ? quant_type_f32_to_f16(simulated_noise(&seed))
                                       : quant_type_f32_to_bf16(simulated_noise(&seed));
    p->blocks = blocks;
    p->in = in;
    float *few = multiply(device, p, false), *many = multiply(device, p, true);
    double distance = distance_of(p, few, element);
    cr_expect_lt(distance, element == ELEMENT_F16 ? 5e-4 : 4e-3, "%s on %d: off by %g",
                 p->type->name, device->capability, distance);
    size_t bytes = (size_t)(p->rows * p->columns) * sizeof *few;
    cr_expect(memcmp(few, many, bytes) == 0, "%s: the tile's height shows", p->type->name);
    struct product alone = *p; /* the last row by itself */
    alone.rows = 1;
    alone.in = in + (p->rows - 1) * p->k;
    float *one = multiply(device, &alone, false);
    cr_expect(memcmp(one, few + (p->rows - 1) * p->columns, (size_t)p->columns * sizeof *one) == 0,
              "%s: the neighbours show", p->type->name);
    free(few);
    free(many);
    free(one);
    free(blocks);
    free(in);
}

static void try_products(struct simulated *device) {
    for (size_t t = 0; t < quant_type_count(); t++) {
        struct product p = {quant_type_at(t), 19, 70, 512, 3, NULL, NULL};
        if (launch_config_linear((enum weight_type)p.type->id, false))
            check_product(device, &p);
    }
    struct product odd = {quant_type_find(QUANT_Q8_0), 2, 5, 96, 1, NULL, NULL};
    check_product(device, &odd);
}

Test(kernel_weights, products_are_right_and_rows_their_own) {
    simulated_each(try_products);
}
