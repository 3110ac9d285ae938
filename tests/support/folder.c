/* See the header. */
#include "tests/support/folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/sheaf-test-XXXXXX";

static void check(int failed, const char *what) {
    if (failed) {
        perror(what);
        abort();
    }
}

void folder_enter(void) {
    check(!mkdtemp(root), "mkdtemp");
    check(chdir(root) != 0, root);
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status, (void)walk;
    if (kind == FTW_DNR)
        chmod(path, 0700);
    return remove(path);
}

void folder_leave(void) {
    check(chdir("/") != 0, "/");
    nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_folders(const char *path) {
    char folder[FOLDER_PATH_MAX];
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        if (folder[0])
            mkdir(folder, 0755);
    }
}

void folder_write(const char *path, const void *bytes, size_t length) {
    make_folders(path);
    FILE *file = fopen(path, "wb");
    check(!file || fwrite(bytes, 1, length, file) != length || fclose(file) != 0, path);
}

void folder_write_text(const char *path, const char *text) {
    folder_write(path, text, strlen(text));
}

/* gzip as a program: a reader's tests should not lean on the reader's library. */
void folder_write_gzip(const char *path, const void *bytes, size_t length) {
    char command[FOLDER_PATH_MAX];
    make_folders(path);
    snprintf(command, sizeof command, "gzip -c > '%s'", path);
    FILE *pipe = popen(command, "w");
    check(!pipe || fwrite(bytes, 1, length, pipe) != length || pclose(pipe) != 0, path);
}
