/* What the fake's files share: its state, the objects behind handles, queued operations. */
#ifndef TESTS_FAKECUDA_FAKECUDA_STATE_H
#define TESTS_FAKECUDA_FAKECUDA_STATE_H

#include "gpu/blas.h"
#include "gpu/driver.h"
#include "tests/fakecuda/fakecuda.h"
#include "tests/ptxsim/ptxsim.h"

/* The exported functions, by the tables of the program: a signature that differs does not compile,
 * and each is exported under the name that the program looks up. */
#define FAKE_PROTOTYPE(field, symbol, parameters) \
    FAKECUDA_EXPORT int field parameters __asm__(symbol);
DRIVER_FUNCTIONS(FAKE_PROTOTYPE)
BLAS_FUNCTIONS(FAKE_PROTOTYPE)

/* Results that the program does not tell apart. */
enum {
    FAKE_INVALID_VALUE = 1,
    FAKE_NOT_INITIALIZED = 3,
    FAKE_INVALID_DEVICE = 101,
    FAKE_INVALID_CONTEXT = 201,
    FAKE_INVALID_HANDLE = 400,
    FAKE_NOT_FOUND = 500,
    FAKE_NOT_READY = 600,
    FAKE_ALREADY_REGISTERED = 712,
    FAKE_NOT_REGISTERED = 713,
    FAKE_CAPTURE_UNSUPPORTED = 900,
    FAKE_CAPTURE_INVALIDATED = 901,
    FAKE_CAPTURE_ISOLATION = 905,
    FAKE_CAPTURED_EVENT = 907,
};

enum fake_kind {
    FAKE_CONTEXT,
    FAKE_STREAM,
    FAKE_EVENT,
    FAKE_MODULE,
    FAKE_FUNCTION, /* counted with its module */
    FAKE_GRAPH,
    FAKE_EXEC,
    FAKE_ALLOCATION,
    FAKE_HOST,
    FAKE_BLAS,
};

/* At the head of everything that a handle names. */
struct fake_object {
    enum fake_kind kind;
    struct fake_object *next;
};

struct fake_event {
    struct fake_object object;
    bool timed;
    bool captured;      /* recorded last in a stream that was capturing */
    bool destroyed;     /* by the program; operations still name it */
    int references;     /* of operations */
    uint64_t recorded;  /* recordings queued */
    uint64_t completed; /* the last of them that has happened */
    double time_ms;     /* of that one */
};

enum fake_operation_kind {
    FAKE_TO_DEVICE,
    FAKE_TO_HOST,
    FAKE_WITHIN,
    FAKE_FILL,
    FAKE_LAUNCH,
    FAKE_MULTIPLY,
    FAKE_RECORD,
    FAKE_WAIT,
    FAKE_NOTHING, /* a graph of no operations */
};

struct fake_multiply {
    int m, n, k, lda, ldb, ldc, type;
    float alpha, beta;
    uint64_t a, b, c;
};

struct fake_operation {
    struct fake_operation *next;
    uint64_t number; /* ascending in a stream */
    enum fake_operation_kind kind;
    struct fake_event *event;
    uint64_t recording;
    uint64_t to, from, bytes;
    void *host_to;
    const void *host_from;
    unsigned char value;
    void *owned; /* parameters of a launch, bytes of a pageable copy */
    size_t owned_bytes;
    const struct ptxsim_kernel *kernel;
    uint32_t grid[3], block[3], shared_bytes;
    bool shared_optin;
    struct fake_multiply multiply;
};

struct fake_queue {
    struct fake_operation *first, *last;
};

struct fake_stream {
    struct fake_object object;
    struct fake_queue queue;
    struct fake_graph *capture; /* NULL: not capturing */
    bool invalidated;           /* the capture */
};

struct fake_graph {
    struct fake_object object; /* FAKE_GRAPH or FAKE_EXEC */
    struct fake_queue queue;
};

struct fake_allocation {
    struct fake_object object;
    uint64_t address;
};

struct fake_host {
    struct fake_object object;
    char *bytes;
    size_t byte_count;
    bool owned; /* cuMemAllocHost; else registered */
};

struct fake {
    struct fakecuda_settings settings;
    struct fakecuda_report report;
    struct ptxsim *machine;
    bool initialised;
    int contexts_retained;
    struct fake_object *context;
    int lost; /* the result of every call from now on; 0: none */
    uint64_t random;
    uint64_t next_number;
    uint64_t memory_used;
    struct fake_object *objects;
};

/* ---- fakecuda_state.c ---- */
extern struct fake fakecuda_state;

/* At the beginning of every call: counts it, and gives the result it must fail with, or 0. */
int fakecuda_state_enter(const char *call);
/* The same for calls that need the current context. */
int fakecuda_state_enter_current(const char *call);
void fakecuda_state_set_current(struct fake_object *context);
/* Notes what the program did wrong (the first time) and returns `result`. */
int fakecuda_state_misuse(int result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void *fakecuda_state_add(enum fake_kind kind, size_t bytes); /* zeroed */
bool fakecuda_state_alive(const void *handle, enum fake_kind kind);
void fakecuda_state_unlink(void *object);
void fakecuda_state_remove(void *object); /* unlink and free */
uint64_t fakecuda_state_random(void);

/* ---- fakecuda_run.c: operations, when and in what order ---- */
struct fake_operation *fakecuda_run_operation(enum fake_operation_kind kind);
void fakecuda_run_free_queue(struct fake_queue *queue);
void fakecuda_run_append(struct fake_queue *queue, struct fake_operation *operation);
/* Takes the operation: to the stream's end, or its capture's. */
void fakecuda_run_queue(struct fake_stream *stream, struct fake_operation *operation);
void fakecuda_run_stream(struct fake_stream *stream); /* until it is empty */
void fakecuda_run_event(struct fake_event *event);    /* until its last recording happened */
void fakecuda_run_all(void);
/* Results of a call that may not be made while a stream of the thread captures. */
int fakecuda_run_refuse_capture(const char *call);

/* ---- fakecuda_execute.c ---- */
/* One operation; a CUresult, which is then sticky. */
int fakecuda_execute(const struct fake_operation *operation);

/* ---- fakecuda_memory.c ---- */
/* Whether a host range lies in pinned memory. */
bool fakecuda_memory_pinned(const void *host, size_t bytes);

/* ---- fakecuda_module.c ---- */
void fakecuda_module_remove(void *module);

#endif
