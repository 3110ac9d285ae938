/* A draft's lock is the process's life: what can be locked by another has no writer any more. */
#include "core/engine/tile_cache_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char PREFIX[] = "tiles-";
static const char DRAFT_SUFFIX[] = ".new-XXXXXX";
enum { NAME_LENGTH = sizeof PREFIX - 1 + 16, NAME_BYTES = 64 };

/* Between its making and its locking a draft looks abandoned. */
enum { DRAFT_AGE_S = 60 };

enum status tile_cache_folder_make(const char *folder, struct error *error) {
    char path[TILE_CACHE_PATH_BYTES];
    if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path)
        return error_set(error, STATUS_OVER_LIMIT, "its path is too long");
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return error_set_errno(error, STATUS_IO, errno, "cannot make the folder");
    return STATUS_OK;
}

enum status tile_cache_folder_path(const char *folder, uint64_t name,
                                   char path[TILE_CACHE_PATH_BYTES], struct error *error) {
    int room = TILE_CACHE_PATH_BYTES - (int)sizeof DRAFT_SUFFIX;
    if (snprintf(path, TILE_CACHE_PATH_BYTES, "%s/%s%016" PRIx64, folder, PREFIX, name) >= room)
        return error_set(error, STATUS_OVER_LIMIT, "its path is too long");
    return STATUS_OK;
}

struct entry {
    char name[NAME_BYTES];
    uint64_t bytes;
    int64_t used_s;
    int64_t used_ns;
};

static int compare_age(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
    if (a->used_s != b->used_s)
        return a->used_s < b->used_s ? -1 : 1;
    return a->used_ns < b->used_ns ? -1 : a->used_ns > b->used_ns;
}

static void remove_abandoned(int folder, const char *name, const struct stat *info) {
    if (time(NULL) - info->st_mtim.tv_sec < DRAFT_AGE_S)
        return;
    int descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0)
        return;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(descriptor);
}

/* The folder's tiles; drafts without a writer are removed on the way. */
static struct entry *list(DIR *stream, const char *but, size_t *count) {
    struct entry *entries = NULL;
    size_t capacity = 0;
    *count = 0;
    for (struct dirent *found = readdir(stream); found != NULL; found = readdir(stream)) {
        struct stat info;
        size_t length = strlen(found->d_name);
        if (strncmp(found->d_name, PREFIX, sizeof PREFIX - 1) != 0 || length >= NAME_BYTES ||
            fstatat(dirfd(stream), found->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode) || strcmp(found->d_name, but) == 0)
            continue;
        if (length > NAME_LENGTH) {
            remove_abandoned(dirfd(stream), found->d_name, &info);
            continue;
        }
        if (*count == capacity) {
            capacity = capacity > 0 ? 2 * capacity : 16;
            struct entry *grown = realloc(entries, capacity * sizeof *entries);
            if (grown == NULL)
                break;
            entries = grown;
        }
        struct entry *entry = &entries[(*count)++];
        *entry = (struct entry){.bytes = (uint64_t)info.st_size,
                                .used_s = info.st_mtim.tv_sec,
                                .used_ns = info.st_mtim.tv_nsec};
        memcpy(entry->name, found->d_name, length + 1);
    }
    return entries;
}

void tile_cache_folder_trim(const char *folder, const char *path, uint64_t bytes_max) {
    DIR *stream = opendir(folder);
    if (stream == NULL)
        return;
    const char *slash = strrchr(path, '/');
    size_t count;
    struct entry *entries = list(stream, slash == NULL ? path : slash + 1, &count);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += entries[i].bytes;
    if (count > 0)
        qsort(entries, count, sizeof *entries, compare_age);
    for (size_t i = 0; i < count && sum > bytes_max; i++) {
        if (unlinkat(dirfd(stream), entries[i].name, 0) == 0)
            sum -= entries[i].bytes;
    }
    free(entries);
    closedir(stream);
}

enum status tile_cache_folder_begin(const char *path, struct tile_cache_draft *draft,
                                    struct error *error) {
    snprintf(draft->path, sizeof draft->path, "%s%s", path, DRAFT_SUFFIX);
    draft->descriptor = mkostemp(draft->path, O_CLOEXEC);
    if (draft->descriptor < 0)
        return error_set_errno(error, STATUS_IO, errno, "cannot make a file in its folder");
    flock(draft->descriptor, LOCK_EX | LOCK_NB); /* where there are no locks age alone protects */
    return STATUS_OK;
}

enum status tile_cache_folder_publish(struct tile_cache_draft *draft, const char *path,
                                      struct error *error) {
    if (rename(draft->path, path) != 0) {
        int error_number = errno;
        tile_cache_folder_abandon(draft);
        return error_set_errno(error, STATUS_IO, error_number, "cannot rename '%s'", draft->path);
    }
    if (close(draft->descriptor) == 0)
        return STATUS_OK;
    int error_number = errno; /* network file systems write now */
    unlink(path);
    return error_set_errno(error, STATUS_IO, error_number, "cannot write it");
}

void tile_cache_folder_abandon(struct tile_cache_draft *draft) {
    unlink(draft->path);
    close(draft->descriptor);
}
