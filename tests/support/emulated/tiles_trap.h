/* Runs the tile instructions themselves on a CPU that does not know them: each raises SIGILL, and
 * the handler reads the instruction and does to emulated registers what it says. */
#ifndef TESTS_SUPPORT_EMULATED_TILES_TRAP_H
#define TESTS_SUPPORT_EMULATED_TILES_TRAP_H

/* For this process, from now on, in threads that do not block SIGILL. */
void tiles_trap_install(void);

#endif
