/* Matmuls that read 32-value blocks directly. */
#include "gpu/kernels/linear_blocks.cuh"

LINEAR_KERNELS(q4_0, WEIGHT_Q4_0)
LINEAR_KERNELS(q4_1, WEIGHT_Q4_1)
LINEAR_KERNELS(q5_0, WEIGHT_Q5_0)
LINEAR_KERNELS(q5_1, WEIGHT_Q5_1)
LINEAR_KERNELS(q8_0, WEIGHT_Q8_0)
LINEAR_KERNELS(iq4_nl, WEIGHT_IQ4_NL)
