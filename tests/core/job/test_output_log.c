/* The append log: refusal, locking, torn tails at every byte, resuming, publishing. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/job/document_hash.h"
#include "core/job/output_scan.h"

static char folder[] = "/tmp/sheaf-output-XXXXXX";
static char path[64];
static struct error error;

static const char SETTINGS[] = "00000000000000aa-";

static void setup(void) {
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out.jsonl", folder);
}

static void teardown(void) {
    unlink(path);
    rmdir(folder);
}

TestSuite(output_log, .init = setup, .fini = teardown);

static char *row(int id, int index, const char *status, uint64_t document) {
    static char line[512];
    char fingerprint[FINGERPRINT_BYTES];
    document_hash_fingerprint(0xaa, document, fingerprint);
    snprintf(line, sizeof line,
             "{\"id\":%d,\"index\":%d,\"status\":\"%s\",\"text\":\"t%d\",\"fingerprint\":\"%s\"}\n",
             id, index, status, (int)document, fingerprint);
    return line;
}

static void append_text(char *buffer, size_t bytes, const char *more) {
    size_t length = strlen(buffer);
    snprintf(buffer + length, bytes - length, "%s", more);
}

static void append(struct output_log *log, const char *line) {
    cr_assert_eq(output_log_append(log, view_of(line), &error), STATUS_OK);
}

static size_t read_all(char *buffer, size_t capacity) {
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    size_t length = fread(buffer, 1, capacity - 1, file);
    buffer[length] = '\0';
    fclose(file);
    return length;
}

static void write_all(const char *bytes, size_t length) {
    FILE *file = fopen(path, "w");
    cr_assert_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

Test(output_log, an_existing_output_is_refused_with_its_row_count) {
    write_all("a\nb\nc\n", 6);
    struct output_log log;
    cr_assert_eq(output_log_open(&log, path, OUTPUT_NEW, &error), STATUS_BAD_INPUT);
    cr_assert(strstr(error.text, "3 rows") != NULL, "%s", error.text);
    cr_assert(strstr(error.text, "--resume") != NULL);
    cr_assert_eq(output_log_open(&log, path, OUTPUT_FORCE, &error), STATUS_OK);
    append(&log, "{}\n");
    cr_assert_eq(output_log_close(&log, &error), STATUS_OK);
    char buffer[64];
    cr_assert_eq(read_all(buffer, sizeof buffer), 3u);
}

Test(output_log, two_runs_on_one_output_are_refused) {
    struct output_log first, second;
    cr_assert_eq(output_log_open(&first, path, OUTPUT_NEW, &error), STATUS_OK);
    cr_assert_eq(output_log_open(&second, path, OUTPUT_RESUME, &error), STATUS_BAD_INPUT);
    cr_assert(strstr(error.text, "another run") != NULL);
    cr_assert_eq(output_log_open(&second, path, OUTPUT_FORCE, &error), STATUS_BAD_INPUT);
    output_log_close(&first, &error);
    cr_assert_eq(output_log_open(&second, path, OUTPUT_RESUME, &error), STATUS_OK);
    output_log_close(&second, &error);
}

Test(output_log, a_full_disk_is_an_error_not_a_torn_row) {
    struct output_log log;
    cr_assert_eq(output_log_open(&log, "/dev/full", OUTPUT_NEW, &error), STATUS_OK);
    cr_assert_eq(output_log_append(&log, view_of("{}\n"), &error), STATUS_IO);
    cr_assert(strstr(error.text, "No space") != NULL, "%s", error.text);
    output_log_close(&log, &error);
}

Test(output_log, every_cut_of_the_file_resumes_with_the_whole_rows) {
    char whole[2048] = "";
    size_t ends[4] = {0};
    for (int i = 0; i < 3; i++) {
        append_text(whole, sizeof whole, row(i, i, i == 1 ? "error" : "ok", 64 + 8u * i));
        ends[i + 1] = strlen(whole);
    }
    for (size_t cut = 0; cut <= ends[3]; cut++) {
        write_all(whole, cut);
        struct output_log log;
        struct finished_set finished;
        struct output_scan scan;
        finished_set_init(&finished);
        cr_assert_eq(output_log_open(&log, path, OUTPUT_RESUME, &error), STATUS_OK);
        cr_assert_eq(output_scan_rows(&log, SETTINGS, &finished, &scan, &error), STATUS_OK,
                     "cut at %zu: %s", cut, error.text);
        long long rows = 0;
        while (rows < 3 && ends[rows + 1] <= cut)
            rows++;
        cr_assert_eq(scan.rows, rows, "cut at %zu", cut);
        cr_assert_eq(log.length, (int64_t)ends[rows], "cut at %zu", cut);
        cr_assert_eq(scan.torn_bytes, (int64_t)(cut - ends[rows]));
        append(&log, row(9, 9, "ok", 8));
        output_log_close(&log, &error);
        finished_set_deinit(&finished);
        char buffer[2048];
        read_all(buffer, sizeof buffer);
        cr_assert_eq(strncmp(buffer, whole, ends[rows]), 0);
        cr_assert_str_eq(buffer + ends[rows], row(9, 9, "ok", 8));
    }
}

Test(output_log, rows_are_remembered_by_id_and_document) {
    struct output_log log;
    struct finished_set finished;
    struct output_scan scan;
    finished_set_init(&finished);
    cr_assert_eq(output_log_open(&log, path, OUTPUT_NEW, &error), STATUS_OK);
    append(&log, row(1, 0, "ok", 0x100));
    append(&log, row(2, 1, "error", 0x200));
    cr_assert_eq(output_scan_rows(&log, SETTINGS, &finished, &scan, &error), STATUS_OK);
    cr_assert_eq(scan.rows, 2);
    cr_assert_eq(scan.errors, 1);
    cr_assert_not(scan.superseded);
    const struct finished_entry *entry = finished_set_find(&finished, document_hash_id("1", 1));
    cr_assert_not_null(entry);
    cr_assert(finished_set_matches(entry->state, 0x100));
    cr_assert_not(finished_set_matches(entry->state, 0x108));
    cr_assert_null(finished_set_find(&finished, document_hash_id("3", 1)));
    output_log_close(&log, &error);
    finished_set_deinit(&finished);
}

Test(output_log, other_settings_and_foreign_files_are_refused_untouched) {
    struct output_log log;
    struct finished_set finished;
    struct output_scan scan;
    finished_set_init(&finished);
    write_all(row(1, 0, "ok", 8), strlen(row(1, 0, "ok", 8)));
    cr_assert_eq(output_log_open(&log, path, OUTPUT_RESUME, &error), STATUS_OK);
    cr_assert_eq(output_scan_rows(&log, "00000000000000bb-", &finished, &scan, &error),
                 STATUS_BAD_INPUT);
    cr_assert(strstr(error.text, "other settings") != NULL, "%s", error.text);
    output_log_close(&log, &error);
    const char foreign[] = "dear diary\nno json here";
    write_all(foreign, strlen(foreign));
    cr_assert_eq(output_log_open(&log, path, OUTPUT_RESUME, &error), STATUS_OK);
    cr_assert_eq(output_scan_rows(&log, SETTINGS, &finished, &scan, &error), STATUS_BAD_INPUT);
    output_log_close(&log, &error);
    char buffer[64];
    read_all(buffer, sizeof buffer);
    cr_assert_str_eq(buffer, foreign);
    finished_set_deinit(&finished);
}

Test(output_log, publishing_keeps_the_last_row_of_an_id_and_orders_by_index) {
    struct output_log log;
    cr_assert_eq(output_log_open(&log, path, OUTPUT_NEW, &error), STATUS_OK);
    append(&log, row(5, 2, "ok", 8));
    append(&log, row(4, 1, "error", 16));
    append(&log, row(3, 0, "ok", 24));
    append(&log, row(4, 1, "ok", 32));
    cr_assert_eq(output_scan_publish(&log, path, true, &error), STATUS_OK, "%s", error.text);
    char buffer[2048], expected[2048] = "";
    read_all(buffer, sizeof buffer);
    append_text(expected, sizeof expected, row(3, 0, "ok", 24));
    append_text(expected, sizeof expected, row(4, 1, "ok", 32));
    append_text(expected, sizeof expected, row(5, 2, "ok", 8));
    cr_assert_str_eq(buffer, expected);
    output_log_close(&log, &error);
}
