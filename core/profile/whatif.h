/* How fast the kernels would be in other shapes, measured with them, on this machine, in this
 * model's sizes: predictions of advice come from here and not from a datasheet. */
#ifndef CORE_PROFILE_WHATIF_H
#define CORE_PROFILE_WHATIF_H

#include "core/base/error.h"
#include "core/base/thread_pool.h"
#include "core/kernels/kernels.h"
#include "core/model/model.h"

enum { WHATIF_POINTS_MAX = 8 };

/* Seconds a row, by rows computed together. */
struct whatif_curve {
    int count;
    int rows[WHATIF_POINTS_MAX]; /* ascending */
    double seconds[WHATIF_POINTS_MAX];
};

/* A row's time with so many rows, between points by a straight line over the logarithm of rows. */
double whatif_at(const struct whatif_curve *curve, double rows);

struct whatif {
    struct whatif_curve matmul;        /* gate and up, the largest one of a layer */
    struct whatif_curve attention;     /* a prompt's chunk against `context` keys */
    int context;                       /* of these and of: */
    int decoding;                      /* sequences of one row each */
    double decode_bf16, decode_int8;   /* seconds of a step's attention in one layer */
    double prefill_bf16, prefill_int8; /* seconds of a chunk of 512 */
};

/* `context` as it was on average. Takes some tenths of a second. */
enum status whatif_measure(const struct model *model, const struct kernels *kernels,
                           struct thread_pool *pool, int context, struct whatif *whatif,
                           struct error *error);

#endif
