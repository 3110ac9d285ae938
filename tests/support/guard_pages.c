/* Guarded memory by mmap: whole pages, the last one made inaccessible. */
#include "tests/support/guard_pages.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct guard_pages guard_pages_create(size_t byte_count) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t usable = (byte_count + page - 1) / page * page;
    struct guard_pages pages = {.byte_count = byte_count, .map_bytes = usable + page};
    pages.map =
        mmap(NULL, pages.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages.map == MAP_FAILED || mprotect((char *)pages.map + usable, page, PROT_NONE) != 0)
        abort();
    pages.bytes = (char *)pages.map + usable - byte_count;
    memset(pages.bytes, 0xff, byte_count);
    return pages;
}

void guard_pages_destroy(struct guard_pages *pages) {
    munmap(pages->map, pages->map_bytes);
    *pages = (struct guard_pages){0};
}
