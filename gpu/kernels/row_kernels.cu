/* Kernels over the rows of a step that are not matmuls or attention. All wait for memory: the
 * roofline of each is the bytes it names over the device's bandwidth. Sums are taken in an order
 * that depends on the width alone, so a row's bits are its own. */
#include "gpu/launch_config.h"
#include "gpu/kernels/numbers.cuh"

/* Bytes of a row: 4 width in, 8 width more with a residual, 2 or 4 width out. The row is read again
 * for the output, from the first-level cache. */
struct norm_row {
    const rms_norm_arguments &arguments;
    int64_t base;
    float scale;

    /* x at this column: after the first pass it lies in the residual where there is one. */
    __device__ __forceinline__ float first(int column) const {
        float x = numbers_load(arguments.in, base + column, scale, arguments.bias, column);
        if (arguments.residual) {
            x += arguments.residual[base + column];
            arguments.residual[base + column] = x;
        }
        return x;
    }
    __device__ __forceinline__ float again(int column) const {
        return arguments.residual
                   ? arguments.residual[base + column]
                   : numbers_load(arguments.in, base + column, scale, arguments.bias, column);
    }
};

/* How an fp16 row is divided, noted where the host looks; all threads call it with the row's
 * largest size. */
__device__ __forceinline__ float note_row_scale(float most, int out_element, float *out_scale,
                                                uint32_t *counters) {
    bool may = out_element == ELEMENT_F16 && out_scale;
    float divisor = may ? numbers_row_divisor(most) : 1.0f;
    if (threadIdx.x == 0) {
        if (out_scale)
            out_scale[blockIdx.x] = divisor;
        if (counters && divisor != 1.0f)
            atomicAdd(&counters[COUNTER_SCALED_ROWS], 1u);
        if (counters && out_element == ELEMENT_F16 && !may && most > NUMBERS_F16_MAX)
            atomicAdd(&counters[COUNTER_OVERFLOWED_VALUES], 1u);
    }
    return divisor;
}

extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    rms_norm(const __grid_constant__ rms_norm_arguments arguments) {
    __shared__ float sums[ROW_THREADS / 32], mosts[ROW_THREADS / 32];
    int64_t base = (int64_t)blockIdx.x * arguments.width;
    norm_row row = {arguments, base, arguments.row_scale ? arguments.row_scale[blockIdx.x] : 1.0f};
    float sum = 0;
    for (int column = threadIdx.x; column < arguments.width; column += ROW_THREADS) {
        float x = row.first(column);
        sum = fmaf(x, x, sum);
    }
    sum = numbers_block<ROW_THREADS, false>(sum, sums);
    float factor = rsqrtf(sum / (float)arguments.width + arguments.epsilon);
    float most = 0;
    if (arguments.out_element == ELEMENT_F16) {
        for (int column = threadIdx.x; column < arguments.width; column += ROW_THREADS)
            most = fmaxf(most, fabsf(row.again(column) * factor * arguments.weight[column]));
        most = numbers_block<ROW_THREADS, true>(most, mosts);
    }
    factor /= note_row_scale(most, arguments.out_element, arguments.out_scale, arguments.counters);
    for (int column = threadIdx.x; column < arguments.width; column += ROW_THREADS)
        numbers_store(arguments.out, arguments.out_element, base + column,
                      row.again(column) * factor * arguments.weight[column]);
}

/* Bytes: 4 columns (split_count + 1), 4 more where it accumulates. */
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    finish(const __grid_constant__ finish_arguments arguments) {
    int64_t count = (int64_t)arguments.rows * arguments.columns;
    NUMBERS_FOR_EACH(index, count) {
        int64_t row = index / arguments.columns;
        float sum = arguments.parts[index];
        for (int split = 1; split < arguments.split_count; split++)
            sum += arguments.parts[split * count + index];
        float scale = arguments.row_scale ? arguments.row_scale[row] : 1.0f;
        float value = __fmul_rn(sum, scale);
        if (arguments.bias)
            value = __fadd_rn(value, arguments.bias[index % arguments.columns]);
        arguments.out[index] = arguments.accumulate ? arguments.out[index] + value : value;
    }
}

/* x / (1 + e^−x), and x / (1 + e^−2u), u = sqrt(2/π) (x + 0.044715 x³). An infinite gate stays
 * so: what is not finite must not pass as 0. */
