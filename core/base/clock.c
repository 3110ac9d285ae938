/* The two clocks of the C library behind the contract of clock.h. */
#include "core/base/clock.h"

#include <time.h>

int64_t clock_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

double clock_ms_between(int64_t start_ns, int64_t end_ns) {
    return (double)(end_ns - start_ns) * 1e-6;
}

void clock_wall_text(char *buffer, size_t buffer_bytes) {
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    if (strftime(buffer, buffer_bytes, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0 && buffer_bytes > 0)
        buffer[0] = '\0';
}
