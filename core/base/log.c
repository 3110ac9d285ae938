/* Formats into a bounded buffer: a message longer than that is cut, never refused. */
#include "core/base/log.h"

#include <stdarg.h>
#include <stdio.h>

void log_write(struct log *log, enum log_level level, const char *format, ...) {
    if (!log || !log->sink || level > log->level)
        return;
    char message[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    log->sink(log->context, level, message);
}
