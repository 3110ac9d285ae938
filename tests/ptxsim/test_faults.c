/* Every planted fault is reported, with its line; the corrected twin of each runs. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/ptxsim/ptxsim.h"

static const char prologue[] = ".version 8.5\n.target sm_80\n.address_size 64\n"
                               ".visible .entry k(.param .u64 out)\n{\n"
                               ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<32>;\n"
                               ".reg .b64 %d<16>; .reg .f32 %f<8>; .reg .f32 %never;\n"
                               ".shared .align 16 .b8 tile[4096];\n"
                               "ld.param.u64 %d1, [out]; cvta.to.global.u64 %d1, %d1;\n"
                               "mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4;\n"
                               "add.s64 %d3, %d1, %d2; mov.u32 %r2, tile; shl.b32 %r3, %r1, 2;\n"
                               "add.u32 %r4, %r2, %r3; and.b32 %r5, %r1, 31;\n";
enum { PROLOGUE_LINES = 11 };

/* The fault of a kernel body run with `threads` threads on `words` 4-byte words of output. */
static struct ptxsim_report run(const char *body, uint32_t threads, uint32_t words,
                                enum ptxsim_order order) {
    static char text[16384];
    struct ptxsim_device device;
    struct ptxsim *machine = NULL;
    struct ptxsim_module *module = NULL;
    struct ptxsim_report report = {0};
    struct error error = {0};
    uint64_t address = 0;
    ptxsim_device_describe(80, &device);
    cr_assert_eq(ptxsim_create(&device, &machine, &error), STATUS_OK);
    const int length = snprintf(text, sizeof text, "%s%s\nret;\n}\n", prologue, body);
    cr_assert_eq(ptxsim_module_load(machine, text, (size_t)length, &module, &error), STATUS_OK,
                 "%s", error.text);
    cr_assert_eq(ptxsim_memory_alloc(machine, words * 4ull, &address, &error), STATUS_OK);
    memset(ptxsim_memory_host(machine, address, words * 4ull), 0, words * 4ull);
    struct ptxsim_launch launch = {.grid = {1, 1, 1},
                                   .block = {threads, 1, 1},
                                   .params = &address,
                                   .order = order,
                                   .instructions_max = 100000};
    const enum status status =
        ptxsim_launch(machine, ptxsim_module_kernel(module, "k"), &launch, &report, &error);
    cr_assert_eq(status, report.fault ? STATUS_DEVICE : STATUS_OK, "%s", error.text);
    if (report.fault)
        cr_assert_not_null(strstr(error.text, ptxsim_fault_name(report.fault)), "%s", error.text);
    ptxsim_module_unload(module);
    ptxsim_destroy(machine);
    return report;
}

struct plant {
    const char *name, *body;
    uint32_t threads, words;
    enum ptxsim_fault_kind fault;
};

