/* Reading a tensor by rows. */
#include "core/weights/tensor.h"

#include <assert.h>

void tensor_unpack_row(const struct tensor *tensor, uint64_t row, float *out) {
    assert(row < tensor->row_count);
    const struct quant_type *type = tensor->type;
    type->unpack(tensor->bytes + row * tensor->row_bytes,
                 (size_t)(tensor->dims[0] / type->block_values), out);
}
