/* Typed reads of metadata. Writers disagree on integer widths (u32 here, u64 there), so any width
 * is read as long as the value fits. */
#include <string.h>

#include "core/weights/gguf.h"
#include "core/weights/gguf_parse.h"
#include "core/weights/quant_load.h"

/* A decoded element: an integer with its sign, or a float. */
struct number {
    enum { NUMBER_UNSIGNED, NUMBER_SIGNED, NUMBER_FLOAT, NUMBER_BOOL, NUMBER_NONE } kind;
    uint64_t u; /* unsigned and bool */
    int64_t i;
    double f;
};

static struct number unsigned_number(uint64_t value) {
    return (struct number){.kind = NUMBER_UNSIGNED, .u = value};
}

static struct number signed_number(int64_t value) {
    return (struct number){.kind = NUMBER_SIGNED, .i = value};
}

static struct number float_number(const uint8_t *bytes, enum gguf_type type) {
    struct number number = {.kind = NUMBER_FLOAT};
    if (type == GGUF_F64) {
        memcpy(&number.f, bytes, sizeof number.f);
    } else {
        float narrow;
        memcpy(&narrow, bytes, sizeof narrow);
        number.f = (double)narrow;
    }
    return number;
}

static struct number load_number(const uint8_t *bytes, enum gguf_type type) {
    switch (type) {
    case GGUF_U8:
        return unsigned_number(*bytes);
    case GGUF_U16:
        return unsigned_number(quant_load_u16(bytes));
    case GGUF_U32:
        return unsigned_number(quant_load_u32(bytes));
    case GGUF_U64:
        return unsigned_number(quant_load_u64(bytes));
    case GGUF_I8:
        return signed_number((int8_t)*bytes);
    case GGUF_I16:
        return signed_number((int16_t)quant_load_u16(bytes));
    case GGUF_I32:
        return signed_number((int32_t)quant_load_u32(bytes));
    case GGUF_I64:
        return signed_number((int64_t)quant_load_u64(bytes));
    case GGUF_F32:
    case GGUF_F64:
        return float_number(bytes, type);
    case GGUF_BOOL:
        return (struct number){.kind = NUMBER_BOOL, .u = *bytes};
    case GGUF_STRING:
    case GGUF_ARRAY:
        break;
    }
    return (struct number){.kind = NUMBER_NONE};
}

static bool number_to_u64(struct number number, uint64_t *out) {
    if (number.kind == NUMBER_UNSIGNED || number.kind == NUMBER_BOOL) {
        *out = number.u;
        return true;
    }
    if (number.kind != NUMBER_SIGNED || number.i < 0)
        return false;
    *out = (uint64_t)number.i;
    return true;
}

static bool number_to_i64(struct number number, int64_t *out) {
    if (number.kind == NUMBER_SIGNED) {
        *out = number.i;
        return true;
    }
    uint64_t wide;
    if (!number_to_u64(number, &wide) || wide > INT64_MAX)
        return false;
    *out = (int64_t)wide;
    return true;
}

static bool number_to_f64(struct number number, double *out) {
    if (number.kind == NUMBER_FLOAT)
        *out = number.f;
    else if (number.kind == NUMBER_UNSIGNED)
        *out = (double)number.u;
    else if (number.kind == NUMBER_SIGNED)
        *out = (double)number.i;
    else
        return false;
    return true;
}

static struct number scalar(const struct gguf_value *value) {
    return load_number(value->bytes, value->type);
}

static struct number element(const struct gguf_value *value, uint64_t index) {
    if (value->type != GGUF_ARRAY || index >= value->count)
        return (struct number){.kind = NUMBER_NONE};
    size_t width = gguf_parse_type_bytes(value->element_type);
    return load_number(value->bytes + index * width, value->element_type);
}

bool gguf_read_u64(const struct gguf_value *value, uint64_t *out) {
    return number_to_u64(scalar(value), out);
}

bool gguf_read_i64(const struct gguf_value *value, int64_t *out) {
    return number_to_i64(scalar(value), out);
}

bool gguf_read_f64(const struct gguf_value *value, double *out) {
    return number_to_f64(scalar(value), out);
}

bool gguf_read_bool(const struct gguf_value *value, bool *out) {
    if (value->type != GGUF_BOOL)
        return false;
    *out = *value->bytes != 0;
    return true;
}

/* The string at `bytes`; the parser has checked that it lies inside the file. */
static struct view load_string(const uint8_t *bytes) {
    return (struct view){.bytes = (const char *)bytes + 8, .length = quant_load_u64(bytes)};
}

bool gguf_read_string(const struct gguf_value *value, struct view *out) {
    if (value->type != GGUF_STRING)
        return false;
    *out = load_string(value->bytes);
    return true;
}

bool gguf_read_array_i64(const struct gguf_value *value, uint64_t index, int64_t *out) {
    return number_to_i64(element(value, index), out);
}

bool gguf_read_array_f64(const struct gguf_value *value, uint64_t index, double *out) {
    return number_to_f64(element(value, index), out);
}

bool gguf_read_array_strings(const struct gguf_value *value, struct view *out) {
    if (value->type != GGUF_ARRAY || value->element_type != GGUF_STRING)
        return false;
    const uint8_t *at = value->bytes;
    for (uint64_t i = 0; i < value->count; i++) {
        out[i] = load_string(at);
        at += 8 + out[i].length;
    }
    return true;
}
