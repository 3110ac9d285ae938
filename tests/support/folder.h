/* A temporary folder with files, for tests of what reads and writes them. A failing call ends the
 * test. */
#ifndef TESTS_SUPPORT_FOLDER_H
#define TESTS_SUPPORT_FOLDER_H

#include <stddef.h>

enum { FOLDER_PATH_MAX = 4096 };

/* Makes a fresh folder and the working directory of this process. */
void folder_enter(void);
/* Leaves and removes it with everything in it. */
void folder_leave(void);

/* `path` may name sub-folders; they are made. */
void folder_write(const char *path, const void *bytes, size_t length);
void folder_write_text(const char *path, const char *text);
/* Packed as gzip, one member. */
void folder_write_gzip(const char *path, const void *bytes, size_t length);

#endif
