/* Each class of instruction against values computed here or known from the PTX ISA document. One
 * instruction a case: two or three 32-bit sources, one 32-bit result. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/ptxsim/ptxsim.h"

static const char frame[] =
    ".version 8.5\n.target sm_90\n.address_size 64\n"
    ".global .align 8 .u64 pointer = generic(table)+4;\n.global .align 4 .u32 table[2] = {7, 9};\n"
    ".func (.param .b32 result) twice(.param .b32 value)\n{ .reg .b32 %%r<3>;\n"
    "ld.param.b32 %%r1, [value]; shl.b32 %%r2, %%r1, 1; st.param.b32 [result], %%r2; ret; }\n"
    ".visible .entry k(.param .align 8 .b8 args[32])\n{\n"
    ".reg .pred %%p<9>; .reg .b16 %%h<9>; .reg .b32 %%r<9>; .reg .b32 a, b, c, d;\n"
    ".reg .b64 %%d<9>; .reg .b64 wa, wb, wd; .reg .f32 %%f<9>;\n"
    ".local .align 8 .b8 depot[64]; .shared .align 16 .b8 tile[1024];\n"
    "ld.param.u64 %%d0, [args]; ld.param.v2.u32 {a, b}, [args+8]; ld.param.u32 c, [args+16];\n"
    "cvt.s64.s32 wa, a; cvt.s64.s32 wb, b; mov.u32 d, 0; mov.u32 %%r0, %%tid.x;\n"
    "mul.wide.u32 %%d8, %%r0, 4; add.s64 %%d0, %%d0, %%d8;\n"
    "%s\nst.global.u32 [%%d0], d;\nret;\n}\n";

/* Lane `lane`'s result of a body. */
static uint32_t run(const char *body, uint32_t a, uint32_t b, uint32_t c, int lane) {
    static char text[16384];
    struct ptxsim_device device;
    struct ptxsim *machine = NULL;
    struct ptxsim_module *module = NULL;
    struct ptxsim_report report = {0};
    struct error error = {0};
    struct {
        uint64_t out;
        uint32_t a, b, c, unused[3];
    } args = {0, a, b, c, {0}};
    ptxsim_device_describe(90, &device);
    cr_assert_eq(ptxsim_create(&device, &machine, &error), STATUS_OK);
    const int length = snprintf(text, sizeof text, frame, body);
    cr_assert_eq(ptxsim_module_load(machine, text, (size_t)length, &module, &error), STATUS_OK,
                 "%s: %s", body, error.text);
    cr_assert_eq(ptxsim_memory_alloc(machine, 128, &args.out, &error), STATUS_OK);
    const struct ptxsim_launch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}, .params = &args};
    cr_assert_eq(
        ptxsim_launch(machine, ptxsim_module_kernel(module, "k"), &launch, &report, &error),
        STATUS_OK, "%s: %s", body, error.text);
    const uint32_t result = ((uint32_t *)ptxsim_memory_host(machine, args.out, 128))[lane];
    ptxsim_module_unload(module);
    ptxsim_destroy(machine);
    return result;
}