static const struct plant plants[] = {
    {"a store per thread", "st.global.u32 [%d3], %r1;", 64, 64, PTXSIM_FAULT_NONE},
    {"one element too far", "st.global.u32 [%d3], %r1;", 64, 63, PTXSIM_FAULT_BOUNDS},
    {"one element before", "ld.global.u32 %r6, [%d3+-4];", 1, 64, PTXSIM_FAULT_BOUNDS},
    {"a vector load off by 4", "ld.global.v4.u32 {%r6,%r7,%r8,%r9}, [%d3];", 2, 64,
     PTXSIM_FAULT_ALIGNMENT},
    {"a vector load", "ld.global.v4.u32 {%r6,%r7,%r8,%r9}, [%d3];", 1, 64, PTXSIM_FAULT_NONE},
    {"shared out of bounds", "st.shared.u32 [%r4+4096], %r1;", 1, 1, PTXSIM_FAULT_BOUNDS},
    {"unwritten register", "add.f32 %f1, %never, %never;", 32, 1,
     PTXSIM_FAULT_UNINITIALISED_REGISTER},
    {"unwritten register moved and dropped", "mov.f32 %f1, %never;", 32, 1, PTXSIM_FAULT_NONE},
    {"unwritten shared memory", "ld.shared.u32 %r6, [%r4];", 32, 1,
     PTXSIM_FAULT_UNINITIALISED_SHARED},
    {"a neighbour's word without a barrier",
     "st.shared.u32 [%r4], %r1; bar.sync 0; st.shared.u32 [%r4], %r5;\n"
     "xor.b32 %r6, %r3, 128; add.u32 %r6, %r6, %r2; ld.shared.u32 %r7, [%r6];",
     64, 1, PTXSIM_FAULT_RACE},
    {"a neighbour's word that it may not have written yet",
     "st.shared.u32 [%r4], %r1; xor.b32 %r6, %r3, 128; add.u32 %r6, %r6, %r2;\n"
     "ld.shared.u32 %r7, [%r6];",
     64, 1, PTXSIM_FAULT_UNINITIALISED_SHARED},
    {"a neighbour's word behind a barrier",
     "st.shared.u32 [%r4], %r1; bar.sync 0; xor.b32 %r6, %r3, 128; add.u32 %r6, %r6, %r2;\n"
     "ld.shared.u32 %r7, [%r6];",
     64, 1, PTXSIM_FAULT_NONE},
    {"a lane's word without a warp barrier",
     "st.shared.u32 [%r4], %r1; xor.b32 %r6, %r3, 4; add.u32 %r6, %r6, %r2;\n"
     "ld.shared.u32 %r7, [%r6];",
     32, 1, PTXSIM_FAULT_RACE},
    {"a lane's word behind a warp barrier",
     "st.shared.u32 [%r4], %r1; bar.warp.sync -1; xor.b32 %r6, %r3, 4; add.u32 %r6, %r6, %r2;\n"
     "ld.shared.u32 %r7, [%r6];",
     32, 1, PTXSIM_FAULT_NONE},
    {"overwritten while others may read (no barrier at the loop's end)",
     "mov.u32 %r8, 0;\nL: st.shared.u32 [%r4], %r8; bar.sync 0;\n"
     "xor.b32 %r6, %r3, 128; add.u32 %r6, %r6, %r2; ld.shared.u32 %r7, [%r6];\n"
     "add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 3; @%p1 bra L;",
     64, 1, PTXSIM_FAULT_RACE},
    {"the same with a barrier at the loop's end",
     "mov.u32 %r8, 0;\nL: st.shared.u32 [%r4], %r8; bar.sync 0;\n"
     "xor.b32 %r6, %r3, 128; add.u32 %r6, %r6, %r2; ld.shared.u32 %r7, [%r6]; bar.sync 0;\n"
     "add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 3; @%p1 bra L;",
     64, 1, PTXSIM_FAULT_NONE},
    {"bytes of one word by different threads do not conflict",
     "add.u32 %r6, %r2, %r1; cvt.u16.u32 %h1, %r1; st.shared.u8 [%r6], %h1; bar.sync 0;\n"
     "ld.shared.u32 %r7, [%r2];",
     64, 1, PTXSIM_FAULT_NONE},
    {"read before cp.async is waited for",
     "cp.async.ca.shared.global [%r4], [%d3], 4; cp.async.commit_group;\n"
     "ld.shared.u32 %r6, [%r4];",
     32, 32, PTXSIM_FAULT_ASYNC_PENDING},
    {"read of another's cp.async without a barrier after the wait",
     "st.shared.u32 [%r4], %r1; bar.sync 0;\n"
     "cp.async.ca.shared.global [%r4], [%d3], 4; cp.async.commit_group; cp.async.wait_group 0;\n"
     "xor.b32 %r6, %r3, 128; add.u32 %r6, %r6, %r2; ld.shared.u32 %r7, [%r6];",
     64, 64, PTXSIM_FAULT_RACE},
    {"read of another's cp.async behind wait and barrier",
     "cp.async.ca.shared.global [%r4], [%d3], 4; cp.async.commit_group; cp.async.wait_group 0;\n"
     "bar.sync 0; xor.b32 %r6, %r3, 128; add.u32 %r6, %r6, %r2; ld.shared.u32 %r7, [%r6];",
     64, 64, PTXSIM_FAULT_NONE},
    {"wait leaves the newest group open",
     "cp.async.ca.shared.global [%r4], [%d3], 4; cp.async.commit_group;\n"
     "cp.async.ca.shared.global [%r4+1024], [%d3], 4; cp.async.commit_group;\n"
     "cp.async.wait_group 1; ld.shared.u32 %r6, [%r4]; ld.shared.u32 %r6, [%r4+1024];",
     32, 32, PTXSIM_FAULT_ASYNC_PENDING},
    {"a barrier that half a warp misses", "setp.lt.u32 %p1, %r1, 16; @%p1 bar.sync 0;", 32, 1,
     PTXSIM_FAULT_DIVERGENT_BARRIER},
    {"a barrier that one warp misses by another",
     "setp.lt.u32 %p1, %r1, 32; @%p1 bra L; bar.sync 0; bra E;\nL: bar.sync 0;\nE:", 64, 1,
     PTXSIM_FAULT_DIVERGENT_BARRIER},
    {"a named barrier short of threads", "bar.sync 1, 128;", 64, 1, PTXSIM_FAULT_DEADLOCK},
    {"a shuffle without half of its mask",
     "setp.lt.u32 %p1, %r1, 16; @!%p1 bra E; shfl.sync.bfly.b32 %r6, %r1, 1, 31, -1;\nE:", 32, 1,
     PTXSIM_FAULT_PARTIAL_WARP},
    {"a shuffle of half a warp",
     "setp.lt.u32 %p1, %r1, 16; @!%p1 bra E; shfl.sync.bfly.b32 %r6, %r1, 1, 31, 0xffff;\nE:", 32,
     1, PTXSIM_FAULT_NONE},
    {"a shuffle that joins lanes from both sides of a branch",
     "setp.lt.u32 %p1, %r1, 16; @%p1 bra L; add.u32 %r6, %r1, 5; bra J;\nL: add.u32 %r6, %r1, 1;\n"
     "J: shfl.sync.bfly.b32 %r7, %r6, 16, 31, -1;",
     32, 1, PTXSIM_FAULT_NONE},
    {"a collective joined across code placed behind it",
     "setp.lt.u32 %p1, %r1, 16; @%p1 bra L;\nJ: shfl.sync.bfly.b32 %r7, %r5, 16, 31, -1; bra E;\n"
     "L: add.u32 %r6, %r1, 1; bra J;\nE:",
     32, 1, PTXSIM_FAULT_NONE},
    {"trap", "setp.eq.u32 %p1, %r1, 7; @%p1 trap;", 32, 1, PTXSIM_FAULT_TRAP},
    {"an endless loop", "L: bra L;", 32, 1, PTXSIM_FAULT_ENDLESS},
};

