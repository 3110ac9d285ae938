/* A handful of inodes, looked through one by one. */
#include "core/job/input_own.h"

static void add(struct input_own *own, const struct stat *status) {
    if (own->count == INPUT_OWN_MAX || (!S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode)))
        return;
    own->items[own->count].device = status->st_dev;
    own->items[own->count].inode = status->st_ino;
    own->count++;
}

void input_own_add(struct input_own *own, const char *path) {
    struct stat status;
    if (path && stat(path, &status) == 0)
        add(own, &status);
}

void input_own_add_descriptor(struct input_own *own, int fd) {
    struct stat status;
    if (fstat(fd, &status) == 0)
        add(own, &status);
}

bool input_own_has(const struct input_own *own, const struct stat *status) {
    for (int i = 0; own && i < own->count; i++)
        if (own->items[i].device == status->st_dev && own->items[i].inode == status->st_ino)
            return true;
    return false;
}

bool input_own_has_path(const struct input_own *own, const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && input_own_has(own, &status);
}
