/* A few kernels in PTX written by hand, with their launch table: enough for the host layer's tests
 * in builds without a CUDA compiler. */
#ifndef TESTS_FAKECUDA_SMALL_IMAGES_H
#define TESTS_FAKECUDA_SMALL_IMAGES_H

#include "gpu/gpu_images.h"
#include "gpu/launch_config.h"

enum { SMALL_IMAGES_COUNT = 4, SMALL_SHARED_BYTES = 60 << 10 };

/* add: out[i] = in[i] + addend, for 60 and, with the same result + 1000, for 80.
 * broken: a module that does not compile. */
extern const struct gpu_image small_images[SMALL_IMAGES_COUNT];

struct small_add_arguments {
    uint64_t in, out; /* fp32 [count] */
    int32_t count;
    float addend;
};
extern const struct launch_config small_images_add; /* a block is 32 threads */

/* out[i] = i, through SMALL_SHARED_BYTES of shared memory: more than the default. One block. */
struct small_shared_arguments {
    uint64_t out; /* uint32 [32] */
};
extern const struct launch_config small_images_shared;

extern const struct launch_config small_images_absent; /* no such function */
extern const struct launch_config small_images_broken;
extern const struct launch_config small_images_unknown; /* no such image */
extern const struct launch_config small_images_huge;    /* 1 MiB of shared memory */

#endif
