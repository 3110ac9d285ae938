/* Attention over pages of int8. */
#include "gpu/kernels/ptx.cuh"
#include "gpu/kernels/attention_paged.cuh"

ATTENTION_KERNELS(attention_prefill_int8, KV_ELEMENT_INT8, false)
ATTENTION_KERNELS(attention_decode_int8, KV_ELEMENT_INT8, true)
