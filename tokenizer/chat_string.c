/* Strings with origins. A concatenation is written out where its owner reads it, with an explicit
 * stack: a template can make one a million halves deep. Writing out caches the bytes in the node.
 */
#include "tokenizer/chat_string.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static struct chat_string *new_string(struct arena *arena, size_t length) {
    struct chat_string *string = arena_calloc(arena, 1, sizeof *string);
    if (string) {
        string->length = length;
        string->bytes = "";
    }
    return string;
}

struct chat_string *chat_string_borrow(struct arena *arena, struct view bytes,
                                       enum text_origin origin) {
    struct chat_string *string = new_string(arena, bytes.length);
    if (string && bytes.length > 0)
        string->bytes = bytes.bytes;
    if (string)
        string->origin = origin;
    return string;
}

struct chat_string *chat_string_from_marked(struct arena *arena, const struct marked_text *marked) {
    struct chat_string *string =
        chat_string_borrow(arena, text_view(&marked->text), ORIGIN_TEMPLATE);
    if (!string || marked->span_count == 0)
        return string;
    string->origin = marked->spans[0].origin;
    if (marked->span_count == 1)
        return string;
    struct chat_run *runs = arena_calloc(arena, marked->span_count, sizeof *runs);
    if (!runs)
        return NULL;
    size_t end = 0;
    for (size_t i = 0; i < marked->span_count; i++) {
        end += marked->spans[i].length;
        runs[i] = (struct chat_run){end, marked->spans[i].origin};
    }
    string->runs = runs;
    string->run_count = marked->span_count;
    return string;
}

const struct chat_string *chat_string_concat(struct arena *arena, const struct chat_string *left,
                                             const struct chat_string *right) {
    if (left->length == 0)
        return right;
    if (right->length == 0)
        return left;
    if (left->length > SIZE_MAX - right->length)
        return NULL;
    struct chat_string *string = new_string(arena, left->length + right->length);
    if (!string)
        return NULL;
    string->bytes = NULL;
    string->left = left;
    string->right = right;
    return string;
}

struct view chat_string_view(const struct chat_string *flat) {
    return (struct view){flat->bytes, flat->length};
}

enum text_origin chat_string_origin(const struct chat_string *flat, size_t position, size_t *end) {
    if (!flat->runs) {
        *end = flat->length;
        return flat->origin;
    }
    size_t low = 0;
    size_t high = flat->run_count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (flat->runs[middle].end > flat->run_base + position)
            high = middle;
        else
            low = middle + 1;
    }
    size_t run_end = flat->runs[low].end - flat->run_base;
    *end = run_end < flat->length ? run_end : flat->length;
    return flat->runs[low].origin;
}

const struct chat_string *chat_string_slice(struct arena *arena, const struct chat_string *string,
                                            size_t first, size_t length) {
    if (first == 0 && length == string->length)
        return string;
    struct chat_string *slice = new_string(arena, length);
    if (!slice || length == 0)
        return slice;
    slice->bytes = string->bytes + first;
    size_t end;
    slice->origin = chat_string_origin(string, first, &end);
    if (end < first + length) {
        slice->runs = string->runs;
        slice->run_count = string->run_count;
        slice->run_base = string->run_base + first;
    }
    return slice;
}

/* The parts of a concatenation, left to right. */
struct leaf_walk {
    const struct chat_string **pending;
    size_t count, capacity;
};

static bool push_leaf(struct leaf_walk *walk, const struct chat_string *string) {
    if (walk->count == walk->capacity) {
        size_t capacity = walk->capacity ? walk->capacity * 2 : 32;
        const struct chat_string **grown = realloc(walk->pending, capacity * sizeof(*grown));
        if (!grown)
            return false;
        walk->pending = grown;
        walk->capacity = capacity;
    }
    walk->pending[walk->count++] = string;
    return true;
}

/* Call `visit` for every flat part; false when it says so or memory runs out. */
static bool each_leaf(const struct chat_string *string,
                      bool (*visit)(void *context, const struct chat_string *leaf), void *context) {
    struct leaf_walk walk = {0};
    bool going = push_leaf(&walk, string);
    while (going && walk.count > 0) {
        const struct chat_string *next = walk.pending[--walk.count];
        if (next->bytes)
            going = visit(context, next);
        else
            going = push_leaf(&walk, next->right) && push_leaf(&walk, next->left);
    }
    free(walk.pending);
    return going;
}

static bool write_leaf(void *context, const struct chat_string *leaf) {
    size_t position = 0;
    while (position < leaf->length) {
        size_t end;
        enum text_origin origin = chat_string_origin(leaf, position, &end);
        if (!marked_text_append(context, leaf->bytes + position, end - position, origin))
            return false;
        position = end;
    }
    return true;
}

bool chat_string_write(const struct chat_string *string, struct marked_text *out) {
    return each_leaf(string, write_leaf, out);
}

static bool build_leaf(void *context, const struct chat_string *leaf) {
    struct chat_string_builder *builder = context;
    chat_string_builder_append_slice(builder, leaf, 0, leaf->length);
    return !builder->failed;
}

