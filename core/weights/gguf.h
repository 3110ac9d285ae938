/* GGUF v2 and v3 files, split files too, opened by memory map. Every count, offset, dimension
 * product and length is checked before use; a file cut at any byte is an error, never a fault.
 * Format: ggml docs/gguf.md. Refused with a name: big-endian files, v1, nested arrays, duplicate
 * keys or tensors, unknown or dead tensor types, overlapping or misaligned tensors. */
#ifndef CORE_WEIGHTS_GGUF_H
#define CORE_WEIGHTS_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/file_map.h"
#include "core/base/text.h"
#include "core/weights/tensor.h"

enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64
};

struct gguf;

/* One metadata value; arrays keep packed elements in the map. */
struct gguf_value {
    const char *key; /* NUL-terminated copy */
    enum gguf_type type;
    enum gguf_type element_type; /* arrays; otherwise equal to type */
    uint64_t count;              /* arrays: elements; otherwise 1 */
    const uint8_t *bytes;        /* packed little-endian value(s); strings: u64 length + bytes */
    size_t byte_count;
};

/* `path` may be any shard of a split file (name-00001-of-0000N.gguf): all shards are opened. */
enum status gguf_open(const char *path, struct gguf **gguf, struct error *error);
void gguf_close(struct gguf *gguf); /* NULL is fine */

size_t gguf_value_count(const struct gguf *gguf);
const struct gguf_value *gguf_value_at(const struct gguf *gguf, size_t index);
const struct gguf_value *gguf_find(const struct gguf *gguf, const char *key); /* or NULL */

/* Scalar reads: any integer width (or bool) converts when it fits, false otherwise. */
bool gguf_read_u64(const struct gguf_value *value, uint64_t *out);
bool gguf_read_i64(const struct gguf_value *value, int64_t *out);
bool gguf_read_f64(const struct gguf_value *value, double *out); /* integers convert too */
bool gguf_read_bool(const struct gguf_value *value, bool *out);
bool gguf_read_string(const struct gguf_value *value, struct view *out); /* borrowed */

/* Array element reads; index < count. Wrong element kinds give false. */
bool gguf_read_array_i64(const struct gguf_value *value, uint64_t index, int64_t *out);
bool gguf_read_array_f64(const struct gguf_value *value, uint64_t index, double *out);
/* All strings of an array at once (they are variable-length); out: [count] views into the map. */
bool gguf_read_array_strings(const struct gguf_value *value, struct view *out);

size_t gguf_tensor_count(const struct gguf *gguf);
const struct tensor *gguf_tensor_at(const struct gguf *gguf, size_t index);       /* file order */
const struct tensor *gguf_find_tensor(const struct gguf *gguf, const char *name); /* or NULL */

/* Sum of the files' sizes; the shards' paths. */
uint64_t gguf_file_bytes(const struct gguf *gguf);
size_t gguf_file_count(const struct gguf *gguf);
const char *gguf_file_path(const struct gguf *gguf, size_t index);
/* The file as mapped, and how many of its bytes come before the first tensor's. */
const struct file_map *gguf_file_map(const struct gguf *gguf, size_t index);
size_t gguf_file_header_bytes(const struct gguf *gguf, size_t index);

/* A row's bytes, [row_bytes], without making their surroundings resident. The tensor is the file's.
 */
void gguf_copy_row(const struct gguf *gguf, const struct tensor *tensor, uint64_t row,
                   uint8_t *out);

/* Bytes were copied elsewhere, or are not needed soon: their pages need not stay in memory. */
void gguf_forget_all(const struct gguf *gguf);
void gguf_forget_tensor(const struct gguf *gguf, const struct tensor *tensor);
void gguf_forget_rows(const struct gguf *gguf, const struct tensor *tensor, uint64_t row_first,
                      uint64_t row_count);

#endif
