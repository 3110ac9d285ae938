/* Settings from FAKECUDA="capability=75,memory_bytes=8000000,lost_call=400" for programs that load
 * the library in place of libcuda and know nothing of it. A name it does not know ends the program:
 * a test must not pass for want of a setting. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fakecuda.h"

static bool set(struct fakecuda_settings *settings, const char *name, long long value) {
    if (strcmp(name, "capability") == 0)
        settings->capability = (int)value;
    else if (strcmp(name, "multiprocessors") == 0)
        settings->multiprocessors = (int)value;
    else if (strcmp(name, "memory_bytes") == 0)
        settings->memory_bytes = (uint64_t)value;
    else if (strcmp(name, "driver_version") == 0)
        settings->driver_version = (int)value;
    else if (strcmp(name, "no_device") == 0)
        settings->no_device = value != 0;
    else if (strcmp(name, "no_pinned") == 0)
        settings->no_pinned = value != 0;
    else if (strcmp(name, "order") == 0)
        settings->order = (enum fakecuda_order)value;
    else if (strcmp(name, "seed") == 0)
        settings->seed = (uint64_t)value;
    else if (strcmp(name, "host_threads") == 0)
        settings->host_threads = (int)value;
    else if (strcmp(name, "fail_call") == 0)
        settings->fail_call = value;
    else if (strcmp(name, "fail_result") == 0)
        settings->fail_result = (int)value;
    else if (strcmp(name, "lost_call") == 0)
        settings->lost_call = value;
    else
        return false;
    return true;
}

__attribute__((constructor)) static void configure_from_environment(void) {
    const char *text = getenv("FAKECUDA");
    struct fakecuda_settings settings = {0};
    char name[32];
    long long value;
    int length = 0;
    if (text == NULL)
        return;
    while (sscanf(text, "%31[a-z_]=%lld%n", name, &value, &length) == 2) {
        if (!set(&settings, name, value))
            break;
        text += length;
        if (*text == ',')
            text++;
    }
    if (*text != '\0') {
        fprintf(stderr, "FAKECUDA: cannot read '%s'\n", text);
        exit(99);
    }
    fakecuda_configure(&settings);
}
