/* Bump allocation in malloc'ed chunks. A request larger than a chunk gets a chunk of its own. */
#include "core/base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGNMENT = 16 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t capacity; /* bytes after the header */
    size_t used;
    size_t padding; /* keeps the header a multiple of the alignment */
};

void arena_init(struct arena *arena, size_t chunk_bytes, size_t max_bytes) {
    *arena = (struct arena){.chunk_bytes = chunk_bytes, .max_bytes = max_bytes};
}

void arena_deinit(struct arena *arena) {
    while (arena->head) {
        struct arena_chunk *next = arena->head->next;
        free(arena->head);
        arena->head = next;
    }
    arena->used_bytes = 0;
}

void arena_reset(struct arena *arena) {
    struct arena_chunk *kept = NULL;
    while (arena->head) {
        struct arena_chunk *next = arena->head->next;
        if (!kept && arena->head->capacity == arena->chunk_bytes)
            kept = arena->head;
        else
            free(arena->head);
        arena->head = next;
    }
    arena->used_bytes = 0;
    if (kept) {
        kept->next = NULL;
        kept->used = 0;
        arena->head = kept;
        arena->used_bytes = sizeof *kept + kept->capacity;
    }
}

static struct arena_chunk *add_chunk(struct arena *arena, size_t bytes) {
    size_t capacity = bytes > arena->chunk_bytes ? bytes : arena->chunk_bytes;
    size_t total = capacity + sizeof(struct arena_chunk);
    if (total < capacity || total > arena->max_bytes - arena->used_bytes)
        return NULL;
    struct arena_chunk *chunk = malloc(total);
    if (!chunk)
        return NULL;
    *chunk = (struct arena_chunk){.next = arena->head, .capacity = capacity};
    arena->head = chunk;
    arena->used_bytes += total;
    return chunk;
}

void *arena_alloc(struct arena *arena, size_t bytes) {
    if (bytes > SIZE_MAX - ARENA_ALIGNMENT - sizeof(struct arena_chunk))
        return NULL;
    size_t rounded = (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    struct arena_chunk *chunk = arena->head;
    if (!chunk || chunk->capacity - chunk->used < rounded)
        chunk = add_chunk(arena, rounded);
    if (!chunk)
        return NULL;
    void *result = (char *)(chunk + 1) + chunk->used;
    chunk->used += rounded;
    return result;
}

void *arena_calloc(struct arena *arena, size_t count, size_t size) {
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    void *result = arena_alloc(arena, count * size);
    if (result)
        memset(result, 0, count * size);
    return result;
}

char *arena_copy_text(struct arena *arena, const char *bytes, size_t length) {
    char *copy = length < SIZE_MAX ? arena_alloc(arena, length + 1) : NULL;
    if (!copy)
        return NULL;
    if (length > 0)
        memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}
