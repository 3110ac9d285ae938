/* Weights that do not stay in memory: pieces of a file, read in the order of their use into a ring
 * of memory by a thread of their own, so that the disk works while the processor computes.
 *
 * Every step takes the same pieces in the same order; only the last ones (the logits' weights) may
 * be left out of a step, all together. Reading bypasses the page cache where the file system allows
 * it: a cache that is smaller than what is read in turns would only ever hold what was needed last.
 */
#ifndef CORE_ENGINE_WEIGHT_STREAM_H
#define CORE_ENGINE_WEIGHT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* Where a piece lies in the file. */
struct weight_piece {
    uint64_t offset; /* a multiple of 64 */
    uint64_t bytes;
};

struct weight_stream_options {
    int descriptor;                    /* of the file; borrowed, outlives the stream */
    const struct weight_piece *pieces; /* [piece_count] in the order of use; copied */
    int piece_count;                   /* > 0 */
    int optional_from;   /* pieces from this one on may be left out; piece_count: none */
    uint64_t ring_bytes; /* memory of the ring */
};

/* The ring that this needs at least: room for two pieces of `bytes`. */
uint64_t weight_stream_ring_least(uint64_t bytes);

struct weight_stream;

/* Begins to read at once. */
enum status weight_stream_create(const struct weight_stream_options *options,
                                 struct weight_stream **stream, struct error *error);
void weight_stream_destroy(struct weight_stream *stream); /* NULL is fine */

/* Before a step: whether the optional pieces will be taken in it. */
void weight_stream_begin(struct weight_stream *stream, bool with_optional);

/* Waits for the next piece, which is `piece`; its bytes are 64-byte aligned and stay until it is
 * given back. One at a time. After a read has failed the bytes are undefined: see check. */
const uint8_t *weight_stream_take(struct weight_stream *stream, int piece);
void weight_stream_give_back(struct weight_stream *stream);

/* STATUS_IO: a read has failed, and nothing computed since may be used. */
enum status weight_stream_check(struct weight_stream *stream, struct error *error);

struct weight_stream_totals {
    uint64_t bytes;     /* read */
    int64_t reading_ns; /* in read calls */
    int64_t waited_ns;  /* by takers */
};

struct weight_stream_totals weight_stream_totals(struct weight_stream *stream);

/* Bytes a second that a file is read at past the page cache, as pieces are; from a few pieces
 * spread over it, 32 MiB in all. 0: it cannot be read. */
double weight_stream_rate(const char *path);

#endif
