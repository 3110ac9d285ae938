/* Status codes and bounded error text. Every fallible function returns `enum status` and takes a
 * `struct error *` last. The callee writes the reason, callers add context on the way up
 * (`'contracts/a.txt': line 3: ...`). Messages: lower case, what failed first, the subject in
 * single quotes, what to do about it; no full stop. */
#ifndef CORE_BASE_ERROR_H
#define CORE_BASE_ERROR_H

#include <stdarg.h>

enum status {
    STATUS_OK = 0,
    STATUS_NO_MEMORY,   /* host or device memory */
    STATUS_IO,          /* the operating system refused: open, read, write */
    STATUS_NOT_FOUND,   /* a named thing does not exist */
    STATUS_CORRUPT,     /* a file's bytes contradict its format */
    STATUS_UNSUPPORTED, /* valid, but not something we do */
    STATUS_BAD_INPUT,   /* the user's text, option or document is wrong */
    STATUS_OVER_LIMIT,  /* a stated maximum was reached */
    STATUS_CANCELLED,   /* the user asked to stop */
    STATUS_DEVICE,      /* an accelerator failed */
    STATUS_COUNT
};

enum { ERROR_TEXT_MAX = 1024 };

struct error {
    enum status status;
    char text[ERROR_TEXT_MAX]; /* NUL-terminated, cut at a character border when too long */
};

#define ERROR_FORMAT(format_index, first) __attribute__((format(printf, format_index, first)))

/* Name of a status, for logs and tests ("no_memory"). */
const char *error_status_name(enum status status);

/* Write the reason and return `status`. `error` may be NULL. */
enum status error_set(struct error *error, enum status status, const char *format, ...)
    ERROR_FORMAT(3, 4);

/* As error_set, with ": " and the text of `error_number` (an errno value) at the end. */
enum status error_set_errno(struct error *error, enum status status, int error_number,
                            const char *format, ...) ERROR_FORMAT(4, 5);

/* Prefix the text with a context and ": "; returns the error's status (BAD_INPUT without an error,
 * which is the only place where the status is kept). */
enum status error_context(struct error *error, const char *format, ...) ERROR_FORMAT(2, 3);

/* The usual answer to a failed allocation. */
enum status error_no_memory(struct error *error, const char *what);

#define TRY(call)                         \
    do {                                  \
        enum status try_status_ = (call); \
        if (try_status_ != STATUS_OK)     \
            return try_status_;           \
    } while (0)

#endif
