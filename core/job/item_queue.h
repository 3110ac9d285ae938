/* The bounded queue between the stages of a job. */
#ifndef CORE_JOB_ITEM_QUEUE_H
#define CORE_JOB_ITEM_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/job/item.h"

/* A bounded queue: a full one blocks its producer, an empty one its consumer. */
struct item_queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct item *head, *tail;
    size_t count, bytes;
    size_t count_max, bytes_max;
    bool closed;    /* no more pushes: pops drain what is left */
    bool cancelled; /* pushes are refused at once */
};

void item_queue_init(struct item_queue *queue, size_t count_max, size_t bytes_max);
void item_queue_deinit(struct item_queue *queue); /* destroys what is left */

/* Takes the item over; when the queue was cancelled the item is destroyed and false is returned. */
bool item_queue_push(struct item_queue *queue, struct item *item);
/* NULL when nothing came within `wait_ms` (0: don't wait, -1: for ever), or when closed and empty.
 */
struct item *item_queue_pop(struct item_queue *queue, int wait_ms);
void item_queue_close(struct item_queue *queue);
void item_queue_cancel(struct item_queue *queue);
bool item_queue_is_drained(struct item_queue *queue); /* closed and empty */

#endif
