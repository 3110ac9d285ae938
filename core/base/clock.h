/* Monotonic time for durations, wall time for the summary's start and end. */
#ifndef CORE_BASE_CLOCK_H
#define CORE_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Nanoseconds on CLOCK_MONOTONIC. */
int64_t clock_now_ns(void);

/* Milliseconds between two clock_now_ns stamps. */
double clock_ms_between(int64_t start_ns, int64_t end_ns);

/* Wall time as RFC 3339 in UTC ("2026-12-01T03:34:50Z"); `buffer` holds at least 21 bytes. */
void clock_wall_text(char *buffer, size_t buffer_bytes);

#endif
