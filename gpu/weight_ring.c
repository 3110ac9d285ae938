/* The ring is a queue of places, the oldest first: given back ones that may be overwritten, the one
 * in use, those copied ahead. Places are dropped only when their memory is needed, and the copy
 * stream then waits for the last use of the latest dropped one, and so for all before it. */
#include "gpu/weight_ring.h"

#include <assert.h>
#include <stdlib.h>

#include "gpu/device_copy.h"
#include "gpu/device_memory.h"

enum { PLACES_MAX = 16 };

struct place {
    int piece;
    uint64_t position, bytes; /* in the ring */
    struct driver_event *copied, *used;
};

struct weight_ring {
    struct device *device;
    struct weight_ring_options options;
    uint64_t address; /* of the ring */
    uint64_t end;     /* behind the latest place */
    uint64_t copied_bytes;
    struct place places[PLACES_MAX]; /* a place's number modulo PLACES_MAX */
    uint64_t first, taken, filled;   /* numbers: the oldest, the next to take, the next to fill */
    int next_fill;                   /* piece */
    bool fills_ahead;                /* next_fill is of the next step */
    bool in_use, with_optional;
    bool at_end; /* of a step, or before the first */
};

static uint64_t aligned(uint64_t bytes) {
    return (bytes + WEIGHT_RING_ALIGNMENT - 1) / WEIGHT_RING_ALIGNMENT * WEIGHT_RING_ALIGNMENT;
}

/* ---- what stays ---- */

/* Three of the largest piece let unequal neighbours overlap; where that is much of the limit, two;
 * one alone still works, without overlap. 0: too little. */
static uint64_t ring_for(uint64_t largest, uint64_t limit) {
    for (uint64_t count = 3; count > 1; count--)
        if (count * largest <= limit / 8 * 3)
            return count * largest;
    return 2 * largest <= limit ? 2 * largest : largest <= limit ? largest : 0;
}

static enum status too_little(uint64_t largest, uint64_t limit, struct error *error) {
    return error_set(error, STATUS_OVER_LIMIT,
                     "weights must be allowed %.1f MB of device memory at least, the largest "
                     "matrix, to be streamed; %.1f MB are allowed",
                     (double)largest / 1e6, (double)limit / 1e6);
}

enum status weight_ring_divide(const uint64_t *bytes, int count, uint64_t limit, bool *streamed,
                               struct weight_ring_division *division, struct error *error) {
    uint64_t all = 0, largest = 0, passed = 0;
    for (int i = 0; i < count; i++) {
        all += aligned(bytes[i]);
        largest = aligned(bytes[i]) > largest ? aligned(bytes[i]) : largest;
        streamed[i] = false;
    }
    *division = (struct weight_ring_division){.resident_bytes = all};
    if (all <= limit)
        return STATUS_OK;
    *division = (struct weight_ring_division){.ring_bytes = ring_for(largest, limit)};
    if (division->ring_bytes == 0)
        return too_little(largest, limit, error);
    const double share = (double)(limit - division->ring_bytes) / (double)all;
    for (int i = 0; i < count; i++) {
        passed += aligned(bytes[i]);
        const uint64_t kept = division->resident_bytes + aligned(bytes[i]);
        streamed[i] = (double)kept > share * (double)passed;
        if (streamed[i])
            division->step_bytes += bytes[i];
        else
            division->resident_bytes = kept;
    }
    return STATUS_OK;
}

/* ---- places ---- */

static struct place *place_of(struct weight_ring *ring, uint64_t number) {
    return &ring->places[number % PLACES_MAX];
}

/* Where `bytes` can go without dropping a place. */
static bool find_room(struct weight_ring *ring, uint64_t bytes, uint64_t *position) {
    const uint64_t all = ring->options.ring_bytes;
    if (ring->first == ring->filled) {
        *position = 0;
        return true;
    }
    if (ring->filled - ring->first == PLACES_MAX)
        return false;
    const uint64_t begin = place_of(ring, ring->first)->position;
    const bool wrapped = place_of(ring, ring->filled - 1)->position < begin;
    if (!wrapped && ring->end + bytes <= all) {
        *position = ring->end;
        return true;
    }
    *position = wrapped ? ring->end : 0;
    return *position + bytes <= begin;
}

static enum status drop_first(struct weight_ring *ring, struct error *error) {
    const struct place *place = place_of(ring, ring->first);
    TRY(device_event_wait(ring->device, place->used, DEVICE_COPY, error));
    ring->first++;
    return STATUS_OK;
}

static enum status copy_parts(struct weight_ring *ring, const struct weight_ring_piece *piece,
                              uint64_t to, struct error *error) {
    for (int i = 0; i < piece->part_count; i++) {
        const struct weight_ring_part *part = &piece->parts[i];
        if (ring->options.pinned)
            TRY(device_copy_to_device(ring->device, DEVICE_COPY, to + part->offset, part->bytes,
                                      part->byte_count, error));
        else
            TRY(device_copy_upload(ring->device, DEVICE_COPY, to + part->offset, part->bytes,
                                   part->byte_count, error));
        ring->copied_bytes += part->byte_count;
    }
    return STATUS_OK;
}

static enum status fill_at(struct weight_ring *ring, uint64_t position, struct error *error) {
    const struct weight_ring_piece *piece = &ring->options.pieces[ring->next_fill];
    struct place *place = place_of(ring, ring->filled);
    place->piece = ring->next_fill;
    place->position = position;
    place->bytes = aligned(piece->byte_count);
    TRY(copy_parts(ring, piece, ring->address + position, error));
    TRY(device_event_record(ring->device, place->copied, DEVICE_COPY, error));
    ring->end = position + place->bytes;
    ring->filled++;
    ring->next_fill++;
    return STATUS_OK;
}

