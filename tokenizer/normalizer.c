/* NFC works on segments: a character that nothing before it can change, and the composing
 * characters after it. utf8proc supplies decompositions, combining classes and compositions; the
 * ordering of marks is done here, because utf8proc's takes quadratic time on a long run of marks.
 * Characters that the reference does not know as composing (CLASS_COMPOSES) are left alone even if
 * utf8proc, being newer, would move them. */
#include "tokenizer/normalizer.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "tokenizer/unicode_classes.h"

enum { DECOMPOSED_MAX = 4 }; /* code points of one canonical decomposition */

void normalizer_deinit(struct normalizer *normalizer) {
    free(normalizer->bytes);
    free(normalizer->edits);
    free(normalizer->code_points);
    *normalizer = (struct normalizer){0};
}

static bool append(struct normalizer *normalizer, const void *bytes, size_t length) {
    if (length > normalizer->capacity - normalizer->length) {
        size_t capacity = 2 * (normalizer->length + length) + 64;
        uint8_t *grown = realloc(normalizer->bytes, capacity);
        if (!grown)
            return false;
        normalizer->bytes = grown;
        normalizer->capacity = capacity;
    }
    if (length > 0)
        memcpy(normalizer->bytes + normalizer->length, bytes, length);
    normalizer->length += length;
    return true;
}

/* Append `length` bytes that stand for [from, from + from_length) of the old text. */
static bool append_edit(struct normalizer *normalizer, const void *bytes, size_t length,
                        size_t from, size_t from_length) {
    if (normalizer->edit_count == normalizer->edit_capacity) {
        size_t capacity = 2 * normalizer->edit_capacity + 16;
        struct normalizer_edit *edits = realloc(normalizer->edits, capacity * sizeof *edits);
        if (!edits)
            return false;
        normalizer->edits = edits;
        normalizer->edit_capacity = capacity;
    }
    uint32_t at = (uint32_t)normalizer->length;
    if (!append(normalizer, bytes, length))
        return false;
    normalizer->edits[normalizer->edit_count++] =
        (struct normalizer_edit){at, (uint32_t)length, (uint32_t)from, (uint32_t)from_length};
    return true;
}

static void begin(struct normalizer *normalizer) {
    normalizer->length = 0;
    normalizer->edit_count = 0;
}

/* The new text once `text` behind `copied` has been appended; `text` itself when nothing changed.
 */
static struct view finish(struct normalizer *normalizer, struct view text, size_t copied) {
    if (normalizer->edit_count == 0)
        return text;
    if (!append(normalizer, text.bytes + copied, text.length - copied))
        return (struct view){0};
    return (struct view){(const char *)normalizer->bytes, normalizer->length};
}

static int combining_class(int32_t code_point) {
    if (!(unicode_classes_of((uint32_t)code_point) & CLASS_COMPOSES))
        return 0;
    return utf8proc_get_property(code_point)->combining_class;
}

/* Stable order by combining class of a run of marks, counted into `sorted`. */
static void order_marks(int32_t *marks, size_t count, int32_t *sorted) {
    size_t starts[257] = {0};
    for (size_t i = 0; i < count; i++)
        starts[combining_class(marks[i]) + 1]++;
    for (int i = 1; i < 257; i++)
        starts[i] += starts[i - 1];
    for (size_t i = 0; i < count; i++)
        sorted[starts[combining_class(marks[i])]++] = marks[i];
    memcpy(marks, sorted, count * sizeof *marks);
}

static void order_all_marks(int32_t *code_points, size_t count, int32_t *sorted) {
    for (size_t first = 0; first < count;) {
        size_t end = first;
        while (end < count && combining_class(code_points[end]) != 0)
            end++;
        if (end - first > 1)
            order_marks(code_points + first, end - first, sorted);
        first = end + 1;
    }
}

/* Decompose, order and compose `segment`, well-formed UTF-8, into normalizer->code_points.
 * The number of code points, or -1: out of memory. */
