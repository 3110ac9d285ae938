/* A device for the kernel tests, and short ways to get arrays there and back. Two programs hold the
 * same tests: one runs the PTX of the program's own images in the simulator (simulated_ptx.c), the
 * other the kernels' source compiled for the host (shim/). A fault fails the test. */
#ifndef TESTS_GPU_SIMULATED_H
#define TESTS_GPU_SIMULATED_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/launch_config.h"

enum { SIMULATED_MODULES_MAX = 16, SIMULATED_ALLOCATIONS_MAX = 4096 };

/* In which warps and blocks run, each as far as it can; the host's fibers know one only. */
enum simulated_order { SIMULATED_ASCENDING, SIMULATED_DESCENDING, SIMULATED_RANDOM };

struct ptxsim;
struct ptxsim_module;

struct simulated {
    int capability;
    enum simulated_order order;
    /* simulated_ptx.c */
    struct ptxsim *machine;
    int module_count;
    struct {
        const char *image;
        struct ptxsim_module *module;
    } modules[SIMULATED_MODULES_MAX];
    /* shim_device.c */
    void *kernels;
    int allocation_count;
    void *allocations[SIMULATED_ALLOCATIONS_MAX];
};

/* Whether the build has images for a capability: below 7.5 they need another compiler. */
bool simulated_has(int capability);
/* Runs a test on a device of each matrix path that this build has images for. */
void simulated_each(void (*test)(struct simulated *device));
void simulated_create(struct simulated *device, int capability);
void simulated_destroy(struct simulated *device);

/* So many floats of noise on the device, times `size`. */
uint64_t simulated_noise_floats(struct simulated *device, size_t count, float size, uint64_t *seed);
float *simulated_floats(struct simulated *device, uint64_t address, size_t count);

/* A new allocation of so many bytes, filled from `bytes` when that is not NULL, else NaN. */
uint64_t simulated_upload(struct simulated *device, const void *bytes, size_t count);
/* The host's view of device memory. */
void *simulated_view(struct simulated *device, uint64_t address, size_t count);

void simulated_launch(struct simulated *device, const struct launch_config *config, int64_t grid,
                      const void *arguments, size_t argument_bytes);

/* Deterministic noise: uniform in [-1, 1). */
float simulated_noise(uint64_t *seed);
/* Relative L2 distance of got from wanted. */
double simulated_distance(const double *wanted, const double *got, size_t count);
/* Element of an array of `element` as a double. */
double simulated_element(const void *array, enum element element, size_t index);

#endif
