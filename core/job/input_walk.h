/* A directory tree as a sequence of files, in the byte order of their paths (as `LC_ALL=C sort` of
 * the whole list), with one level's names in memory at a time for each open level. */
#ifndef CORE_JOB_INPUT_WALK_H
#define CORE_JOB_INPUT_WALK_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/job/input_own.h"
#include "core/job/input_skips.h"

struct walk_level;

struct input_walk {
    struct walk_level *levels; /* the deepest first */
    int depth;
    struct text path;            /* of the latest file */
    struct input_skips *skips;   /* borrowed */
    const struct input_own *own; /* borrowed; folders in it are left out */
};

void input_walk_init(struct input_walk *walk, struct input_skips *skips,
                     const struct input_own *own);
void input_walk_deinit(struct input_walk *walk);

/* Begin with the folder `path` (normal form). On failure *code says why it cannot be read. */
enum status input_walk_enter(struct input_walk *walk, const char *path, const char **code,
                             struct error *error);

/* Is there a level open? */
bool input_walk_is_active(const struct input_walk *walk);

/* The next file's path in walk->path. *found is false at the end of the tree. A folder that cannot
 * be read, or a link to nothing, is reported once, with its path in walk->path and *code set. */
enum status input_walk_next(struct input_walk *walk, bool *found, const char **code,
                            struct error *error);

#endif
