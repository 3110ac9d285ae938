/* The decoder knows what a compiler makes of the intrinsics: VEX prefix of three bytes, ModRM, SIB,
 * displacement; encodings after Intel's manual, volume 2. Anything else ends the process. */
#include "tests/support/emulated/tiles_trap.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/kernels/tiles_amx.h"

enum { MAP_0F38 = 2, PREFIX_NONE = 0, PREFIX_F3 = 2, PREFIX_F2 = 3 };
enum { OP_CONFIG = 0x49, OP_MEMORY = 0x4b, OP_PRODUCT = 0x5c, MODRM_RELEASE = 0xc0 };

struct instruction {
    int opcode, prefix, modrm;
    int reg, rm, vector; /* register numbers in ModRM and VEX.vvvv */
    bool has_memory;
    char *base;
    size_t stride; /* the index register, scaled */
    const uint8_t *end;
};

static const int general[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};

static int32_t read_displacement(const uint8_t **at, int bytes) {
    int32_t wide;
    int8_t narrow;
    if (bytes == 1)
        memcpy(&narrow, *at, 1), wide = narrow;
    else
        memcpy(&wide, *at, 4);
    *at += bytes;
    return wide;
}

/* `high_index` and `high_base` are the prefix's fourth bits of the register numbers. */
static void read_memory(struct instruction *found, const greg_t *registers, int high_index,
                        int high_base) {
    int mod = found->modrm >> 6, base = found->rm;
    found->has_memory = true;
    if (found->rm == 4) {
        int sib = *found->end++, index = (sib >> 3 & 7) | high_index;
        base = sib & 7;
        if (index != 4)
            found->stride = (size_t)registers[general[index]] << (sib >> 6);
    }
    bool no_base = base == 5 && mod == 0;
    int bytes = mod == 1 ? 1 : mod == 2 || no_base ? 4 : 0;
    int64_t displacement = bytes > 0 ? read_displacement(&found->end, bytes) : 0;
    if (!no_base)
        displacement += registers[general[base | high_base]];
    else if (found->rm == 5)
        displacement += (int64_t)found->end;
    found->base = (char *)displacement;
}

static bool read_instruction(const greg_t *registers, struct instruction *found) {
    const uint8_t *at = (const uint8_t *)registers[REG_RIP];
    bool wide = at[2] >> 7, long_vector = at[2] >> 2 & 1;
    if (at[0] != 0xc4 || (at[1] & 31) != MAP_0F38 || wide || long_vector)
        return false;
    *found = (struct instruction){
        .opcode = at[3],
        .prefix = at[2] & 3,
        .modrm = at[4],
        .reg = at[4] >> 3 & 7,
        .rm = at[4] & 7,
        .vector = ~at[2] >> 3 & 15,
        .end = at + 5,
    };
    if (found->modrm >> 6 != 3)
        read_memory(found, registers, (~at[1] >> 6 & 1) << 3, (~at[1] >> 5 & 1) << 3);
    return true;
}

static void configure(const struct instruction *instruction) {
    struct tiles_amx_config config;
    memcpy(&config, instruction->base, sizeof config);
    tiles_emulated_configure(&config);
}

static bool execute(const struct instruction *found) {
    int opcode = found->opcode, prefix = found->prefix;
    bool memory = found->has_memory;
    if (opcode == OP_CONFIG && prefix == PREFIX_NONE && memory && found->reg == 0)
        configure(found);
    else if (opcode == OP_CONFIG && prefix == PREFIX_NONE && found->modrm == MODRM_RELEASE)
        tiles_emulated_unconfigure();
    else if (opcode == OP_CONFIG && prefix == PREFIX_F2 && !memory && found->rm == 0)
        tiles_emulated_zero(found->reg);
    else if (opcode == OP_MEMORY && prefix == PREFIX_F2 && memory && found->rm == 4)
        tiles_emulated_load(found->reg, found->base, found->stride);
    else if (opcode == OP_MEMORY && prefix == PREFIX_F3 && memory && found->rm == 4)
        tiles_emulated_store(found->reg, found->base, found->stride);
    else if (opcode == OP_PRODUCT && prefix == PREFIX_F3 && !memory)
        tiles_emulated_product(found->reg, found->rm, found->vector);
    else
        return false;
    return true;
}

static void handle(int signal_number, siginfo_t *info, void *context) {
    static const char message[] = "tiles_trap: not a tile instruction that it knows\n";
    (void)signal_number, (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    struct instruction found;
    if (!read_instruction(registers, &found) || !execute(&found)) {
        ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
        _exit(written > 0 ? 70 : 71);
    }
    registers[REG_RIP] = (greg_t)found.end;
}

void tiles_trap_install(void) {
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGILL, &action, NULL);
}
