/* Attention over pages of bf16, from compute capability 8.0. */
#include "gpu/kernels/ptx.cuh"
#include "gpu/kernels/attention_paged.cuh"

ATTENTION_KERNELS(attention_prefill_bf16, KV_ELEMENT_BF16, false)
ATTENTION_KERNELS(attention_decode_bf16, KV_ELEMENT_BF16, true)
