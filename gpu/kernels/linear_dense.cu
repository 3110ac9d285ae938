/* Matmuls over plain weights, rounded to the matmul's element as they are read: what runs where
 * there is no library. */
#include "gpu/kernels/linear_blocks.cuh"

LINEAR_KERNELS(f32, WEIGHT_F32)
LINEAR_KERNELS(f16, WEIGHT_F16)
LINEAR_KERNELS(bf16, WEIGHT_BF16)
