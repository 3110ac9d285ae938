/* Kernels that decode weight blocks without multiplying: rows of the embedding, and whole matrices
 * to 16 bits for the library's matmul. Both wait for memory. */
#include "gpu/launch_config.h"
#include "gpu/kernels/block_formats.cuh"

/* Bytes: rows × (row_bytes + 4 width). */
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    embed(const __grid_constant__ embed_arguments arguments) {
    int eights = arguments.width / 8;
    NUMBERS_FOR_EACH(index, (int64_t)arguments.rows * eights) {
        int64_t row = index / eights;
        int column = (int)(index % eights) * 8, token = arguments.tokens[row];
        float values[8];
        if (token >= 0 && token < arguments.vocab) {
            block_decode_any(arguments.type, arguments.table + token * arguments.row_bytes, column,
                             values);
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++)
                values[i] = NUMBERS_NAN;
        }
        float4 *out = (float4 *)(arguments.out + row * arguments.width + column);
        float scale = arguments.scale;
        out[0] =
            make_float4(values[0] * scale, values[1] * scale, values[2] * scale, values[3] * scale);
        out[1] =
            make_float4(values[4] * scale, values[5] * scale, values[6] * scale, values[7] * scale);
    }
}

/* Bytes: rows × (row_bytes + 2 columns). */
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    dequantise(const __grid_constant__ dequantise_arguments arguments) {
    int eights = arguments.columns / 8;
    NUMBERS_FOR_EACH(index, arguments.rows * eights) {
        int64_t row = index / eights;
        int column = (int)(index % eights) * 8;
        float values[8];
        block_decode_any(arguments.type, arguments.blocks + row * arguments.row_bytes, column,
                         values);
        uint32_t pairs[4];
        bool half = arguments.out_element == ELEMENT_F16, lost = false;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float low = values[2 * i], high = values[2 * i + 1];
            pairs[i] = half ? ptx_pack<ELEMENT_F16>(low, high) : ptx_pack<ELEMENT_BF16>(low, high);
            float size = fmaxf(fabsf(low), fabsf(high));
            lost = lost || (size >= 65520.0f && size < NUMBERS_INFINITY);
        }
        if (half && lost && arguments.counters)
            atomicAdd(&arguments.counters[COUNTER_OVERFLOWED_VALUES], 1u);
        int64_t at = row * arguments.out_stride + column;
        if (arguments.out_element == ELEMENT_F32) {
            float4 *out = (float4 *)((float *)arguments.out + at);
            out[0] = make_float4(values[0], values[1], values[2], values[3]);
            out[1] = make_float4(values[4], values[5], values[6], values[7]);
        } else {
            *(uint4 *)((uint16_t *)arguments.out + at) =
                make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
        }
    }
}
