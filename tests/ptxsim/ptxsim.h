/* A simulator of NVIDIA's PTX for tests: it runs the text that the CUDA compiler emits, on the CPU,
 * and stops at what a GPU would silently forgive: accesses outside or across allocations, races in
 * shared memory, data whose cp.async was not waited for, barriers and warp collectives that some
 * threads miss, registers and shared memory read before they were written, instructions it does
 * not know. Semantics follow the PTX ISA document; floating point is deterministic (see
 * ptx_float.c and ptx_matrix.c for the rules). No timing is modelled; counters are proxies.
 *
 * One machine may be used by one host thread at a time. */
#ifndef TESTS_PTXSIM_PTXSIM_H
#define TESTS_PTXSIM_PTXSIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* ---- the device ---- */
struct ptxsim_device {
    int capability; /* 75 for 7.5 */
    int sm_count;
    uint64_t memory_bytes;         /* for ptxsim_memory_alloc */
    uint32_t shared_default_bytes; /* a block's shared memory without opt-in */
    uint32_t shared_optin_bytes;   /* the most a kernel may opt in to */
    uint32_t block_max[3];
    uint32_t grid_max[3];
    uint32_t block_threads_max;
};

/* The limits of a compute capability from 60 to 121, with a usual number of SMs and 16 GiB. */
void ptxsim_device_describe(int capability, struct ptxsim_device *device);

struct ptxsim;

enum status ptxsim_create(const struct ptxsim_device *device, struct ptxsim **created,
                          struct error *error);
void ptxsim_destroy(struct ptxsim *machine); /* modules must be gone; NULL is allowed */
const struct ptxsim_device *ptxsim_device_of(const struct ptxsim *machine);

/* ---- global memory ----
 * Device addresses are not host addresses. Allocations are 512-byte aligned and have unmapped
 * addresses on both sides. Fresh memory holds 0xff bytes (NaN in every float format), except that
 * allocations above PTXSIM_POISON_BYTES are left to the operating system, untouched and zero, so
 * that pools larger than the machine work. */
enum { PTXSIM_POISON_BYTES = 64 << 20 };

enum status ptxsim_memory_alloc(struct ptxsim *machine, uint64_t bytes, uint64_t *address,
                                struct error *error);
enum status ptxsim_memory_free(struct ptxsim *machine, uint64_t address, struct error *error);

/* Register host memory of the caller's at a device address (or at *address == 0: one is chosen). */
enum status ptxsim_memory_map(struct ptxsim *machine, void *host, uint64_t bytes, bool writable,
                              uint64_t *address, struct error *error);

/* The host bytes of a device range; NULL when it is not wholly inside one allocation. */
void *ptxsim_memory_host(const struct ptxsim *machine, uint64_t address, uint64_t bytes);

/* Free bytes of the device (mapped host memory is not counted). */
uint64_t ptxsim_memory_free_bytes(const struct ptxsim *machine);

/* ---- modules ---- */
struct ptxsim_module;

struct ptxsim_param {
    uint32_t offset;
    uint32_t bytes;
};

struct ptxsim_kernel {
    const char *name;
    const struct ptxsim_param *params;
    uint32_t param_count;
    uint32_t param_bytes;
    uint32_t shared_bytes; /* static; dynamic shared memory comes behind it */
    uint32_t local_bytes;  /* a thread */
    uint32_t registers;    /* virtual registers of the PTX */
    uint32_t threads_max;  /* from .maxntid/.reqntid; 0 when not given */
};

/* Parse and decode every kernel. A mistake, an instruction or modifier that is not known, or one
 * that the module's .target does not have gives STATUS_UNSUPPORTED or STATUS_CORRUPT and the PTX
 * line; a .target above the device's capability gives STATUS_NOT_FOUND (no image). */
enum status ptxsim_module_load(struct ptxsim *machine, const char *text, size_t length,
                               struct ptxsim_module **loaded, struct error *error);
void ptxsim_module_unload(struct ptxsim_module *module);
const struct ptxsim_kernel *ptxsim_module_kernel(const struct ptxsim_module *module,
                                                 const char *name);
const struct ptxsim_kernel *ptxsim_module_kernel_at(const struct ptxsim_module *module,
                                                    uint32_t index);
/* A .global or .const variable. */
bool ptxsim_module_global(const struct ptxsim_module *module, const char *name, uint64_t *address,
                          uint64_t *bytes);

/* ---- launches ---- */
enum ptxsim_order { PTXSIM_ASCENDING, PTXSIM_DESCENDING, PTXSIM_RANDOM };

struct ptxsim_launch {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes;     /* dynamic */
    bool shared_optin;         /* the kernel's attribute allows more than shared_default_bytes */
    const void *params;        /* param_bytes of the kernel, laid out as it says */
    enum ptxsim_order order;   /* of warps and blocks; each warp runs until its next barrier */
    uint64_t seed;             /* of PTXSIM_RANDOM */
    uint64_t instructions_max; /* warp instructions a block, 0 = 2^40: ends endless loops */
    int host_threads;          /* ≤ 1: one. More are used only where the kernel has no atomics */
};

enum ptxsim_fault_kind {
    PTXSIM_FAULT_NONE,
    PTXSIM_FAULT_BOUNDS,
    PTXSIM_FAULT_ALIGNMENT,
    PTXSIM_FAULT_READ_ONLY,
    PTXSIM_FAULT_UNINITIALISED_REGISTER,
    PTXSIM_FAULT_UNINITIALISED_SHARED,
    PTXSIM_FAULT_ASYNC_PENDING, /* touches the target of a cp.async that was not waited for */
    PTXSIM_FAULT_RACE,
    PTXSIM_FAULT_DIVERGENT_BARRIER,
    PTXSIM_FAULT_PARTIAL_WARP,
    PTXSIM_FAULT_DEADLOCK,
    PTXSIM_FAULT_TRAP,
    PTXSIM_FAULT_CALL,
    PTXSIM_FAULT_ENDLESS,
    PTXSIM_FAULT_NO_MEMORY,
    PTXSIM_FAULT_COUNT
};

const char *ptxsim_fault_name(enum ptxsim_fault_kind kind);

struct ptxsim_counters {
    uint64_t warp_instructions;
    uint64_t thread_instructions;
    uint64_t matrix_instructions; /* mma, a warp each */
    uint64_t global_sectors;      /* 32-byte sectors asked for */
    uint64_t global_sectors_min;  /* what the distinct bytes need */
    uint64_t shared_wavefronts_min;
    uint64_t shared_conflicts; /* wavefronts above the minimum */
    uint64_t local_accesses;   /* warp instructions on .local */
    uint64_t barriers;         /* completed block barriers */
};

struct ptxsim_report {
    enum ptxsim_fault_kind fault;
    const char *kernel;
    uint32_t line; /* of the PTX text */
    uint32_t block[3];
    uint32_t thread[3];
    uint64_t address; /* of memory faults */
    struct ptxsim_counters counters;
};

/* Run a grid to its end. STATUS_BAD_INPUT when the launch is over a limit, STATUS_DEVICE for a
 * fault (`report` says where, `error` in words). The first fault ends the launch. */
enum status ptxsim_launch(struct ptxsim *machine, const struct ptxsim_kernel *kernel,
                          const struct ptxsim_launch *launch, struct ptxsim_report *report,
                          struct error *error);

#endif
