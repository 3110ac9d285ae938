/* The files and folders a run writes. They are never its documents: `sheaf run . -o out.jsonl` must
 * not read its own rows. Known by device and inode, so that no spelling of a path hides them. */
#ifndef CORE_JOB_INPUT_OWN_H
#define CORE_JOB_INPUT_OWN_H

#include <stdbool.h>
#include <sys/stat.h>

enum { INPUT_OWN_MAX = 8 };

struct input_own {
    struct {
        dev_t device;
        ino_t inode;
    } items[INPUT_OWN_MAX];
    int count;
};

/* Adds what `path` names, if it is there and is a regular file or a folder; NULL: nothing. */
void input_own_add(struct input_own *own, const char *path);
/* The same for what a descriptor is open on: stdout and stderr may be files. */
void input_own_add_descriptor(struct input_own *own, int fd);

/* `own` NULL: nothing is. */
bool input_own_has(const struct input_own *own, const struct stat *status);
bool input_own_has_path(const struct input_own *own, const char *path);

#endif
