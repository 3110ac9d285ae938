/* Every allocation of the reading side fails once: a document's own failures become out_of_memory
 * rows, nothing faults, nothing leaks, and the rows that succeed are what they would have been. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/job/input.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/folder.h"

TestSuite(input_faults, .init = folder_enter, .fini = folder_leave);

static void check_document(const struct document *document) {
    cr_assert(document->id_json && document->name);
    if (document->error_code) {
        cr_assert(document->error_message);
        /* jansson's very first allocation fails without a word, which reads as bad JSON. */
        bool silent = strcmp(document->error_code, "bad_json") == 0 && document->line > 0;
        cr_assert(silent || strcmp(document->error_code, "out_of_memory") == 0, "%s: %s",
                  document->error_code, document->error_message);
        return;
    }
    bool has_text = document->text.length > 0;
    cr_assert(has_text != (document->messages != NULL));
    if (has_text)
        cr_assert(strncmp(document->text.bytes, "text", 4) == 0);
}

/* Reads all inputs with the n-th allocation failing; false once there is no n-th. */
static bool read_failing(const struct input_options *options, int n) {
    struct input *input = NULL;
    struct document document;
    struct error error = {0};
    bool end = false;
    document_init(&document);
    failing_malloc_arm(n);
    enum status status = input_open(options, &input, &error);
    for (int i = 0; status == STATUS_OK && !end && i < 100; i++) {
        status = input_next(input, &document, &end, &error);
        if (status == STATUS_OK && !end)
            check_document(&document);
    }
    bool failed = failing_malloc_disarm();
    cr_assert(status == STATUS_OK || status == STATUS_NO_MEMORY, "%s", error.text);
    cr_assert(failed || status == STATUS_OK);
    document_deinit(&document);
    input_close(input);
    return failed;
}

Test(input_faults, every_allocation_of_reading) {
    char bad[300];
    memset(bad, 't', sizeof bad);
    memcpy(bad, "text", 4);
    bad[200] = '\xFF';
    folder_write("d/bad.txt", bad, sizeof bad);
    folder_write_text("d/e/text.txt", "text");
    folder_write_text("d/caf\xE9.txt", "text");
    folder_write_gzip("d/z.gz", "text", 4);
    folder_write_text(
        "d/l.jsonl",
        "{\"id\":1,\"text\":\"text\",\"k\":1,\"options\":{\"seed\":1},\"prompt\":\"p\"}\n"
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"text\":\"x\"}]}]}\n"
        "{\"custom_id\":\"a\",\"body\":{\"prompt\":\"text\",\"seed\":1}}\n");
    folder_write_text("list", "d/e\nd/e/text.txt\n");
    json_set_alloc_funcs(failing_malloc_allocate, free);
    const char *paths[] = {"d", "d/l.jsonl"};
    struct input_options options = {
        .paths = paths, .path_count = 2, .files_from = "list", .replace_invalid = true};
    int n = 1;
    while (read_failing(&options, n))
        n++;
    cr_assert_gt(n, 60);
}
