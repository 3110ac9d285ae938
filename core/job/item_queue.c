/* The bounded queue between reader, engine and writer. One mutex and one condition: passing an item
 * is rare beside computing it. */
#include "core/job/item_queue.h"

#include <errno.h>
#include <time.h>

void item_queue_init(struct item_queue *queue, size_t count_max, size_t bytes_max) {
    *queue = (struct item_queue){.count_max = count_max, .bytes_max = bytes_max};
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void item_queue_deinit(struct item_queue *queue) {
    while (queue->head) {
        struct item *next = queue->head->next;
        item_destroy(queue->head);
        queue->head = next;
    }
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
}

/* An item larger than the whole limit passes when the queue is empty. */
static bool is_full(const struct item_queue *queue, size_t bytes) {
    return queue->count > 0 &&
           (queue->count >= queue->count_max || queue->bytes + bytes > queue->bytes_max);
}

bool item_queue_push(struct item_queue *queue, struct item *item) {
    size_t bytes = item_bytes(item);
    pthread_mutex_lock(&queue->mutex);
    while (is_full(queue, bytes) && !queue->cancelled)
        pthread_cond_wait(&queue->changed, &queue->mutex);
    bool accepted = !queue->cancelled;
    if (accepted) {
        item->next = NULL;
        if (queue->tail)
            queue->tail->next = item;
        else
            queue->head = item;
        queue->tail = item;
        queue->count++;
        queue->bytes += bytes;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    if (!accepted)
        item_destroy(item);
    return accepted;
}

static struct timespec deadline_after(int wait_ms) {
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += wait_ms / 1000;
    deadline.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_nsec -= 1000000000;
        deadline.tv_sec++;
    }
    return deadline;
}

static void wait_for_item(struct item_queue *queue, int wait_ms) {
    struct timespec deadline = deadline_after(wait_ms > 0 ? wait_ms : 0);
    while (!queue->head && !queue->closed && !queue->cancelled) {
        if (wait_ms < 0)
            pthread_cond_wait(&queue->changed, &queue->mutex);
        else if (wait_ms == 0 ||
                 pthread_cond_timedwait(&queue->changed, &queue->mutex, &deadline) == ETIMEDOUT)
            return;
    }
}

struct item *item_queue_pop(struct item_queue *queue, int wait_ms) {
    pthread_mutex_lock(&queue->mutex);
    wait_for_item(queue, wait_ms);
    struct item *item = queue->head;
    if (item) {
        queue->head = item->next;
        if (!queue->head)
            queue->tail = NULL;
        queue->count--;
        queue->bytes -= item_bytes(item);
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    return item;
}

static void set_flag(struct item_queue *queue, bool *flag) {
    pthread_mutex_lock(&queue->mutex);
    *flag = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

void item_queue_close(struct item_queue *queue) {
    set_flag(queue, &queue->closed);
}

void item_queue_cancel(struct item_queue *queue) {
    set_flag(queue, &queue->cancelled);
}

bool item_queue_is_drained(struct item_queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    bool drained = !queue->head && (queue->closed || queue->cancelled);
    pthread_mutex_unlock(&queue->mutex);
    return drained;
}
