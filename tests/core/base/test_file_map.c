/* Mapping files: content, the empty file, everything that is not a readable regular file. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file_map.h"

static char folder[] = "/tmp/sheaf-file-map-XXXXXX";
static char path[sizeof folder + 16];

static void setup(void) {
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
}

static void teardown(void) {
    unlink(path);
    rmdir(folder);
}

TestSuite(file_map, .init = setup, .fini = teardown);

static void write_file(size_t length) {
    FILE *file = fopen(path, "wb");
    for (size_t i = 0; i < length; i++)
        fputc((int)(i * 7 % 251), file);
    fclose(file);
}

Test(file_map, maps_the_whole_file) {
    write_file(100000);
    struct file_map map;
    struct error error;
    cr_assert_eq(file_map_open(&map, path, &error), STATUS_OK);
    cr_assert_eq(map.length, 100000);
    for (size_t i = 0; i < map.length; i += 997)
        cr_assert_eq(map.bytes[i], i * 7 % 251);
    file_map_close(&map);
    cr_assert_null(map.bytes);
    file_map_close(&map);
}

Test(file_map, forgotten_pages_can_be_read_again) {
    write_file(100000);
    struct file_map map;
    struct error error;
    cr_assert_eq(file_map_open(&map, path, &error), STATUS_OK);
    file_map_forget(&map, 100, 50000);
    file_map_forget(&map, 4096, (size_t)-1);
    file_map_forget(&map, 100000, 1);
    file_map_forget(&map, 99999, 1);
    for (size_t i = 0; i < map.length; i += 997)
        cr_assert_eq(map.bytes[i], i * 7 % 251);
    file_map_close(&map);
}

Test(file_map, an_empty_file_has_no_bytes) {
    write_file(0);
    struct file_map map;
    struct error error;
    cr_assert_eq(file_map_open(&map, path, &error), STATUS_OK);
    cr_assert_null(map.bytes);
    cr_assert_eq(map.length, 0);
    file_map_forget(&map, 0, 10);
    file_map_close(&map);
}

static void assert_refused(const char *refused, enum status status, const char *reason) {
    struct file_map map;
    struct error error;
    cr_assert_eq(file_map_open(&map, refused, &error), status);
    cr_assert_not_null(strstr(error.text, refused), "the path in: %s", error.text);
    cr_assert_not_null(strstr(error.text, reason), "'%s' in: %s", reason, error.text);
    cr_assert_null(map.bytes);
}

Test(file_map, what_is_not_a_readable_file_is_refused) {
    assert_refused(path, STATUS_NOT_FOUND, "No such file");
    assert_refused(folder, STATUS_BAD_INPUT, "directory");
    assert_refused("/dev/null", STATUS_BAD_INPUT, "not a regular file");
    cr_assert_eq(mkfifo(path, 0600), 0);
    assert_refused(path, STATUS_BAD_INPUT, "not a regular file");
}

Test(file_map, a_file_without_permission_is_refused) {
    write_file(10);
    chmod(path, 0);
    chmod(folder, 0755);
    if (geteuid() == 0 && seteuid(65534) != 0)
        cr_skip("cannot change to another user");
    struct file_map map;
    struct error error;
    enum status status = file_map_open(&map, path, &error);
    cr_assert_eq(seteuid(getuid()), 0);
    cr_assert_eq(status, STATUS_IO);
    cr_assert_not_null(strstr(error.text, "Permission denied"));
}

static struct file_identity identity_now(void) {
    struct file_map map;
    struct error error;
    cr_assert_eq(file_map_open(&map, path, &error), STATUS_OK);
    struct file_identity identity = map.identity;
    file_map_close(&map);
    return identity;
}

Test(file_map, an_identity_is_that_of_the_file_and_its_last_change) {
    write_file(10);
    struct file_identity first = identity_now(), again = identity_now();
    cr_expect_eq(memcmp(&first, &again, sizeof first), 0);
    usleep(20000);
    struct timespec times[] = {{0, UTIME_OMIT},
                               {first.modified_ns / 1000000000, first.modified_ns % 1000000000}};
    write_file(10);
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    struct file_identity edited = identity_now();
    cr_expect_eq(edited.modified_ns, first.modified_ns);
    cr_expect_eq(edited.inode, first.inode);
    cr_expect_gt(edited.changed_ns, first.changed_ns);
}