static uint32_t bits(float x) {
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

struct integer_case {
    const char *body;
    uint32_t a, b, c, wanted;
};

static const struct integer_case integers[] = {
    {"add.s32 d, a, b;", 5, ~0u, 0, 4},
    {"sub.s32 d, a, b;", 5, 7, 0, ~1u},
    {"mul.lo.s32 d, a, b;", 70000, 70000, 0, 605032704u},
    {"mul.hi.u32 d, a, b;", 0x80000000u, 6, 0, 3},
    {"mul.hi.s32 d, a, b;", 0x80000000u, 6, 0, ~2u},
    {"mad.lo.s32 d, a, b, c;", 3, 4, 5, 17},
    {"mul.wide.s32 wd, a, b; shr.s64 wd, wd, 32; cvt.u32.u64 d, wd;", ~0u, 5, 0, ~0u},
    {"div.s32 d, a, b;", (uint32_t)-7, 2, 0, (uint32_t)-3},
    {"rem.s32 d, a, b;", (uint32_t)-7, 2, 0, (uint32_t)-1},
    {"div.u32 d, a, b;", 7, 2, 0, 3},
    {"div.s32 d, a, b;", 0x80000000u, ~0u, 0, 0x80000000u},
    {"min.s32 d, a, b;", ~0u, 1, 0, ~0u},
    {"min.u32 d, a, b;", ~0u, 1, 0, 1},
    {"max.s32 d, a, b;", ~0u, 1, 0, 1},
    {"abs.s32 d, a;", (uint32_t)-9, 0, 0, 9},
    {"neg.s32 d, a;", 9, 0, 0, (uint32_t)-9},
    {"and.b32 d, a, b;", 12, 10, 0, 8},
    {"or.b32 d, a, b;", 12, 10, 0, 14},
    {"xor.b32 d, a, b;", 12, 10, 0, 6},
    {"not.b32 d, a;", 0, 0, 0, ~0u},
    {"shl.b32 d, a, b;", 1, 31, 0, 0x80000000u},
    {"shl.b32 d, a, b;", 1, 32, 0, 0},
    {"shr.u32 d, a, b;", 0x80000000u, 40, 0, 0},
    {"shr.s32 d, a, b;", 0x80000000u, 40, 0, ~0u},
    {"shf.l.wrap.b32 d, a, b, c;", 0x80000000u, 1, 33, 3},
    {"shf.r.clamp.b32 d, a, b, c;", 5, 9, 40, 9},
    {"lop3.b32 d, a, b, c, 0x96;", 12, 10, 7, 12 ^ 10 ^ 7},
    {"lop3.b32 d, a, b, c, 0xe8;", 12, 10, 7, (12 & 10) | (12 & 7) | (10 & 7)},
    {"prmt.b32 d, a, b, c;", 0x33221100u, 0x77665544u, 0x7531, 0x77553311u},
    {"prmt.b32 d, a, b, 0x8888;", 0x00000080u, 0, 0, ~0u},
    {"bfe.u32 d, a, b, c;", 0xabcd1234u, 8, 8, 0x12},
    {"bfe.s32 d, a, b, c;", 0x0000f000u, 12, 4, ~0u},
    {"bfi.b32 d, a, b, 8, 8;", 0xff, 0x11111111u, 0, 0x1111ff11u},
    {"brev.b32 d, a;", 1, 0, 0, 0x80000000u},
    {"popc.b32 d, a;", 0xf0f0, 0, 0, 8},
    {"clz.b32 d, a;", 1, 0, 0, 31},
    {"bfind.u32 d, a;", 0x100, 0, 0, 8},
    {"dp4a.s32.s32 d, a, b, c;", 0x01ff02feu, 0x01010101u, 10, 10 + 1 - 1 + 2 - 2},
    {"dp4a.u32.u32 d, a, b, c;", 0x01ff02feu, 0x01010101u, 0, 1 + 255 + 2 + 254},
    {"dp2a.lo.s32.s32 d, a, b, c;", 0xffff0002u, 0x00000305u, 1, 1 + 10 - 3},
    {"add.cc.u32 d, a, b; addc.u32 d, c, 0;", ~0u, 1, 4, 5},
    {"sub.cc.u32 d, a, b; subc.u32 d, c, 0;", 0, 1, 4, 3},
    {"setp.lt.s32 %p1, a, b; selp.b32 d, 1, 2, %p1;", ~0u, 0, 0, 1},
    {"setp.lt.u32 %p1, a, b; selp.b32 d, 1, 2, %p1;", ~0u, 0, 0, 2},
    {"setp.eq.s32 %p1, a, a; setp.ne.and.s32 %p2|%p3, a, b, %p1; selp.b32 d, 1, 2, %p3;", 1, 2, 0,
     2},
    {"slct.b32.s32 d, a, b, c;", 1, 2, ~0u, 2},
    {"mov.b32 {%h1, %h2}, a; mov.b32 d, {%h2, %h1};", 0x12345678u, 0, 0, 0x56781234u},
    {"mov.b64 wd, {a, b}; shr.u64 wd, wd, 16; cvt.u32.u64 d, wd;", 0x11112222u, 0x33334444u, 0,
     0x44441111u},
    {"cvt.s32.s8 d, a;", 0x180, 0, 0, 0xffffff80u},
    {"cvt.u32.u8 d, a;", 0x1ff, 0, 0, 0xff},
    {"cvt.sat.s8.s32 d, a;", 1000, 0, 0, 127},
    {"cvt.sat.u8.s32 d, a;", (uint32_t)-5, 0, 0, 0},
    {"ld.global.u64 wd, [pointer]; ld.u32 d, [wd];", 0, 0, 0, 9},
    {"mov.u64 wd, depot; cvta.local.u64 wd, wd; st.u32 [wd+8], a; ld.local.u32 d, [depot+8];", 77,
     0, 0, 77},
    {"mov.u64 wd, args; ld.param.u32 d, [wd+8];", 31, 0, 0, 31},
    {"atom.global.add.u32 %r1, [table], a; ld.global.u32 d, [table]; mov.u32 d, %r1;", 0, 0, 0, 7},
    {"atom.global.cas.b32 d, [table], 7, 7;", 0, 0, 0, 7},
};

Test(ptxsim_values, integers) {
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) {
        const struct integer_case *c = &integers[i];
        const uint32_t got = run(c->body, c->a, c->b, c->c, 0);
        cr_expect_eq(got, c->wanted, "%s: 0x%x, not 0x%x", c->body, got, c->wanted);
    }
}