static utf8proc_ssize_t compose_segment(struct normalizer *normalizer, struct view segment) {
    size_t half = segment.length * DECOMPOSED_MAX;
    if (2 * half > normalizer->code_point_capacity) {
        int32_t *grown = realloc(normalizer->code_points, 2 * half * sizeof *grown);
        if (!grown)
            return -1;
        normalizer->code_points = grown;
        normalizer->code_point_capacity = 2 * half;
    }
    const uint8_t *at = (const uint8_t *)segment.bytes;
    const uint8_t *end = at + segment.length;
    size_t count = 0;
    while (at < end) {
        struct unicode_character character = unicode_classes_read(at, end);
        utf8proc_ssize_t parts = utf8proc_decompose_char(
            character.code_point, normalizer->code_points + count, (utf8proc_ssize_t)(half - count),
            UTF8PROC_DECOMPOSE | UTF8PROC_STABLE, NULL);
        if (parts < 0)
            return -1;
        count += (size_t)parts;
        at += character.length;
    }
    order_all_marks(normalizer->code_points, count, normalizer->code_points + half);
    return utf8proc_normalize_utf32(normalizer->code_points, (utf8proc_ssize_t)count,
                                    UTF8PROC_COMPOSE | UTF8PROC_STABLE);
}

/* Normalise text[first, end); when that changes it, append what lies between *copied and it, and
 * it. */
static bool replace_segment(struct normalizer *normalizer, struct view text, size_t first,
                            size_t end, size_t *copied) {
    struct view segment = {text.bytes + first, end - first};
    utf8proc_ssize_t count = compose_segment(normalizer, segment);
    if (count < 0)
        return false;
    struct text composed;
    text_init(&composed, SIZE_MAX / 2);
    bool done = text_reserve(&composed, (size_t)count * 4 + 1);
    for (utf8proc_ssize_t i = 0; done && i < count; i++) {
        utf8proc_uint8_t bytes[4];
        utf8proc_ssize_t length = utf8proc_encode_char(normalizer->code_points[i], bytes);
        done = text_append(&composed, (const char *)bytes, (size_t)length);
    }
    if (done && !view_equal(text_view(&composed), segment)) {
        done = append(normalizer, text.bytes + *copied, first - *copied) &&
               append_edit(normalizer, composed.bytes, composed.length, first, end - first);
        *copied = end;
    }
    text_deinit(&composed);
    return done;
}

struct view normalizer_compose(struct normalizer *normalizer, struct view text) {
    begin(normalizer);
    const uint8_t *bytes = (const uint8_t *)text.bytes;
    const uint8_t *end = bytes + text.length;
    const uint8_t *base = bytes; /* the last character that does not compose, if well-formed */
    size_t copied = 0;
    for (const uint8_t *at = bytes; at < end;) {
        struct unicode_character character = unicode_classes_read(at, end);
        if (!(character.class_bits & CLASS_COMPOSES)) {
            base = character.code_point < 0 ? at + 1 : at;
            at += character.length;
            continue;
        }
        while (at < end && (character = unicode_classes_read(at, end)).class_bits & CLASS_COMPOSES)
            at += character.length;
        if (!replace_segment(normalizer, text, (size_t)(base - bytes), (size_t)(at - bytes),
                             &copied))
            return (struct view){0};
        base = at;
    }
    return finish(normalizer, text, copied);
}

struct view normalizer_spaces(struct normalizer *normalizer, struct view text, bool prefix) {
    begin(normalizer);
    size_t copied = 0;
    if (prefix && text.length > 0 && !append_edit(normalizer, " ", 1, 0, 0))
        return (struct view){0};
    const char *end = text.bytes + text.length;
    for (const char *at = text.bytes; at < end; at++) {
        at = memchr(at, 0xE2, (size_t)(end - at));
        if (!at || end - at < 3)
            break;
        if (memcmp(at, "\xE2\x96\x81", 3) != 0)
            continue;
        size_t from = (size_t)(at - text.bytes);
        if (!append(normalizer, text.bytes + copied, from - copied) ||
            !append_edit(normalizer, " ", 1, from, 3))
            return (struct view){0};
        copied = from + 3;
        at += 2;
    }
    return finish(normalizer, text, copied);
}

void normalizer_map_offsets(const struct normalizer *normalizer, uint32_t *offsets, size_t count,
                            uint32_t base) {
    size_t next = 0; /* the first edit behind the offset */
    for (size_t i = 0; i < count; i++) {
        while (next < normalizer->edit_count && normalizer->edits[next].at <= offsets[i])
            next++;
        uint32_t offset = offsets[i];
        if (next > 0) {
            const struct normalizer_edit *edit = &normalizer->edits[next - 1];
            uint32_t inside = offset - edit->at;
            offset = inside < edit->length ? edit->from
                                           : edit->from + edit->from_length + inside - edit->length;
        }
        offsets[i] = base + offset;
    }
}