static int end_of_step(const struct weight_ring *ring) {
    return ring->with_optional ? ring->options.piece_count : ring->options.optional_from;
}

/* Behind the step's last piece comes the next step's first. */
static void turn_over(struct weight_ring *ring) {
    if (ring->fills_ahead || ring->next_fill < end_of_step(ring))
        return;
    ring->fills_ahead = true;
    ring->next_fill = 0;
}

/* Whether there is a piece to copy next: of this step, or of the next as far as it is certain. */
static bool has_next(struct weight_ring *ring) {
    turn_over(ring);
    return !ring->fills_ahead || ring->next_fill < ring->options.optional_from;
}

/* Copy ahead, over places before the number `until`. */
static enum status fill(struct weight_ring *ring, uint64_t until, struct error *error) {
    while (has_next(ring)) {
        const uint64_t bytes = aligned(ring->options.pieces[ring->next_fill].byte_count);
        uint64_t position = 0;
        bool fits = find_room(ring, bytes, &position);
        while (!fits && ring->first < until) {
            TRY(drop_first(ring, error));
            fits = find_room(ring, bytes, &position);
        }
        if (!fits)
            return STATUS_OK;
        TRY(fill_at(ring, position, error));
    }
    return STATUS_OK;
}

/* Places that may be overwritten without the calling thread waiting for what was queued last. */
static uint64_t droppable(const struct weight_ring *ring) {
    return ring->options.pinned || ring->taken == ring->first ? ring->taken : ring->taken - 1;
}

/* ---- life ---- */

static enum status check_pieces(const struct weight_ring_options *options, struct error *error) {
    uint64_t largest = 0;
    for (int i = 0; i < options->piece_count; i++) {
        const uint64_t bytes = aligned(options->pieces[i].byte_count);
        largest = bytes > largest ? bytes : largest;
    }
    return largest <= options->ring_bytes ? STATUS_OK
                                          : too_little(largest, options->ring_bytes, error);
}

static enum status set_up(struct weight_ring *ring, struct error *error) {
    TRY(check_pieces(&ring->options, error));
    for (int i = 0; i < PLACES_MAX; i++) {
        TRY(device_event_create(ring->device, false, &ring->places[i].copied, error));
        TRY(device_event_create(ring->device, false, &ring->places[i].used, error));
    }
    TRY(device_memory_alloc(ring->device, DEVICE_MEMORY_STAGING, ring->options.ring_bytes,
                            &ring->address, error));
    return fill(ring, 0, error);
}

enum status weight_ring_create(struct device *device, const struct weight_ring_options *options,
                               struct weight_ring **created, struct error *error) {
    struct weight_ring *ring = calloc(1, sizeof *ring);
    if (!ring)
        return error_no_memory(error, "streamed weights");
    ring->device = device;
    ring->options = *options;
    ring->fills_ahead = true;
    ring->at_end = true;
    const enum status status = set_up(ring, error);
    if (status != STATUS_OK) {
        weight_ring_destroy(ring);
        return status;
    }
    *created = ring;
    return STATUS_OK;
}

void weight_ring_destroy(struct weight_ring *ring) {
    if (!ring)
        return;
    for (int i = 0; i < PLACES_MAX; i++) {
        device_event_destroy(ring->device, ring->places[i].copied);
        device_event_destroy(ring->device, ring->places[i].used);
    }
    device_memory_free(ring->device, ring->address);
    free(ring);
}

/* ---- steps ---- */

/* A step was given up: nothing of it is waited for, so both streams must have come to rest. */
static enum status forget(struct weight_ring *ring, struct error *error) {
    TRY(device_synchronize(ring->device, DEVICE_COMPUTE, error));
    TRY(device_synchronize(ring->device, DEVICE_COPY, error));
    ring->first = ring->taken = ring->filled;
    ring->in_use = false;
    ring->next_fill = 0;
    ring->fills_ahead = true;
    return STATUS_OK;
}

enum status weight_ring_begin(struct weight_ring *ring, bool with_optional, struct error *error) {
    if (!ring->at_end)
        TRY(forget(ring, error));
    turn_over(ring);
    assert(ring->fills_ahead);
    ring->fills_ahead = false;
    ring->with_optional = with_optional;
    ring->at_end = end_of_step(ring) == 0;
    return fill(ring, droppable(ring), error);
}

enum status weight_ring_take(struct weight_ring *ring, int piece, uint64_t *address,
                             struct error *error) {
    assert(!ring->in_use && !ring->at_end);
    if (ring->taken == ring->filled)
        TRY(fill(ring, ring->taken, error));
    const struct place *place = place_of(ring, ring->taken);
    assert(ring->taken < ring->filled && place->piece == piece);
    (void)piece;
    TRY(device_event_wait(ring->device, place->copied, DEVICE_COMPUTE, error));
    ring->in_use = true;
    *address = ring->address + place->position;
    return STATUS_OK;
}

enum status weight_ring_give_back(struct weight_ring *ring, struct error *error) {
    assert(ring->in_use);
    const struct place *place = place_of(ring, ring->taken);
    TRY(device_event_record(ring->device, place->used, DEVICE_COMPUTE, error));
    ring->in_use = false;
    ring->taken++;
    ring->at_end = place->piece + 1 == end_of_step(ring);
    return fill(ring, droppable(ring), error);
}

uint64_t weight_ring_copied(const struct weight_ring *ring) {
    return ring->copied_bytes;
}