Test(ptxsim_values, a_call_of_a_function_in_the_module) {
    static const char body[] = "setp.lt.u32 %p1, %r0, 16; @!%p1 bra E;\n"
                               "{ .param .b32 v; .param .b32 r; st.param.b32 [v], %r0;\n"
                               "call.uni (r), twice, (v); ld.param.b32 d, [r]; }\nE:";
    cr_expect_eq(run(body, 0, 0, 0, 13), 26);
    cr_expect_eq(run(body, 0, 0, 0, 20), 0);
}

Test(ptxsim_values, an_indexed_branch) {
    static const char body[] = "and.b32 %r1, %r0, 1; T: .branchtargets X, Y;\n"
                               "brx.idx %r1, T;\nX: mov.u32 d, 10; bra E;\nY: mov.u32 d, 20;\nE:";
    cr_expect_eq(run(body, 0, 0, 0, 4), 10);
    cr_expect_eq(run(body, 0, 0, 0, 5), 20);
}

struct float_case {
    const char *body;
    float a, b, c, wanted;
};

static const struct float_case floats[] = {
    {"add.f32 d, a, b;", 1, 0x1p-24f, 0, 1},
    {"add.rp.f32 d, a, b;", 1, 0x1p-40f, 0, 1 + 0x1p-23f},
    {"add.rz.f32 d, a, b;", -1, 0x1p-40f, 0, -(1 - 0x1p-24f)},
    {"mul.rm.f32 d, a, b;", 1 + 0x1p-23f, 1 + 0x1p-23f, 0, 1 + 0x1p-22f},
    {"mul.rp.f32 d, a, b;", 1 + 0x1p-23f, 1 + 0x1p-23f, 0, 1 + 0x1p-22f + 0x1p-23f},
    {"mul.ftz.f32 d, a, b;", 0x1p-100f, 0x1p-40f, 0, 0},
    {"mul.f32 d, a, b;", 0x1p-100f, 0x1p-40f, 0, 0x1p-140f},
    {"add.sat.f32 d, a, b;", 1, 3, 0, 1},
    {"fma.rn.f32 d, a, b, c;", 1 + 0x1p-12f, 1 - 0x1p-12f, -1, -0x1p-24f},
    {"fma.rm.f32 d, a, b, c;", 1, -0x1p-30f, 1, 1 - 0x1p-24f},
    {"div.rn.f32 d, a, b;", 1, 3, 0, 1.0f / 3},
    {"div.full.f32 d, a, b;", 1, 4, 0, 0.25f},
    {"rcp.rn.f32 d, a;", 3, 0, 0, 1.0f / 3},
    {"sqrt.rn.f32 d, a;", 2, 0, 0, 1.41421356237f},
    {"rsqrt.approx.f32 d, a;", 4, 0, 0, 0.5f},
    {"ex2.approx.ftz.f32 d, a;", -INFINITY, 0, 0, 0},
    {"ex2.approx.ftz.f32 d, a;", 3, 0, 0, 8},
    {"lg2.approx.f32 d, a;", 8, 0, 0, 3},
    {"tanh.approx.f32 d, a;", 0, 0, 0, 0},
    {"min.f32 d, a, b;", NAN, 2, 0, 2},
    {"max.f32 d, a, b;", NAN, 2, 0, 2},
    {"max.f32 d, a, b;", -0.0f, 0.0f, 0, 0.0f},
    {"abs.f32 d, a;", -2, 0, 0, 2},
    {"neg.f32 d, a;", -2, 0, 0, 2},
    {"copysign.f32 d, a, b;", -1, 3, 0, -3},
    {"cvt.rni.f32.f32 d, a;", 2.5f, 0, 0, 2},
    {"cvt.rn.f16.f32 %h1, a; cvt.f32.f16 d, %h1;", 2049, 0, 0, 2048},
    {"cvt.rn.f16.f32 %h1, a; cvt.f32.f16 d, %h1;", 65520, 0, 0, INFINITY},
    {"cvt.rz.f16.f32 %h1, a; cvt.f32.f16 d, %h1;", 65520, 0, 0, 65504},
    {"cvt.rn.f16.f32 %h1, a; cvt.f32.f16 d, %h1;", 0x1p-25f, 0, 0, 0},
    {"cvt.rn.f16.f32 %h1, a; cvt.f32.f16 d, %h1;", 0x1.8p-24f, 0, 0, 0x1p-23f},
    {"cvt.rn.bf16.f32 %h1, a; cvt.f32.bf16 d, %h1;", 1 + 0x1p-8f, 0, 0, 1},
    {"cvt.rn.bf16.f32 %h1, a; cvt.f32.bf16 d, %h1;", 1 + 0x1.8p-7f, 0, 0, 1 + 0x1p-6f},
    {"cvt.rn.f16.f32 %h1, a; cvt.rn.f16.f32 %h2, b; add.f16 %h1, %h1, %h2; cvt.f32.f16 d, %h1;",
     2048, 1, 0, 2048},
    {"cvt.rn.f16x2.f32 %r1, a, b; mul.f16x2 %r1, %r1, %r1; mov.b32 {%h1, %h2}, %r1;\n"
     "cvt.f32.f16 d, %h2;",
     3, 4, 0, 9},
    {"cvt.rn.satfinite.e4m3x2.f32 %h1, a, b; cvt.rn.f16x2.e4m3x2 %r1, %h1;\n"
     "mov.b32 {%h1, %h2}, %r1; cvt.f32.f16 d, %h2;",
     1000, 1, 0, 448},
    {"cvt.rn.satfinite.e5m2x2.f32 %h1, a, b; cvt.rn.f16x2.e5m2x2 %r1, %h1;\n"
     "mov.b32 {%h1, %h2}, %r1; cvt.f32.f16 d, %h1;",
     0, 1.125f, 0, 1},
    {"cvt.rn.f32.s32 d, 16777217;", 0, 0, 0, 16777216},
    {"cvt.rn.f32.u64 d, 0x8000008000000001;", 0, 0, 0, 0x1.000002p63f},
};

