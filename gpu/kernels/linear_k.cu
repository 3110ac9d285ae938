/* Matmuls that read 256-value blocks directly. */
#include "gpu/kernels/linear_blocks.cuh"

LINEAR_KERNELS(q2_k, WEIGHT_Q2_K)
LINEAR_KERNELS(q3_k, WEIGHT_Q3_K)
LINEAR_KERNELS(q4_k, WEIGHT_Q4_K)
LINEAR_KERNELS(q5_k, WEIGHT_Q5_K)
LINEAR_KERNELS(q6_k, WEIGHT_Q6_K)
LINEAR_KERNELS(iq4_xs, WEIGHT_IQ4_XS)