Test(ptxsim_faults, every_plant_is_found_in_every_order) {
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        for (int order = PTXSIM_ASCENDING; order <= PTXSIM_RANDOM; order++) {
            const struct plant *plant = &plants[i];
            const struct ptxsim_report report =
                run(plant->body, plant->threads, plant->words, (enum ptxsim_order)order);
            cr_expect_eq(report.fault, plant->fault, "%s, order %d: %s", plant->name, order,
                         ptxsim_fault_name(report.fault));
            if (report.fault)
                cr_expect_gt(report.line, PROLOGUE_LINES, "%s", plant->name);
        }
    }
}

Test(ptxsim_faults, the_place_is_told) {
    const struct ptxsim_report report = run("st.global.u32 [%d3], %r1;", 64, 63, PTXSIM_ASCENDING);
    cr_assert_eq(report.thread[0], 63);
    cr_assert_str_eq(ptxsim_fault_name(report.fault), "access out of bounds");
    cr_assert_neq(report.address, 0);
}

static enum status load(const char *text, int capability, struct error *error) {
    struct ptxsim_device device;
    struct ptxsim *machine = NULL;
    struct ptxsim_module *module = NULL;
    ptxsim_device_describe(capability, &device);
    cr_assert_eq(ptxsim_create(&device, &machine, error), STATUS_OK);
    const enum status status = ptxsim_module_load(machine, text, strlen(text), &module, error);
    ptxsim_module_unload(module);
    ptxsim_destroy(machine);
    return status;
}

#define MODULE(sm, body)                                                          \
    ".version 8.5\n.target sm_" sm "\n.address_size 64\n.visible .entry k()\n{\n" \
    ".reg .b32 %r<9>;\n.reg .b16 %h<9>;\n" body "\nret;\n}\n"

static const struct {
    const char *text, *message;
    int capability;
    enum status status;
} refused[] = {
    {MODULE("80", "frobnicate.b32 %r1, %r2;"), "line 8: unknown instruction 'frobnicate.b32'", 80,
     STATUS_UNSUPPORTED},
    {MODULE("80", "add.sideways.s32 %r1, %r2, %r3;"), "'.sideways' is not known", 80,
     STATUS_UNSUPPORTED},
    {MODULE("80", "add.s32 %r1, %r2;"), "an operand is missing", 80, STATUS_UNSUPPORTED},
    {MODULE("80", "add.s32 %r1, %r2, %r9;"), "'%r9' is not declared", 80, STATUS_UNSUPPORTED},
    {MODULE("80", "add.s32 %r1, %r2, %h3;"), "an operand has 2 bytes, not 4", 80,
     STATUS_UNSUPPORTED},
    {MODULE("80", "add.s32 %r1, %r2, ;"), "line 8: expected", 80, STATUS_CORRUPT},
    {MODULE("80", "bra nowhere;"), "no label 'nowhere'", 80, STATUS_UNSUPPORTED},
    {MODULE("75", "cp.async.wait_all;"), "needs sm_80", 80, STATUS_UNSUPPORTED},
    {MODULE("80", ""), "no image for this device", 75, STATUS_NOT_FOUND},
    {"", "no .target", 80, STATUS_CORRUPT},
    {".target sm_80\n.visible .entry k() {", "the text ends", 80, STATUS_CORRUPT},
};

Test(ptxsim_faults, what_is_not_known_is_named) {
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct error error = {0};
        cr_expect_eq(load(refused[i].text, refused[i].capability, &error), refused[i].status);
        cr_expect_not_null(strstr(error.text, refused[i].message), "%s, not: %s",
                           refused[i].message, error.text);
    }
}

Test(ptxsim_faults, a_text_cut_anywhere_is_an_error_not_a_crash) {
    static const char text[] = MODULE("80", "mov.u32 %r1, %tid.x; @%p1 bra L;\nL: { .reg .f32 a;"
                                            " mov.f32 a, 0f3f800000; }");
    char cut[sizeof text];
    for (size_t length = 45; length + 2 < sizeof text; length++) { /* from .visible on */
        struct error error = {0};
        memcpy(cut, text, length);
        cut[length] = '\0';
        cr_expect_neq(load(cut, 80, &error), STATUS_OK, "%zu bytes", length);
    }
}