const struct chat_string *chat_string_flatten(struct arena *arena,
                                              const struct chat_string *string) {
    if (string->bytes)
        return string;
    struct chat_string_builder builder;
    chat_string_builder_init(&builder, arena);
    builder.bytes = arena_alloc(arena, string->length);
    builder.capacity = string->length;
    if (!builder.bytes || !each_leaf(string, build_leaf, &builder))
        return NULL;
    const struct chat_string *flat = chat_string_builder_finish(&builder);
    if (flat)
        *(struct chat_string *)(uintptr_t)string = *flat; /* a node of this render's own arena */
    return flat;
}

size_t chat_string_character(const char *bytes, size_t length, int32_t *character) {
    if ((unsigned char)bytes[0] < 0x80) {
        *character = bytes[0];
        return 1;
    }
    utf8proc_int32_t decoded;
    utf8proc_ssize_t used = utf8proc_iterate((const utf8proc_uint8_t *)bytes,
                                             length > 4 ? 4 : (utf8proc_ssize_t)length, &decoded);
    *character = used > 0 ? decoded : -1;
    return used > 0 ? (size_t)used : 1;
}

size_t chat_string_count(struct view bytes) {
    size_t count = 0;
    int32_t character;
    for (size_t i = 0; i < bytes.length; count++)
        i += chat_string_character(bytes.bytes + i, bytes.length - i, &character);
    return count;
}

size_t chat_string_offset(struct view bytes, size_t index) {
    size_t offset = 0;
    int32_t character;
    for (size_t i = 0; i < index && offset < bytes.length; i++)
        offset += chat_string_character(bytes.bytes + offset, bytes.length - offset, &character);
    return offset;
}

bool chat_string_is_space(int32_t character) {
    if (character < 0x80)
        return (character >= 0x09 && character <= 0x0D) || (character >= 0x1C && character <= 0x20);
    return character == 0x85 || character == 0xA0 || character == 0x1680 ||
           (character >= 0x2000 && character <= 0x200A) || character == 0x2028 ||
           character == 0x2029 || character == 0x202F || character == 0x205F || character == 0x3000;
}

size_t chat_string_find(struct view bytes, struct view needle, size_t from) {
    if (from > bytes.length || needle.length > bytes.length - from)
        return SIZE_MAX;
    if (needle.length == 0)
        return from;
    const char *found =
        memmem(bytes.bytes + from, bytes.length - from, needle.bytes, needle.length);
    return found ? (size_t)(found - bytes.bytes) : SIZE_MAX;
}

void chat_string_builder_init(struct chat_string_builder *builder, struct arena *arena) {
    *builder = (struct chat_string_builder){.arena = arena};
}

/* Room for `count` more items of `size` bytes; the old place is left to the arena. */
static void *grow(struct chat_string_builder *builder, void *items, size_t used, size_t *capacity,
                  size_t needed) {
    if (needed <= *capacity)
        return items;
    size_t grown = *capacity < 64 ? 64 : *capacity * 2;
    if (grown < needed)
        grown = needed;
    void *place = arena_alloc(builder->arena, grown);
    if (!place) {
        builder->failed = true;
        return items;
    }
    if (used > 0)
        memcpy(place, items, used);
    *capacity = grown;
    return place;
}

static void append_run(struct chat_string_builder *builder, enum text_origin origin) {
    size_t count = builder->run_count;
    if (count > 0 && builder->runs[count - 1].origin == origin) {
        builder->runs[count - 1].end = builder->length;
        return;
    }
    builder->runs = grow(builder, builder->runs, count * sizeof *builder->runs,
                         &builder->run_capacity, (count + 1) * sizeof *builder->runs);
    if (!builder->failed)
        builder->runs[builder->run_count++] = (struct chat_run){builder->length, origin};
}

void chat_string_builder_append(struct chat_string_builder *builder, struct view bytes,
                                enum text_origin origin) {
    if (builder->failed || bytes.length == 0)
        return;
    if (bytes.length > SIZE_MAX / 2 - builder->length) {
        builder->failed = true;
        return;
    }
    builder->bytes = grow(builder, builder->bytes, builder->length, &builder->capacity,
                          builder->length + bytes.length);
    if (builder->failed)
        return;
    memcpy(builder->bytes + builder->length, bytes.bytes, bytes.length);
    builder->length += bytes.length;
    append_run(builder, origin);
}

void chat_string_builder_append_text(struct chat_string_builder *builder, const char *text) {
    chat_string_builder_append(builder, view_of(text), ORIGIN_TEMPLATE);
}

void chat_string_builder_append_slice(struct chat_string_builder *builder,
                                      const struct chat_string *flat, size_t first, size_t length) {
    size_t position = first;
    while (position < first + length && !builder->failed) {
        size_t end;
        enum text_origin origin = chat_string_origin(flat, position, &end);
        if (end > first + length)
            end = first + length;
        chat_string_builder_append(builder, (struct view){flat->bytes + position, end - position},
                                   origin);
        position = end;
    }
}

const struct chat_string *chat_string_builder_finish(struct chat_string_builder *builder) {
    if (builder->failed)
        return NULL;
    struct chat_string *string = new_string(builder->arena, builder->length);
    if (!string || builder->length == 0)
        return string;
    string->bytes = builder->bytes;
    string->origin = builder->runs[0].origin;
    if (builder->run_count > 1) {
        string->runs = builder->runs;
        string->run_count = builder->run_count;
    }
    return string;
}
