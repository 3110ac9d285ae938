/* Depth-first walk. Names of a level are collected, marked with a slash when they are folders, and
 * sorted: the slash takes part, so that the order is that of the whole paths. Links are followed,
 * except to a folder that is being walked already. Hidden names and special files are counted and
 * left out. */
#include "core/job/input_walk.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/job/input_path.h"

enum { DEPTH_MAX = 256 };
static const size_t NAMES_BYTES_MAX = (size_t)1 << 32;

struct walk_level {
    struct walk_level *above;
    char *path;
    dev_t device;
    ino_t inode;
    struct text names; /* NUL-terminated, one after the other; folders end in '/' */
    char **sorted;     /* [count], into names */
    size_t count;
    size_t next;
};

void input_walk_init(struct input_walk *walk, struct input_skips *skips,
                     const struct input_own *own) {
    *walk = (struct input_walk){.skips = skips, .own = own};
    text_init(&walk->path, 2 * INPUT_PATH_MAX); /* the system allows less */
}

static void destroy_level(struct walk_level *level) {
    text_deinit(&level->names);
    free(level->sorted);
    free(level->path);
    free(level);
}

static void leave(struct input_walk *walk) {
    struct walk_level *level = walk->levels;
    walk->levels = level->above;
    walk->depth--;
    destroy_level(level);
}

void input_walk_deinit(struct input_walk *walk) {
    while (walk->levels)
        leave(walk);
    text_deinit(&walk->path);
}

bool input_walk_is_active(const struct input_walk *walk) {
    return walk->levels != NULL;
}

static enum status refuse(int error_number, const char **code, struct error *error) {
    *code = error_number == ENOENT ? "not_found" : "unreadable";
    return error_set_errno(error, STATUS_IO, error_number, "cannot read it");
}

/* Adds a name unless it is to be skipped. Dangling links stay: opening them says what is wrong. */
static bool add_name(struct input_walk *walk, struct walk_level *level, DIR *stream,
                     const struct dirent *entry) {
    const char *name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return true;
    if (name[0] == '.') {
        walk->skips->hidden++;
        return true;
    }
    mode_t kind = DTTOIF(entry->d_type);
    struct stat status;
    if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN)
        kind = fstatat(dirfd(stream), name, &status, 0) == 0 ? status.st_mode & S_IFMT : S_IFREG;
    if (kind != S_IFREG && kind != S_IFDIR) {
        walk->skips->special++;
        return true;
    }
    level->count++;
    return text_append_string(&level->names, name) &&
           (kind != S_IFDIR || text_append_char(&level->names, '/')) &&
           text_append_char(&level->names, '\0');
}

static int compare_names(const void *left, const void *right) {
    char *const *a = left;
    char *const *b = right;
    return strcmp(*a, *b);
}

static bool sort_names(struct walk_level *level) {
    level->sorted = calloc(level->count + 1, sizeof *level->sorted);
    if (!level->sorted)
        return false;
    char *name = level->names.bytes;
    for (size_t i = 0; i < level->count; i++) {
        level->sorted[i] = name;
        name += strlen(name) + 1;
    }
    qsort(level->sorted, level->count, sizeof *level->sorted, compare_names);
    return true;
}

static enum status read_names(struct input_walk *walk, struct walk_level *level, DIR *stream,
                              const char **code, struct error *error) {
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (!entry)
            break;
        if (!add_name(walk, level, stream, entry))
            return error_no_memory(error, "the names in a folder");
    }
    if (errno != 0)
        return refuse(errno, code, error);
    return sort_names(level) ? STATUS_OK : error_no_memory(error, "the names in a folder");
}

static bool is_open_already(const struct input_walk *walk, const struct stat *status) {
    for (const struct walk_level *level = walk->levels; level; level = level->above)
        if (level->device == status->st_dev && level->inode == status->st_ino)
            return true;
    return false;
}

static enum status fill_level(struct input_walk *walk, struct walk_level *level, DIR *stream,
                              const char **code, struct error *error) {
    struct stat status;
    if (fstat(dirfd(stream), &status) != 0)
        return refuse(errno, code, error);
    level->device = status.st_dev;
    level->inode = status.st_ino;
    bool is_own = input_own_has(walk->own, &status);
    if (is_own || is_open_already(walk, &status)) {
        walk->skips->own += is_own;
        walk->skips->loops += !is_own;
        level->sorted = calloc(1, sizeof *level->sorted); /* an empty level */
        return level->sorted ? STATUS_OK : error_no_memory(error, "a folder");
    }
    if (walk->depth >= DEPTH_MAX) {
        *code = "unreadable";
        return error_set(error, STATUS_OVER_LIMIT, "folders nested deeper than %d levels",
                         DEPTH_MAX);
    }
    return read_names(walk, level, stream, code, error);
}

enum status input_walk_enter(struct input_walk *walk, const char *path, const char **code,
                             struct error *error) {
    DIR *stream = opendir(path);
    if (!stream)
        return refuse(errno, code, error);
    struct walk_level *level = calloc(1, sizeof *level);
    enum status status = STATUS_OK;
    if (!level || !(level->path = strdup(path))) {
        status = error_no_memory(error, "a folder");
    } else {
        text_init(&level->names, NAMES_BYTES_MAX);
        status = fill_level(walk, level, stream, code, error);
    }
    closedir(stream);
    if (status != STATUS_OK) {
        if (level)
            destroy_level(level);
        return status;
    }
    level->above = walk->levels;
    walk->levels = level;
    walk->depth++;
    return STATUS_OK;
}

enum status input_walk_next(struct input_walk *walk, bool *found, const char **code,
                            struct error *error) {
    *found = false;
    while (walk->levels) {
        struct walk_level *level = walk->levels;
        if (level->next == level->count) {
            leave(walk);
            continue;
        }
        char *name = level->sorted[level->next++];
        size_t length = strlen(name);
        bool is_folder = name[length - 1] == '/';
        if (is_folder)
            name[length - 1] = '\0';
        if (!input_path_join(&walk->path, level->path, name))
            return error_no_memory(error, "a path");
        if (!is_folder) {
            *found = true;
            return STATUS_OK;
        }
        TRY(input_walk_enter(walk, walk->path.bytes, code, error));
    }
    return STATUS_OK;
}
