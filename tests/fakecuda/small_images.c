/* The text of the small kernels. */
#include "tests/fakecuda/small_images.h"

#define MODULE(target, constant)                                      \
    ".version 6.4\n.target sm_" target "\n.address_size 64\n"         \
    ".extern .shared .align 16 .b8 buffer[];\n"                       \
    ".visible .entry add(.param .align 8 .b8 add_param_0[24])\n"      \
    "{\n"                                                             \
    "  .reg .pred %p<2>;\n  .reg .b32 %r<6>;\n  .reg .f32 %f<5>;\n"   \
    "  .reg .b64 %rd<6>;\n"                                           \
    "  ld.param.u64 %rd1, [add_param_0];\n"                           \
    "  ld.param.u64 %rd2, [add_param_0+8];\n"                         \
    "  ld.param.u32 %r1, [add_param_0+16];\n"                         \
    "  ld.param.f32 %f1, [add_param_0+20];\n"                         \
    "  mov.u32 %r2, %ctaid.x;\n"                                      \
    "  mov.u32 %r3, %ntid.x;\n"                                       \
    "  mov.u32 %r4, %tid.x;\n"                                        \
    "  mad.lo.s32 %r5, %r2, %r3, %r4;\n"                              \
    "  setp.ge.s32 %p1, %r5, %r1;\n"                                  \
    "  @%p1 bra DONE;\n"                                              \
    "  mul.wide.s32 %rd3, %r5, 4;\n"                                  \
    "  add.s64 %rd4, %rd1, %rd3;\n"                                   \
    "  ld.global.f32 %f2, [%rd4];\n"                                  \
    "  add.f32 %f3, %f2, %f1;\n"                                      \
    "  add.f32 %f4, %f3, " constant ";\n"                             \
    "  add.s64 %rd5, %rd2, %rd3;\n"                                   \
    "  st.global.f32 [%rd5], %f4;\n"                                  \
    "DONE:\n  ret;\n"                                                 \
    "}\n"                                                             \
    ".visible .entry shared(.param .align 8 .b8 shared_param_0[8])\n" \
    "{\n"                                                             \
    "  .reg .b32 %r<6>;\n  .reg .b64 %rd<4>;\n"                       \
    "  ld.param.u64 %rd1, [shared_param_0];\n"                        \
    "  mov.u32 %r1, %tid.x;\n"                                        \
    "  shl.b32 %r2, %r1, 2;\n"                                        \
    "  mov.u32 %r3, buffer;\n"                                        \
    "  add.s32 %r4, %r3, %r2;\n"                                      \
    "  st.shared.u32 [%r4+61312], %r1;\n" /* the last 128 of 61440 */ \
    "  bar.sync 0;\n"                                                 \
    "  ld.shared.u32 %r5, [%r4+61312];\n"                             \
    "  mul.wide.u32 %rd2, %r1, 4;\n"                                  \
    "  add.s64 %rd3, %rd1, %rd2;\n"                                   \
    "  st.global.u32 [%rd3], %r5;\n"                                  \
    "  ret;\n"                                                        \
    "}\n"

static const char module_60[] = MODULE("60", "0f00000000");
static const char module_80[] = MODULE("80", "0f447A0000"); /* 1000 */
static const char module_broken[] = ".version 6.4\n.target sm_60\n.address_size 64\n"
                                    ".visible .entry broken()\n{\n  frobnicate.u32;\n  ret;\n}\n";
static const unsigned char module_fat[] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};

const struct gpu_image small_images[SMALL_IMAGES_COUNT] = {
    {"small", GPU_IMAGE_FAT_BINARY, 0, module_fat, sizeof module_fat},
    {"small", GPU_IMAGE_PTX, 80, (const unsigned char *)module_80, sizeof module_80 - 1},
    {"small", GPU_IMAGE_PTX, 60, (const unsigned char *)module_60, sizeof module_60 - 1},
    {"broken", GPU_IMAGE_PTX, 60, (const unsigned char *)module_broken, sizeof module_broken - 1},
};

const struct launch_config small_images_add = {"small", "add", 32, 1, 0, 0};
const struct launch_config small_images_shared = {"small", "shared", 32, 1, SMALL_SHARED_BYTES, 0};
const struct launch_config small_images_absent = {"small", "absent", 32, 1, 0, 0};
const struct launch_config small_images_broken = {"broken", "broken", 32, 1, 0, 0};
const struct launch_config small_images_unknown = {"unknown", "unknown", 32, 1, 0, 0};
const struct launch_config small_images_huge = {"small", "shared", 32, 1, 1 << 20, 0};
