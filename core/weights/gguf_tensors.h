/* The tensor directory of one GGUF file: shapes and sizes computed with every product checked, then
 * each tensor put at its place in the data section. */
#ifndef CORE_WEIGHTS_GGUF_TENSORS_H
#define CORE_WEIGHTS_GGUF_TENSORS_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/weights/gguf_cursor.h"
#include "core/weights/tensor.h"

/* tensors[i].bytes is set by placing; until then offsets[i] says where it will be. */
struct gguf_directory {
    struct tensor *tensors; /* [count] */
    uint64_t *offsets;      /* [count] from the start of the data section */
    size_t count;
};

enum status gguf_tensors_parse(struct gguf_cursor *cursor, uint64_t count, struct arena *arena,
                               struct gguf_directory *directory, struct error *error);

/* Points every tensor at its bytes. The cursor stands behind the directory; the data section begins
 * at the next multiple of `alignment`. Refuses tensors outside the file, misaligned or overlapping.
 */
enum status gguf_tensors_place(const struct gguf_cursor *cursor, uint64_t alignment,
                               struct gguf_directory *directory, struct arena *arena,
                               struct error *error);

#endif