Test(ptxsim_values, floats) {
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        const struct float_case *c = &floats[i];
        const uint32_t got = run(c->body, bits(c->a), bits(c->b), bits(c->c), 0);
        cr_expect_eq(got, bits(c->wanted), "%s: 0x%x, not 0x%x", c->body, got, bits(c->wanted));
    }
}

Test(ptxsim_values, floats_to_integers_clamp) {
    cr_expect_eq(run("cvt.rzi.s32.f32 d, a;", bits(3e9f), 0, 0, 0), 0x7fffffff);
    cr_expect_eq(run("cvt.rzi.u32.f32 d, a;", bits(-1), 0, 0, 0), 0);
    cr_expect_eq(run("cvt.rni.s32.f32 d, a;", bits(-2.5f), 0, 0, 0), (uint32_t)-2);
    cr_expect_eq(run("cvt.rmi.s32.f32 d, a;", bits(-2.5f), 0, 0, 0), (uint32_t)-3);
    cr_expect_eq(run("cvt.rzi.s32.f32 d, a;", bits(NAN), 0, 0, 0), 0);
    cr_expect_eq(run("add.f32 d, a, b;", bits(INFINITY), bits(-INFINITY), 0, 0), 0x7fffffff);
}

Test(ptxsim_values, lanes_exchange) {
    static const struct {
        const char *body;
        int lane;
        uint32_t wanted;
    } cases[] = {
        {"shfl.sync.idx.b32 d, %r0, 5, 31, -1;", 9, 5},
        {"shfl.sync.up.b32 d, %r0, 2, 0, -1;", 9, 7},
        {"shfl.sync.up.b32 d|%p1, %r0, 2, 0, -1; selp.b32 d, 1, 0, %p1;", 1, 0},
        {"shfl.sync.down.b32 d, %r0, 4, 31, -1;", 30, 30},
        {"shfl.sync.down.b32 d, %r0, 4, 31, -1;", 3, 7},
        {"shfl.sync.bfly.b32 d, %r0, 16, 31, -1;", 3, 19},
        {"shfl.sync.idx.b32 d, %r0, 1, 0x181f, -1;", 14, 9}, /* segments of 8 */
        {"setp.lt.u32 %p1, %r0, 3; vote.sync.ballot.b32 d, %p1, -1;", 20, 7},
        {"setp.lt.u32 %p1, %r0, 3; vote.sync.any.pred %p2, %p1, -1; selp.b32 d, 1, 0, %p2;", 9, 1},
        {"setp.lt.u32 %p1, %r0, 3; vote.sync.all.pred %p2, %p1, -1; selp.b32 d, 1, 0, %p2;", 0, 0},
        {"redux.sync.add.s32 d, %r0, -1;", 3, 496},
        {"redux.sync.max.u32 d, %r0, -1;", 3, 31},
        {"and.b32 %r1, %r0, 3; match.any.sync.b32 d, %r1, -1;", 5, 0x22222222},
        {"setp.lt.u32 %p1, %r0, 4; @%p1 activemask.b32 d;", 2, 15},
        {"mov.u32 d, %lanemask_lt;", 5, 31},
        {"mov.u32 d, %laneid;", 5, 5},
        {"setp.lt.u32 %p1, %r0, 4; bar.red.popc.u32 d, 0, %p1;", 7, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint32_t got = run(cases[i].body, 0, 0, 0, cases[i].lane);
        cr_expect_eq(got, cases[i].wanted, "%s: 0x%x", cases[i].body, got);
    }
}

/* Rows of the identity, 8 halves of lane numbers: a fragment is two neighbours of a row. */
Test(ptxsim_values, matrices_are_loaded_and_turned) {
    static const char fill[] =
        "mov.u32 %r1, tile; shl.b32 %r2, %r0, 4; add.u32 %r2, %r2, %r1; shl.b32 %r3, %r0, 2;\n"
        "add.u32 %r3, %r3, %r1; shl.b32 %r4, %r0, 1; add.u32 %r5, %r4, 1; shl.b32 %r5, %r5, 16;\n"
        "or.b32 %r4, %r4, %r5; st.shared.u32 [%r3], %r4; bar.sync 0; and.b32 %r6, %r0, 7;\n"
        "shl.b32 %r6, %r6, 4; add.u32 %r6, %r6, %r1;\n";
    char body[2048];
    snprintf(body, sizeof body, "%s%s", fill,
             "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {d}, [%r6];");
    cr_expect_eq(run(body, 0, 0, 0, 9), 19u << 16 | 18); /* element e of the matrix is e */
    snprintf(body, sizeof body, "%s%s", fill,
             "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {d}, [%r6];");
    cr_expect_eq(run(body, 0, 0, 0, 9), (3 * 8 + 2) << 16 | (2 * 8 + 2));
    cr_expect_eq(run("shl.b32 %r4, %r0, 1; add.u32 %r5, %r4, 1; shl.b32 %r5, %r5, 16;\n"
                     "or.b32 %r4, %r4, %r5; movmatrix.sync.aligned.m8n8.trans.b16 d, %r4;",
                     0, 0, 0, 9),
                 (3 * 8 + 2) << 16 | (2 * 8 + 2));
}
