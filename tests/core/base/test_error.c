/* Error text: context on the way up, never longer than its buffer, never half a character. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/log.h"

static bool ends_on_a_character(const char *text) {
    size_t length = strlen(text);
    size_t back = 0;
    while (back < length && ((unsigned char)text[length - 1 - back] & 0xC0) == 0x80)
        back++;
    if (back == length)
        return back == 0;
    unsigned char lead = (unsigned char)text[length - 1 - back];
    size_t wanted = lead < 0x80 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    return back == wanted;
}

Test(error, context_goes_in_front) {
    struct error error;
    cr_assert_eq(error_set(&error, STATUS_CORRUPT, "line %d: bad", 3), STATUS_CORRUPT);
    cr_assert_eq(error_context(&error, "'%s'", "a.txt"), STATUS_CORRUPT);
    cr_assert_str_eq(error.text, "'a.txt': line 3: bad");
}

Test(error, the_errno_text_comes_last) {
    struct error error;
    error_set_errno(&error, STATUS_IO, ENOSPC, "cannot write '%s'", "out");
    cr_assert_str_eq(error.text, "cannot write 'out': No space left on device");
}

Test(error, no_error_object_is_allowed) {
    cr_assert_eq(error_set(NULL, STATUS_IO, "x"), STATUS_IO);
    cr_assert_eq(error_set_errno(NULL, STATUS_IO, EIO, "x"), STATUS_IO);
}

Test(error, a_long_text_is_cut_at_a_character) {
    char subject[3000];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(subject, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof subject; i += 3)
            memcpy(subject + i, "\xE2\x82\xAC", 3);
        subject[2000] = '\0';
        struct error error;
        error_set(&error, STATUS_IO, "%s", subject);
        cr_assert_lt(strlen(error.text), ERROR_TEXT_MAX);
        cr_assert_gt(strlen(error.text), ERROR_TEXT_MAX - 5);
        cr_assert(ends_on_a_character(error.text), "shift %zu", shift);
        error_context(&error, "context");
        cr_assert(ends_on_a_character(error.text));
    }
}

Test(error, context_longer_than_the_buffer_is_safe) {
    char long_context[2 * ERROR_TEXT_MAX];
    memset(long_context, 'c', sizeof long_context - 1);
    long_context[sizeof long_context - 1] = '\0';
    struct error error;
    error_set(&error, STATUS_IO, "inner");
    error_context(&error, "%s", long_context);
    cr_assert_lt(strlen(error.text), ERROR_TEXT_MAX);
}

Test(error, every_status_has_a_name) {
    for (int status = 0; status < STATUS_COUNT; status++)
        cr_assert_str_neq(error_status_name((enum status)status), "unknown");
    cr_assert_str_eq(error_status_name(STATUS_COUNT), "unknown");
}

struct heard {
    int count;
    enum log_level level;
    char message[4096];
};

static void hear(void *context, enum log_level level, const char *message) {
    struct heard *heard = context;
    heard->count++;
    heard->level = level;
    strncpy(heard->message, message, sizeof heard->message - 1);
}

Test(log, writes_up_to_its_level) {
    struct heard heard = {0};
    struct log log = {.level = LOG_WARNING, .sink = hear, .context = &heard};
    log_write(&log, LOG_INFO, "not heard");
    cr_assert_eq(heard.count, 0);
    log_write(&log, LOG_WARNING, "heard %d", 1);
    cr_assert_eq(heard.count, 1);
    cr_assert_eq(heard.level, LOG_WARNING);
    cr_assert_str_eq(heard.message, "heard 1");
    log_write(NULL, LOG_ERROR, "nobody");
}
