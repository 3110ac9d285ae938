/* The numbers that gpu/driver.h declares, against NVIDIA's header where the toolkit is installed.
 */
#include <criterion/criterion.h>

#include "gpu/driver.h"

#ifdef FAKECUDA_HEADERS
#include <cuda.h>

static const struct pair {
    const char *name;
    long long ours, theirs;
} pairs[] = {
    {"success", DRIVER_SUCCESS, CUDA_SUCCESS},
    {"out of memory", DRIVER_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY},
    {"deinitialized", DRIVER_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED},
    {"no device", DRIVER_NO_DEVICE, CUDA_ERROR_NO_DEVICE},
    {"no binary", DRIVER_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU},
    {"ecc", DRIVER_ECC_UNCORRECTABLE, CUDA_ERROR_ECC_UNCORRECTABLE},
    {"invalid ptx", DRIVER_INVALID_PTX, CUDA_ERROR_INVALID_PTX},
    {"nvlink", DRIVER_NVLINK_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE},
    {"ptx version", DRIVER_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
    {"illegal address", DRIVER_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS},
    {"timeout", DRIVER_LAUNCH_TIMEOUT, CUDA_ERROR_LAUNCH_TIMEOUT},
    {"destroyed", DRIVER_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED},
    {"assert", DRIVER_ASSERT, CUDA_ERROR_ASSERT},
    {"stack", DRIVER_HARDWARE_STACK_ERROR, CUDA_ERROR_HARDWARE_STACK_ERROR},
    {"instruction", DRIVER_ILLEGAL_INSTRUCTION, CUDA_ERROR_ILLEGAL_INSTRUCTION},
    {"misaligned", DRIVER_MISALIGNED_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS},
    {"space", DRIVER_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_ADDRESS_SPACE},
    {"pc", DRIVER_INVALID_PC, CUDA_ERROR_INVALID_PC},
    {"launch failed", DRIVER_LAUNCH_FAILED, CUDA_ERROR_LAUNCH_FAILED},
    {"unknown", DRIVER_UNKNOWN, CUDA_ERROR_UNKNOWN},
    {"multiprocessors", DRIVER_ATTRIBUTE_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {"major", DRIVER_ATTRIBUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {"minor", DRIVER_ATTRIBUTE_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {"shared", DRIVER_ATTRIBUTE_SHARED_BYTES_OPTIN,
     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    {"dynamic shared", DRIVER_FUNCTION_DYNAMIC_SHARED_BYTES,
     CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES},
    {"log", DRIVER_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER},
    {"log bytes", DRIVER_JIT_ERROR_LOG_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES},
    {"stream", DRIVER_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING},
    {"event", DRIVER_EVENT_NO_TIMING, CU_EVENT_DISABLE_TIMING},
    {"capture", DRIVER_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
    {"read-only", DRIVER_REGISTER_READ_ONLY, CU_MEMHOSTREGISTER_READ_ONLY},
    {"end", DRIVER_LAUNCH_END, CU_LAUNCH_PARAM_END_AS_INT},
    {"buffer", DRIVER_LAUNCH_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT},
    {"size", DRIVER_LAUNCH_BUFFER_SIZE, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT},
    {"bytes of a result", sizeof(int), sizeof(CUresult)},
    {"bytes of a device", sizeof(int), sizeof(CUdevice)},
    {"bytes of an address", sizeof(uint64_t), sizeof(CUdeviceptr)},
};
#endif

Test(driver_abi, numbers_are_nvidias) {
#ifdef FAKECUDA_HEADERS
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        cr_assert_eq(pairs[i].ours, pairs[i].theirs, "%s: %lld, not %lld", pairs[i].name,
                     pairs[i].ours, pairs[i].theirs);
#else
    cr_skip_test("no CUDA toolkit was found");
#endif
}
