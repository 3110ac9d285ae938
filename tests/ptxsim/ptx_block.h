/* A block: its warps in turn, each until its next barrier, in the order the launch asks for. */
#ifndef TESTS_PTXSIM_PTX_BLOCK_H
#define TESTS_PTXSIM_PTX_BLOCK_H

#include "tests/ptxsim/ptx_machine.h"

/* Memory for the blocks of one launch, one after the other. */
enum status ptx_block_init(struct ptx_block *block, struct ptxsim *machine,
                           const struct ptx_program *program, const struct ptxsim_launch *launch,
                           struct error *error);
void ptx_block_deinit(struct ptx_block *block);

/* Run the block `linear` of the grid; false after a fault, which is in block->report. */
bool ptx_block_run(struct ptx_block *block, uint64_t linear);

#endif
