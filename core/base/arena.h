/* Arenas: many small allocations with one lifetime (a model, a step, a document), freed together.
 * Memory comes in chunks; an arena has a stated maximum, over which allocation fails like malloc.
 */
#ifndef CORE_BASE_ARENA_H
#define CORE_BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *head; /* newest chunk first */
    size_t chunk_bytes;       /* size of an ordinary chunk */
    size_t used_bytes;        /* sum of all chunks, headers included */
    size_t max_bytes;
};

void arena_init(struct arena *arena, size_t chunk_bytes, size_t max_bytes);
void arena_deinit(struct arena *arena);

/* Keep one ordinary chunk, forget everything allocated. */
void arena_reset(struct arena *arena);

/* 16-byte aligned, uninitialised; NULL when out of memory or over the maximum. */
void *arena_alloc(struct arena *arena, size_t bytes);

/* As arena_alloc for count × size (checked for overflow), zeroed. */
void *arena_calloc(struct arena *arena, size_t count, size_t size);

/* A NUL-terminated copy of `length` bytes. */
char *arena_copy_text(struct arena *arena, const char *bytes, size_t length);

#endif
