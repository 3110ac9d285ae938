/* Weights that do not stay on the device: pieces (a linear's tensors each) are copied from host
 * memory, in the order of their use, into a ring of device memory on the copy stream, while the
 * compute stream works on the pieces before. Events hold both back: a use until its copy is there,
 * a copy until the last use of the memory it overwrites is done. Quantised weights travel as they
 * are in the file.
 *
 * From pinned memory everything is queued ahead. From ordinary memory the calling thread copies
 * into pinned buffers itself; it then refills only memory whose use was queued before the last
 * piece, so that the device has that piece to work on meanwhile.
 *
 * Every step takes the same pieces in the same order; only the last ones (the logits' weights) may
 * be left out of a step, all together. Not for graphs: they would record one step's addresses. */
#ifndef GPU_WEIGHT_RING_H
#define GPU_WEIGHT_RING_H

#include "gpu/device.h"

enum { WEIGHT_RING_ALIGNMENT = 256 };

/* A range of host memory and its place in the piece. */
struct weight_ring_part {
    const void *bytes;
    uint64_t byte_count;
    uint64_t offset;
};

struct weight_ring_piece {
    const struct weight_ring_part *parts;
    int part_count;
    uint64_t byte_count; /* that all parts end within */
};

struct weight_ring_options {
    const struct weight_ring_piece *pieces; /* in the order of use; borrowed with all they name */
    int piece_count;                        /* > 0 */
    int optional_from;   /* pieces from this one on may be left out; piece_count: none */
    uint64_t ring_bytes; /* the largest piece at least; two of them to copy while computing */
    bool pinned;         /* the parts lie in pinned memory (device_host_pin) */
};

/* What of some weights stays on the device under a limit: of every stretch of the model the same
 * share, so that a streamed piece has resident ones before it to hide behind. */
struct weight_ring_division {
    uint64_t ring_bytes;     /* 0: all stay */
    uint64_t resident_bytes; /* of those that stay */
    uint64_t step_bytes;     /* copied in a step that takes all */
};

/* `bytes` [count] of the pieces in the order of use; `streamed` [count] is filled.
 * STATUS_OVER_LIMIT with what is needed when the limit is below the largest piece. */
enum status weight_ring_divide(const uint64_t *bytes, int count, uint64_t limit, bool *streamed,
                               struct weight_ring_division *division, struct error *error);

struct weight_ring;

/* Takes ring_bytes of device memory (tag staging) and begins to copy. */
enum status weight_ring_create(struct device *device, const struct weight_ring_options *options,
                               struct weight_ring **ring, struct error *error);
void weight_ring_destroy(struct weight_ring *ring); /* before the device is closed; NULL is fine */

/* Before a step: whether the optional pieces will be taken in it. A step that was given up half way
 * is forgotten. */
enum status weight_ring_begin(struct weight_ring *ring, bool with_optional, struct error *error);

/* The next piece of the step, which is `piece`: what is queued on the compute stream from now on
 * finds it at `address`. One at a time. */
enum status weight_ring_take(struct weight_ring *ring, int piece, uint64_t *address,
                             struct error *error);
/* Its last use is queued. */
enum status weight_ring_give_back(struct weight_ring *ring, struct error *error);

uint64_t weight_ring_copied(const struct weight_ring *ring); /* bytes queued so far */

#endif
