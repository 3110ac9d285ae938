/* Coefficients of our own elementary functions: the C library picks its code by CPU, so its bits
 * differ between machines. Minimax fits of the relative error, the leading terms kept exact so that
 * exp2 of a whole number is exact and tanh of a small one is the number. Every variant evaluates
 * the same polynomials by Horner's rule; fused or not, a variant's bits are its own. */
#ifndef CORE_KERNELS_MATH_CONSTANTS_H
#define CORE_KERNELS_MATH_CONSTANTS_H

/* Adding this rounds |x| < 2^22 to a whole number, found in the low bits of the sum. */
#define MATH_ROUND_MAGIC 12582912.0f

/* 2^f on [-1/2, 1/2]: 1 + f (A1 + f (A2 + ...)), error 9.2e-8. */
#define MATH_EXP2_A1 0.693147004f
#define MATH_EXP2_A2 0.240222424f
#define MATH_EXP2_A3 0.0555073358f
#define MATH_EXP2_A4 0.00967151299f
#define MATH_EXP2_A5 0.00132647273f
/* Below this the result is 0 (or a denormal, which flushes): -inf gives exactly 0. */
#define MATH_EXP2_MIN (-127.0f)
#define MATH_EXP2_MAX 127.0f

/* e^r on |r| ≤ ln 2 / 2: 1 + r + r² (B2 + r (B3 + ...)), error 3.1e-9; ln 2 in two parts. */
#define MATH_LOG2E 1.44269504f
#define MATH_LN2_HIGH 0.693145752f
#define MATH_LN2_LOW 1.42860677e-6f
#define MATH_EXP_B2 0.49999994f
#define MATH_EXP_B3 0.166665211f
#define MATH_EXP_B4 0.041668389f
#define MATH_EXP_B5 0.00836871658f
#define MATH_EXP_B6 0.00138145988f
#define MATH_EXP_MIN (-87.3f)
#define MATH_EXP_MAX 87.3f

/* tanh x on |x| ≤ 0.55: x + x z (C1 + z (C2 + ...)), z = x², error 3.7e-8; beyond it
 * 1 - 2 / (e^2|x| + 1) loses nothing. */
#define MATH_TANH_SMALL 0.55f
#define MATH_TANH_C1 (-0.333329469f)
#define MATH_TANH_C2 0.133207247f
#define MATH_TANH_C3 (-0.0526718125f)
#define MATH_TANH_C4 0.0164375752f

/* gelu's tanh form: x / (1 + e^(-2u)), u = sqrt(2/π) (x + 0.044715 x³). */
#define MATH_GELU_TWO_ROOT 1.59576912f
#define MATH_GELU_CUBE 0.044715f

#endif