__device__ __forceinline__ float gate_value(float x, int gate) {
    float power = gate == KERNEL_GATE_SILU ? x : 1.59576912f * fmaf(0.044715f * x * x, x, x);
    return x / (1.0f + ptx_exp2(fminf(-NUMBERS_LOG2E * power, 126.0f)));
}

/* Bytes of a row: 8 width in, 2 or 4 width out. */
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    gated_activation(const __grid_constant__ gated_activation_arguments arguments) {
    __shared__ float mosts[ROW_THREADS / 32];
    int width = arguments.width;
    int64_t in = (int64_t)blockIdx.x * 2 * width, out = (int64_t)blockIdx.x * width;
    float scale = arguments.row_scale ? arguments.row_scale[blockIdx.x] : 1.0f, most = 0;
    for (int column = threadIdx.x; column < width; column += ROW_THREADS) {
        float gate = numbers_load(arguments.gate_up, in + column, scale, arguments.bias, column);
        float up = numbers_load(arguments.gate_up, in + width + column, scale, arguments.bias,
                                width + column);
        float value = gate_value(gate, arguments.gate) * up;
        most = fmaxf(most, fabsf(value));
        numbers_store(arguments.out, arguments.out_element, out + column, value);
    }
    most = numbers_block<ROW_THREADS, true>(most, mosts);
    float divisor =
        note_row_scale(most, arguments.out_element, arguments.out_scale, arguments.counters);
    if (divisor == 1.0f)
        return;
    float factor = 1.0f / divisor;
    for (int column = threadIdx.x; column < width; column += ROW_THREADS) {
        float gate = numbers_load(arguments.gate_up, in + column, scale, arguments.bias, column);
        float up = numbers_load(arguments.gate_up, in + width + column, scale, arguments.bias,
                                width + column);
        numbers_store(arguments.out, arguments.out_element, out + column,
                      gate_value(gate, arguments.gate) * up * factor);
    }
}

/* Bytes: 8 count. */
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    softcap(const __grid_constant__ softcap_arguments arguments) {
    NUMBERS_FOR_EACH(index, arguments.count)
    arguments.values[index] = arguments.cap * numbers_tanh(arguments.values[index] / arguments.cap);
}

/* Bytes: 2 rows × row_bytes. */
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    gather_rows(const __grid_constant__ gather_rows_arguments arguments) {
    int64_t words = arguments.row_bytes / 4;
    NUMBERS_FOR_EACH(index, words * arguments.rows) {
        int64_t row = index / words, word = index % words, from = arguments.indices[row];
        ((uint32_t *)arguments.out)[index] =
            ((const uint32_t *)(arguments.in + from * arguments.row_bytes))[word];
        if (word == 0 && arguments.scale_out)
            arguments.scale_out[row] = arguments.scale_in ? arguments.scale_in[from] : 1.0f;
    }
}

/* The better of two candidates: the larger value, the lower index on ties. */
struct candidate {
    float value;
    int index;
};

__device__ __forceinline__ candidate better(candidate a, candidate b) {
    bool second = b.value > a.value || (b.value == a.value && b.index < a.index);
    return second ? b : a;
}

/* Bytes of a row: 4 count. */
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    argmax(const __grid_constant__ argmax_arguments arguments) {
    __shared__ float values[ROW_THREADS / 32];
    __shared__ int indices[ROW_THREADS / 32];
    const float *row = arguments.values + (int64_t)blockIdx.x * arguments.stride;
    candidate best = {-NUMBERS_INFINITY, 0x7fffffff};
    bool sound = true;
    for (int i = threadIdx.x; i < arguments.count; i += ROW_THREADS) {
        float value = row[i];
        sound = sound && value < NUMBERS_INFINITY; /* false for a NaN */
        best = better(best, {value, i});
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        best = better(best, {__shfl_xor_sync(0xffffffffu, best.value, distance),
                             __shfl_xor_sync(0xffffffffu, best.index, distance)});
    if (threadIdx.x % 32 == 0) {
        values[threadIdx.x / 32] = best.value;
        indices[threadIdx.x / 32] = best.index;
    }
    sound = __syncthreads_and(sound);
    if (threadIdx.x != 0)
        return;
    for (int i = 1; i < ROW_THREADS / 32; i++)
        best = better(best, {values[i], indices[i]});
    arguments.finite[blockIdx.x] = sound && best.value > -NUMBERS_INFINITY;
    arguments.ids[blockIdx.x] = best.index < arguments.count ? best.index : 0;
}
