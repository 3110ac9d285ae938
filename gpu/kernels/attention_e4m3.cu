/* Attention over pages of e4m3. */
#include "gpu/kernels/ptx.cuh"
#include "gpu/kernels/attention_paged.cuh"

ATTENTION_KERNELS(attention_prefill_e4m3, KV_ELEMENT_E4M3, false)
ATTENTION_KERNELS(attention_decode_e4m3, KV_ELEMENT_E4M3, true)
