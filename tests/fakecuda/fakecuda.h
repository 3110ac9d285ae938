/* A fake libcuda and libcublas in one shared library, over the PTX simulator: the program's own
 * host code and the PTX that it ships run as on a GPU, on a device that the test describes. Tests
 * link the library, to call what is declared here, and give its path to device_open.
 *
 * What a GPU may do late is done late: work is queued a stream and runs only when something waits
 * for it, and then in one of three orders that CUDA allows, so that a missing event or
 * synchronisation shows in results. Device memory is poisoned, bounds are checked, handles are
 * checked for being alive, calls for the current context. A fault in queued work loses the device,
 * as on hardware; the report says what it was.
 *
 * The state is one a process, as a driver's is; one thread at a time. */
#ifndef TESTS_FAKECUDA_FAKECUDA_H
#define TESTS_FAKECUDA_FAKECUDA_H

#include <stdbool.h>
#include <stdint.h>

#define FAKECUDA_EXPORT __attribute__((visibility("default")))

enum fakecuda_order {
    FAKECUDA_LAZY,  /* only what the waiting needs: a producer that is not waited for is late */
    FAKECUDA_EAGER, /* other streams first: one that should have waited overwrites too early */
    FAKECUDA_RANDOM
};

enum { FAKECUDA_DEFAULT_DRIVER_VERSION = 13000 };

struct fakecuda_settings {
    int capability;        /* 0: 80 */
    int multiprocessors;   /* 0: usual for the capability */
    uint64_t memory_bytes; /* 0: 16 GiB */
    int driver_version;    /* 0: 13000; modules of a newer PTX version are refused */
    bool no_device;
    bool no_pinned;      /* no host memory can be pinned */
    bool only_read_only; /* the program's memory is pinned only as memory that is not written */
    bool no_blas;        /* cublasCreate fails */
    enum fakecuda_order order;
    uint64_t seed;     /* of FAKECUDA_RANDOM, and of the order of warps */
    int host_threads;  /* simulating a launch; 0: 1 */
    int64_t fail_call; /* this call, counted from 1, fails with fail_result; 0: none */
    int fail_result;   /* a CUresult; from cuBLAS the status nearest to it */
    int64_t lost_call; /* from this call on the device is lost (illegal address); 0: never */
};

/* Forget everything, with what is still alive, and begin anew. NULL: all zero. */
FAKECUDA_EXPORT void fakecuda_configure(const struct fakecuda_settings *settings);

struct fakecuda_report {
    int64_t calls;        /* since fakecuda_configure, of both libraries */
    int64_t objects;      /* alive: contexts, streams, events, modules, graphs, memory, pinnings */
    int64_t allocations;  /* of device memory, alive */
    int64_t operations;   /* of streams, run */
    int64_t launches;     /* kernels run */
    int64_t multiplies;   /* of cuBLAS, run */
    int64_t pending;      /* queued and not run */
    uint64_t uploaded;    /* bytes, host to device */
    uint64_t memory_peak; /* bytes of device memory */
    const char *failed;   /* the call that fail_call or lost_call hit first; NULL: none yet */
    char fault[1024];     /* the first fault or misuse; "": none */
};

FAKECUDA_EXPORT void fakecuda_report(struct fakecuda_report *report);

#endif
