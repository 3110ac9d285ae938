/* Special registers. Time stands still: clocks read 0. */
#include "tests/ptxsim/ptx_decode.h"

enum special {
    TID_X,
    TID_Y,
    TID_Z,
    NTID_X,
    NTID_Y,
    NTID_Z,
    CTAID_X,
    CTAID_Y,
    CTAID_Z,
    NCTAID_X,
    NCTAID_Y,
    NCTAID_Z,
    LANEID,
    WARPID,
    NWARPID,
    SMID,
    NSMID,
    MASK_EQ,
    MASK_LE,
    MASK_LT,
    MASK_GE,
    MASK_GT,
    CLOCK,
    CLOCK64,
    DYNAMIC_SHARED,
    TOTAL_SHARED
};

static const struct {
    const char *name;
    uint8_t special, bytes;
} names[] = {
    {"%tid.x", TID_X, 4},
    {"%tid.y", TID_Y, 4},
    {"%tid.z", TID_Z, 4},
    {"%ntid.x", NTID_X, 4},
    {"%ntid.y", NTID_Y, 4},
    {"%ntid.z", NTID_Z, 4},
    {"%ctaid.x", CTAID_X, 4},
    {"%ctaid.y", CTAID_Y, 4},
    {"%ctaid.z", CTAID_Z, 4},
    {"%nctaid.x", NCTAID_X, 4},
    {"%nctaid.y", NCTAID_Y, 4},
    {"%nctaid.z", NCTAID_Z, 4},
    {"%laneid", LANEID, 4},
    {"%warpid", WARPID, 4},
    {"%nwarpid", NWARPID, 4},
    {"%smid", SMID, 4},
    {"%nsmid", NSMID, 4},
    {"%lanemask_eq", MASK_EQ, 4},
    {"%lanemask_le", MASK_LE, 4},
    {"%lanemask_lt", MASK_LT, 4},
    {"%lanemask_ge", MASK_GE, 4},
    {"%lanemask_gt", MASK_GT, 4},
    {"%clock", CLOCK, 4},
    {"%clock64", CLOCK64, 8},
    {"%globaltimer", CLOCK64, 8},
    {"%dynamic_smem_size", DYNAMIC_SHARED, 4},
    {"%total_smem_size", TOTAL_SHARED, 4},
};

bool ptx_special_find(struct view name, uint8_t *special, uint8_t *bytes) {
    for (size_t i = 0; i < PTX_COUNT(names); i++) {
        if (view_is(name, names[i].name)) {
            *special = names[i].special;
            *bytes = names[i].bytes;
            return true;
        }
    }
    return false;
}

static uint32_t lane_mask(enum special special, int lane) {
    const uint32_t self = 1u << lane, below = self - 1;
    const uint32_t masks[] = {self, below | self, below, ~below, ~(below | self)};
    return masks[special - MASK_EQ];
}

static uint64_t value_of(const struct ptx_warp *warp, enum special special, int lane) {
    const struct ptx_block *block = warp->block;
    const uint32_t *size = block->launch->block;
    const uint32_t thread = warp->index * PTX_LANES + (uint32_t)lane;
    const uint32_t tid[3] = {thread % size[0], thread / size[0] % size[1],
                             thread / size[0] / size[1]};
    const uint64_t linear = block->index[0] + (uint64_t)block->launch->grid[0] * block->index[1];
    if (special <= TID_Z)
        return tid[special - TID_X];
    if (special <= NTID_Z)
        return size[special - NTID_X];
    if (special <= CTAID_Z)
        return block->index[special - CTAID_X];
    if (special <= NCTAID_Z)
        return block->launch->grid[special - NCTAID_X];
    if (special >= MASK_EQ && special <= MASK_GT)
        return lane_mask(special, lane);
    switch ((int)special) {
    case LANEID:
        return (uint64_t)lane;
    case WARPID:
        return warp->index;
    case NWARPID:
        return block->warp_count;
    case SMID:
        return linear % (uint64_t)block->machine->device.sm_count;
    case NSMID:
        return (uint64_t)block->machine->device.sm_count;
    case DYNAMIC_SHARED:
        return block->launch->shared_bytes;
    case TOTAL_SHARED:
        return block->shared.size;
    default:
        return 0;
    }
}

void ptx_special_fill(struct ptx_warp *warp, const struct ptx_special_use *use) {
    for (int lane = 0; lane < PTX_LANES; lane++)
        ptx_machine_set(warp, &use->home, lane, value_of(warp, (enum special)use->special, lane));
    warp->defined[use->home.id] = PTX_ALL_LANES;
}
