/* Messages to the user below results: one sink (stderr in cmd/), level by how often an event
 * occurs: error and warning a run, info a run, debug a document or step. Thread-safe; never used
 * for results. */
#ifndef CORE_BASE_LOG_H
#define CORE_BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

struct log {
    enum log_level level; /* the most detailed level still written */
    void (*sink)(void *context, enum log_level level, const char *message);
    void *context;
};

/* `log` may be NULL: nothing is written. */
void log_write(struct log *log, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
