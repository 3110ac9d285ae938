/* The table of launch shapes against the limits of devices and the images of the build. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/weights/quant_type.h"
#include "gpu/gpu_images.h"
#include "gpu/launch_config.h"

static const int head_dims[] = {64, 80, 96, 128, 256};
/* Shared memory a block may opt in to: 6.x; 7.5; the least from 8.0 (8.6, 8.9, 12.0). */
static const int shared_most[MATRIX_PATH_COUNT] = {48 << 10, 64 << 10, 99 << 10};
static const int capability_of[MATRIX_PATH_COUNT] = {60, 75, 80};

/* Whether the image for the path has the function; true where the build has no such images. */
static bool has_entry(const struct launch_config *config, enum matrix_path path) {
    char entry[96];
    bool built = false;
    snprintf(entry, sizeof entry, ".entry %s(", config->entry);
    for (size_t i = 0; i < gpu_images_count; i++) {
        const struct gpu_image *image = &gpu_images[i];
        if (image->kind != GPU_IMAGE_PTX || image->capability != capability_of[path])
            continue;
        built = true;
        if (strcmp(image->name, config->image) == 0 && strstr((const char *)image->bytes, entry))
            return true;
    }
    return !built;
}

Test(launch_config, attention_fits_every_device) {
    for (int path = 0; path < MATRIX_PATH_COUNT; path++)
        for (int kv = KV_ELEMENT_F16; kv <= KV_ELEMENT_E4M3; kv++)
            for (int i = 0; i < 10; i++) {
                const struct launch_config *config = launch_config_attention(
                    (enum matrix_path)path, i % 2, (enum kv_element)kv, head_dims[i / 2]);
                if (kv == KV_ELEMENT_BF16 && path != MATRIX_AMPERE) {
                    cr_assert_null(config);
                    continue;
                }
                cr_assert_leq(config->shared_bytes, shared_most[path], "%s", config->entry);
                cr_assert_geq(config->scratch_bytes, config->rows * head_dims[i / 2] * 4);
                cr_assert(has_entry(config, (enum matrix_path)path), "%s", config->entry);
            }
}

Test(launch_config, every_weight_type_and_kernel_is_there) {
    for (int path = 0; path < MATRIX_PATH_COUNT; path++) {
        for (size_t i = 0; i < 2 * quant_type_count(); i++) {
            const struct launch_config *config =
                launch_config_linear((enum weight_type)quant_type_at(i / 2)->id, i % 2);
            cr_assert_not_null(config, "%s", quant_type_at(i / 2)->name);
            cr_assert(has_entry(config, (enum matrix_path)path), "%s", config->entry);
        }
        for (int kernel = 0; kernel < KERNEL_ID_COUNT; kernel++)
            cr_assert(has_entry(launch_config_find((enum kernel_id)kernel), (enum matrix_path)path),
                      "%s", launch_config_find((enum kernel_id)kernel)->entry);
    }
}

Test(launch_config, what_there_is_not) {
    cr_expect_null(launch_config_attention(MATRIX_AMPERE, false, KV_ELEMENT_F16, 72));
    cr_expect_null(launch_config_linear((enum weight_type)9, false));
    cr_expect_eq(launch_config_path(70), MATRIX_FMA);
    cr_expect_eq(launch_config_path(75), MATRIX_TURING);
    cr_expect_eq(launch_config_path(120), MATRIX_AMPERE);
}

/* By the shape alone, within 16, 512 k or more each. */
Test(launch_config, splits) {
    cr_expect_eq(launch_config_splits(64, 512), 1);
    cr_expect_eq(launch_config_splits(64, 4096), 8);
    cr_expect_eq(launch_config_splits(64, 1 << 20), 16);
    cr_expect_eq(launch_config_splits(128256, 2048), 1);
    cr_expect_eq(launch_config_splits(4096, 4096), 5);
}

Test(launch_config, grid) {
    cr_expect_eq(launch_config_grid(0, 256, 76), 0);
    cr_expect_eq(launch_config_grid(257, 256, 76), 2);
    cr_expect_eq(launch_config_grid((int64_t)1 << 40, 256, 76), 76 * 8);
}
