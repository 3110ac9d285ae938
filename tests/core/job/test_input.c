/* Inputs as documents: files, folders, pipes, gzip and lists, in order, each trouble in its own
 * row. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/job/codes.h"
#include "core/job/input.h"
#include "tests/support/folder.h"

TestSuite(input, .init = folder_enter, .fini = folder_leave);

/* Everything the inputs give, one line a document: id, "ok" or the code, text or message. */
static void describe(const struct document *document, struct text *out) {
    cr_assert(text_append_format(out, "%s %s ", document->id_json,
                                 document->error_code ? document->error_code : "ok"));
    if (document->error_code) {
        cr_assert(codes_error_find(document->error_code), "%s", document->error_code);
        cr_assert(text_append_string(out, document->error_message));
    } else {
        cr_assert(text_append(out, document->text.bytes, document->text.length));
    }
    cr_assert(text_append_char(out, '\n'));
}

static char *read_with(struct input_options options, char **skipped) {
    struct input *input;
    struct error error = {0};
    struct document document;
    struct text out;
    bool end = false;
    text_init(&out, 1 << 24);
    cr_assert(text_append_string(&out, ""));
    cr_assert_eq(input_open(&options, &input, &error), STATUS_OK, "%s", error.text);
    document_init(&document);
    for (long long index = 0;; index++) {
        cr_assert_eq(input_next(input, &document, &end, &error), STATUS_OK, "%s", error.text);
        if (end)
            break;
        cr_assert_eq(document.index, index);
        cr_assert(document.read_ns >= 0 && document.ready_ns > 0);
        describe(&document, &out);
    }
    document_deinit(&document);
    if (skipped) {
        struct text message;
        text_init(&message, 4096);
        cr_assert(text_append_string(&message, "") && input_skipped_message(input, &message));
        *skipped = message.bytes;
    }
    input_close(input);
    return out.bytes;
}

static void assert_gives(const char *expected, const char *const *paths, int count) {
    char *found = read_with((struct input_options){.paths = paths, .path_count = count}, NULL);
    cr_assert_str_eq(found, expected);
    free(found);
}

#define GIVES(expected, ...)                                                     \
    do {                                                                         \
        const char *paths_[] = {__VA_ARGS__};                                    \
        assert_gives(expected, paths_, (int)(sizeof paths_ / sizeof paths_[0])); \
    } while (0)

Test(input, files_in_the_order_given) {
    folder_write_text("b.txt", "second");
    folder_write_text("sub/a.txt", "first\n");
    GIVES("\"b.txt\" ok second\n\"sub/a.txt\" ok first\n\n\"b.txt\" ok second\n", "./b.txt",
          "./sub/a.txt", "b.txt");
}

Test(input, one_bad_item_never_stops_the_rest) {
    folder_write_text("good.txt", "good");
    folder_write_text("empty.txt", "");
    folder_write("nul.txt", "a\0b", 3);
    folder_write("utf16.txt",
                 "\xFF\xFE"
                 "a\0",
                 4);
    GIVES("\"missing.txt\" not_found 'missing.txt': cannot read it: No such file or directory\n"
          "\"empty.txt\" empty 'empty.txt': the document is empty\n"
          "\"good.txt/x\" not_found 'good.txt/x': cannot read it: Not a directory\n"
          "\"nul.txt\" not_text 'nul.txt': not text: byte 1 is NUL\n"
          "\"utf16.txt\" not_text 'utf16.txt': it is UTF-16, not UTF-8: convert it with iconv -f "
          "UTF-16 -t UTF-8\n"
          "\"good.txt\" ok good\n",
          "missing.txt", "empty.txt", "good.txt/x", "nul.txt", "utf16.txt", "good.txt");
}

Test(input, devices_are_refused_and_named_pipes_read) {
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    pid_t writer = fork();
    if (writer == 0) {
        int fd = open("pipe", O_WRONLY);
        ssize_t written = write(fd, "through the pipe", 16);
        close(fd);
        _exit(written == 16 ? 0 : 1);
    }
    GIVES("\"/dev/zero\" unreadable '/dev/zero': it is neither a file nor a pipe\n"
          "\"pipe\" ok through the pipe\n",
          "/dev/zero", "pipe");
    waitpid(writer, NULL, 0);
}

