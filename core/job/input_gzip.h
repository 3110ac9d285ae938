/* Unpacking gzip while reading, concatenated members too, with a limit against bombs. */
#ifndef CORE_JOB_INPUT_GZIP_H
#define CORE_JOB_INPUT_GZIP_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

struct input_gzip;

/* `count` ≤ INPUT_GZIP_BYTES packed bytes that were read already. NULL when out of memory. */
enum { INPUT_GZIP_BYTES = 256 * 1024 };
struct input_gzip *input_gzip_create(const uint8_t *bytes, size_t count);
void input_gzip_destroy(struct input_gzip *gzip);

/* Reads from `fd` as needed and unpacks up to `room` bytes; *count 0: the end. Damaged or cut data
 * is unreadable, data that expands out of all proportion too_large. */
enum status input_gzip_read(struct input_gzip *gzip, int fd, uint8_t *out, size_t room,
                            size_t *count, const char **code, struct error *error);

#endif
