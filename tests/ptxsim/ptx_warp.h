/* A warp: 32 lanes with a program counter each. The lanes at the lowest counter run; the others
 * wait until these catch up with them (reconvergence) or stop at something that needs more lanes.
 */
#ifndef TESTS_PTXSIM_PTX_WARP_H
#define TESTS_PTXSIM_PTX_WARP_H

#include "tests/ptxsim/ptx_machine.h"

/* Run until the warp is done or stands at a block barrier; false after a fault. */
bool ptx_warp_run(struct ptx_warp *warp);

/* Go on behind the barrier that the warp waits at. */
void ptx_warp_release(struct ptx_warp *warp);

#endif