/* As another user, because root may read everything. */
Test(input, files_without_permission_are_unreadable) {
    folder_write_text("secret.txt", "x");
    folder_write_text("closed/in.txt", "x");
    folder_write_text("open.txt", "open");
    cr_assert(chmod("secret.txt", 0) == 0 && chmod("closed", 0) == 0 && chmod(".", 0755) == 0);
    pid_t reader = fork();
    if (reader == 0) {
        if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(2);
        const char *paths[] = {"secret.txt", "closed", "."};
        char *found = read_with((struct input_options){.paths = paths, .path_count = 3}, NULL);
        bool same =
            strcmp(found, "\"secret.txt\" unreadable 'secret.txt': cannot read it: Permission "
                          "denied\n\"closed\" unreadable 'closed': cannot read it: Permission "
                          "denied\n\"closed\" unreadable 'closed': cannot read it: Permission "
                          "denied\n\"open.txt\" ok open\n\"secret.txt\" unreadable 'secret.txt': "
                          "cannot read it: Permission denied\n") == 0;
        if (!same)
            fputs(found, stderr);
        _exit(same ? 0 : 1);
    }
    int status;
    waitpid(reader, &status, 0);
    chmod("closed", 0755);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

Test(input, stdin_is_read_when_named) {
    folder_write_text("in", "from stdin");
    cr_assert(freopen("in", "r", stdin));
    const char *paths[] = {"-"};
    struct input_options options = {.paths = paths, .path_count = 1};
    struct input *input;
    struct document document;
    bool end;
    document_init(&document);
    cr_assert_eq(input_open(&options, &input, NULL), STATUS_OK);
    cr_assert_eq(input_next(input, &document, &end, NULL), STATUS_OK);
    cr_assert(!end && !document.error_code && !document.path);
    cr_assert_str_eq(document.name, "stdin");
    cr_assert_str_eq(document.id_json, "\"-\"");
    cr_assert_str_eq(document.text.bytes, "from stdin");
    document_deinit(&document);
    input_close(input);
    GIVES("\"-\" empty stdin: the document is empty\n", "-");
}

Test(input, stdin_may_be_gzip_or_the_list_itself) {
    folder_write_gzip("packed", "unpacked from stdin", 19);
    folder_write_text("a.txt", "a");
    folder_write_text("list", "a.txt\na.txt\n");
    cr_assert(freopen("packed", "r", stdin));
    GIVES("\"-\" ok unpacked from stdin\n", "-");
    cr_assert(freopen("list", "r", stdin));
    char *found = read_with((struct input_options){.files_from = "-"}, NULL);
    cr_assert_str_eq(found, "\"a.txt\" ok a\n\"a.txt\" ok a\n");
    free(found);
}

/* --- folders ---------------------------------------------------------------------------------- */

Test(input, folders_are_walked_in_the_byte_order_of_paths) {
    static const char *const names[] = {"d/b.txt", "d/a/z.txt", "d/a.txt",        "d/a-b/q.txt",
                                        "d/B.txt", "d/a0.txt",  "d/\xC3\xA4.txt", "d/a/a/a.txt"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        folder_write_text(names[i], "x");
    cr_assert_eq(mkdir("d/none", 0755), 0);
    static const char expected[] = "\"d/B.txt\" ok x\n\"d/a-b/q.txt\" ok x\n\"d/a.txt\" ok x\n"
                                   "\"d/a/a/a.txt\" ok x\n\"d/a/z.txt\" ok x\n\"d/a0.txt\" ok x\n"
                                   "\"d/b.txt\" ok x\n\"d/\xC3\xA4.txt\" ok x\n";
    GIVES(expected, "d");
    GIVES(expected, "./d/");
}

Test(input, an_empty_folder_gives_nothing) {
    cr_assert_eq(mkdir("none", 0755), 0);
    GIVES("", "none");
}

Test(input, hidden_and_binary_files_are_skipped_and_said) {
    folder_write_text("d/.git/config", "x");
    folder_write_text("d/.hidden", "x");
    folder_write("d/scan.PDF", "%PDF-1.4\n%\xE2\xE3\xCF\xD3", 14);
    folder_write("d/b.pdf", "%PDF-1.4", 8);
    folder_write("d/c.png", "\x89PNG\0", 5);
    folder_write("d/latin.txt", "caf\xE9 caf\xE9", 9);
    folder_write_text("d/text.txt", "text");
    cr_assert(mkfifo("d/pipe", 0600) == 0);
    const char *paths[] = {"d"};
    char *skipped;
    char *found = read_with(
        (struct input_options){.paths = paths, .path_count = 1, .replace_invalid = true}, &skipped);
    cr_assert_str_eq(found, "\"d/latin.txt\" not_text 'd/latin.txt': 2 of 9 bytes are not UTF-8, "
                            "the first at 3: convert it with iconv\n\"d/text.txt\" ok text\n");
    cr_assert_str_eq(skipped, "skipped 3 binary files (.pdf, .png), 2 hidden files or folders, "
                              "1 special file");
    free(found);
    free(skipped);
}

Test(input, links_are_followed_but_never_in_circles) {
    folder_write_text("d/a/file.txt", "x");
    cr_assert(symlink("..", "d/a/up") == 0 && symlink("a", "d/b") == 0 &&
              symlink("gone", "d/c") == 0 && symlink("a/file.txt", "d/e") == 0);
    const char *paths[] = {"d"};
    char *skipped;
    char *found = read_with((struct input_options){.paths = paths, .path_count = 1}, &skipped);
    cr_assert_str_eq(found, "\"d/a/file.txt\" ok x\n\"d/b/file.txt\" ok x\n"
                            "\"d/c\" not_found 'd/c': cannot read it: No such file or directory\n"
                            "\"d/e\" ok x\n");
    cr_assert_str_eq(skipped, "skipped 2 symbolic links to a folder above them");
    free(found);
    free(skipped);
}

Test(input, names_that_are_not_utf8_are_escaped) {
    folder_write_text("d/caf\xE9.txt", "x");
    GIVES("\"d/caf%E9.txt\" ok x\n", "d");
}

/* --- limits ----------------------------------------------------------------------------------- */

Test(input, a_document_over_the_limit_is_an_error_and_the_rest_goes_on) {
    char *big = malloc(3000000);
    memset(big, 'b', 3000000);
    folder_write("big.txt", big, 3000000);
    folder_write_gzip("big.txt.gz", big, 3000000);
    folder_write("fits.txt", big, 1000);
    memcpy(big + 1000000, "\n{\"text\":\"last\"}\n", 17);
    folder_write("lines.jsonl", big, 1000017);
    free(big);
    const char *paths[] = {"big.txt", "big.txt.gz", "lines.jsonl", "fits.txt"};
    struct input_options options = {.paths = paths, .path_count = 4, .document_bytes_max = 1000};
    char *found = read_with(options, NULL);
    static const char expected[] =
        "\"big.txt\" too_large 'big.txt': it has more than 1000 bytes\n"
        "\"big.txt.gz\" too_large 'big.txt.gz': it has more than 1000 bytes\n"
        "\"lines.jsonl:1\" too_large 'lines.jsonl': line 1: it has more than 1000 bytes\n"
        "\"lines.jsonl:2\" ok last\n"
        "\"fits.txt\" ok b";
    cr_assert(strncmp(found, expected, sizeof expected - 1) == 0, "%.500s", found);
    free(found);
}

/* --- gzip ------------------------------------------------------------------------------------- */

static size_t read_bytes(const char *path, char *bytes, size_t capacity) {
    FILE *file = fopen(path, "rb");
    cr_assert(file);
    size_t length = fread(bytes, 1, capacity, file);
    fclose(file);
    return length;
}

Test(input, gzip_files_are_unpacked_members_and_all) {
    char bytes[4096];
    folder_write_gzip("a.txt.gz", "one ", 4);
    folder_write_gzip("b.gz", "two", 3);
    size_t length = read_bytes("a.txt.gz", bytes, sizeof bytes);
    length += read_bytes("b.gz", bytes + length, sizeof bytes - length);
    memset(bytes + length, 0, 512); /* padding, as tapes leave it */
    folder_write("both.gz", bytes, length + 512);
    folder_write_gzip("l.jsonl.gz", "{\"text\":\"x\"}\n{\"text\":\"y\"}", 25);
    folder_write_gzip("d/tar.gz", "a\0b", 3);
    GIVES("\"a.txt.gz\" ok one \n\"both.gz\" ok one two\n\"l.jsonl.gz:1\" ok x\n"
          "\"l.jsonl.gz:2\" ok y\n",
          "a.txt.gz", "both.gz", "l.jsonl.gz", "d");
}

Test(input, gzip_data_cut_at_any_byte_is_unreadable) {
    char bytes[4096];
    folder_write_gzip("whole.gz", "some text to pack, some text to pack", 36);
    size_t length = read_bytes("whole.gz", bytes, sizeof bytes);
    for (size_t cut = 0; cut < length; cut++) {
        folder_write("cut.gz", bytes, cut);
        const char *paths[] = {"cut.gz"};
        char *found = read_with((struct input_options){.paths = paths, .path_count = 1}, NULL);
        static const char expected[] = "\"cut.gz\" unreadable 'cut.gz': damaged gzip data: ";
        cr_assert(strncmp(found, expected, sizeof expected - 1) == 0, "cut %zu: %s", cut, found);
        free(found);
    }
    bytes[length / 2] ^= 0x55;
    folder_write("bad.gz", bytes, length);
    folder_write_text("not.gz", "plain");
    const char *paths[] = {"bad.gz", "not.gz"};
    char *found = read_with((struct input_options){.paths = paths, .path_count = 2}, NULL);
    cr_assert(strstr(found, "\"bad.gz\" unreadable") && strstr(found, "\"not.gz\" unreadable"),
              "%s", found);
    free(found);
}

Test(input, a_gzip_bomb_is_stopped) {
    cr_assert_eq(system("head -c 100000000 /dev/zero | tr '\\0' ' ' | gzip -9 > bomb.jsonl.gz"), 0);
    folder_write_text("after.txt", "after");
    const char *paths[] = {"bomb.jsonl.gz", "after.txt"};
    char *found = read_with((struct input_options){.paths = paths, .path_count = 2}, NULL);
    cr_assert(strstr(found, "\"bomb.jsonl.gz:1\" too_large 'bomb.jsonl.gz': line 1: gzip data that "
                            "expands more than 200 times"),
              "%s", found);
    cr_assert(strstr(found, "\"after.txt\" ok after"));
    free(found);
}

/* --- lists ------------------------------------------------------------------------------------ */

Test(input, lists_of_paths_follow_the_arguments) {
    folder_write_text("a.txt", "a");
    folder_write_text("b c.txt", "b");
    folder_write_text("d/e.txt", "e");
    folder_write_text("odd\nname", "o");
    folder_write_text("list", "b c.txt\n\nd\nmissing\na.txt");
    folder_write("list0", "odd\nname\0d\0", 11);
    const char *paths[] = {"a.txt"};
    struct input_options options = {.paths = paths, .path_count = 1, .files_from = "list"};
    char *found = read_with(options, NULL);
    cr_assert_str_eq(found, "\"a.txt\" ok a\n\"b c.txt\" ok b\n\"d/e.txt\" ok e\n"
                            "\"missing\" not_found 'missing': cannot read it: No such file or "
                            "directory\n\"a.txt\" ok a\n");
    free(found);
    options = (struct input_options){.files_from = "list0", .files_from_nul = true};
    found = read_with(options, NULL);
    cr_assert_str_eq(found, "\"odd%0Aname\" ok o\n\"d/e.txt\" ok e\n");
    free(found);
    options = (struct input_options){.files_from = "list0"};
    found = read_with(options, NULL);
    cr_assert(strstr(found, "did you mean -0?"), "%s", found);
    free(found);
}

Test(input, an_unreadable_list_is_the_jobs_own_trouble) {
    struct input_options options = {.files_from = "no-such-list"};
    struct input *input;
    struct error error = {0};
    cr_assert_eq(input_open(&options, &input, &error), STATUS_NOT_FOUND);
    cr_assert_null(input);
    cr_assert_str_eq(error.text,
                     "the list 'no-such-list': cannot read it: No such file or directory");
}

Test(input, invalid_bytes_follow_the_policy) {
    char bytes[400];
    memset(bytes, 'a', sizeof bytes);
    bytes[200] = '\xE9';
    folder_write("x.txt", bytes, sizeof bytes);
    GIVES("\"x.txt\" invalid_utf8 'x.txt': byte 200 (0xe9) is not UTF-8: convert it, or use "
          "--invalid-bytes replace\n",
          "x.txt");
    const char *paths[] = {"x.txt"};
    char *found = read_with(
        (struct input_options){.paths = paths, .path_count = 1, .replace_invalid = true}, NULL);
    cr_assert(strstr(found, "\"x.txt\" ok aaa") && strstr(found, "a\xEF\xBF\xBD"
                                                                 "a"));
    free(found);
}
