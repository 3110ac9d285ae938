/* What the vector kernels ask of the compiler: loops over registers must disappear, and a function
 * that takes a constant (a kind, a number of rows, a product) must become code for that constant.
 */
#ifndef CORE_KERNELS_UNROLL_H
#define CORE_KERNELS_UNROLL_H

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Before a loop of at most `n` rounds. */
#if defined(__clang__)
#define UNROLL(n) _Pragma("clang loop unroll(full)")
#else
#define UNROLL_TEXT(text) _Pragma(#text)
#define UNROLL(n) UNROLL_TEXT(GCC unroll n)
#endif

#endif
