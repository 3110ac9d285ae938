/* The kernels' dynamic shared memory, as much as any device has; in every shared object of them. */
_Thread_local __attribute__((aligned(16))) unsigned char attention_memory[100 << 10];
