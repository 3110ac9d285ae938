/* The kernels' code inside the program: for every file of gpu/kernels its PTX for some compute
 * capabilities, which any later device can run, and, when the build was asked for it, a fat binary
 * with machine code. A build without nvcc has an empty table. gpu_images.c is made by the build. */
#ifndef GPU_GPU_IMAGES_H
#define GPU_GPU_IMAGES_H

#include <stddef.h>

enum gpu_image_kind {
    GPU_IMAGE_PTX,       /* text, a zero byte behind it */
    GPU_IMAGE_FAT_BINARY /* machine code for several capabilities, compressed */
};

struct gpu_image {
    const char *name; /* launch_config's `image`: "attention_bf16" */
    enum gpu_image_kind kind;
    int capability; /* PTX: the least it runs on, 80 for 8.0; fat binary: 0 */
    const unsigned char *bytes;
    size_t byte_count; /* without the zero byte */
};

extern const struct gpu_image gpu_images[];
extern const size_t gpu_images_count;

#endif
