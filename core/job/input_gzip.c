/* Over zlib. A bomb is data that stays far above the ratio of any text, 200:1, after so many
 * unpacked bytes that a run of blanks in a small document cannot be meant. */
#include "core/job/input_gzip.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { WINDOW_BITS_GZIP = 15 + 16, RATIO_MAX = 200 };
static const uint64_t RATIO_FREE_BYTES = (uint64_t)64 << 20;

struct input_gzip {
    z_stream z;
    bool in_member; /* within a member, or before the first */
    bool ended;
    uint64_t packed_bytes, unpacked_bytes;
    uint8_t packed[INPUT_GZIP_BYTES];
};

struct input_gzip *input_gzip_create(const uint8_t *bytes, size_t count) {
    struct input_gzip *gzip = calloc(1, sizeof *gzip);
    if (!gzip)
        return NULL;
    if (inflateInit2(&gzip->z, WINDOW_BITS_GZIP) != Z_OK) {
        free(gzip);
        return NULL;
    }
    memcpy(gzip->packed, bytes, count);
    gzip->z.next_in = gzip->packed;
    gzip->z.avail_in = (uInt)count;
    gzip->packed_bytes = count;
    gzip->in_member = true;
    return gzip;
}

void input_gzip_destroy(struct input_gzip *gzip) {
    if (!gzip)
        return;
    inflateEnd(&gzip->z);
    free(gzip);
}

static enum status damaged(const char **code, struct error *error, const char *reason) {
    *code = "unreadable";
    return error_set(error, STATUS_CORRUPT, "damaged gzip data: %s", reason);
}

/* More packed bytes, unless some are left; none at the end of the file. */
static enum status refill(struct input_gzip *gzip, int fd, const char **code, struct error *error) {
    if (gzip->z.avail_in > 0)
        return STATUS_OK;
    ssize_t count;
    do
        count = read(fd, gzip->packed, sizeof gzip->packed);
    while (count < 0 && errno == EINTR);
    if (count < 0) {
        *code = "unreadable";
        return error_set_errno(error, STATUS_IO, errno, "cannot read it");
    }
    gzip->z.next_in = gzip->packed;
    gzip->z.avail_in = (uInt)count;
    gzip->packed_bytes += (uint64_t)count;
    return STATUS_OK;
}

/* Between members: zeros are padding, anything else begins another member. */
static void skip_padding(struct input_gzip *gzip) {
    while (gzip->z.avail_in > 0 && *gzip->z.next_in == 0) {
        gzip->z.next_in++;
        gzip->z.avail_in--;
    }
}

static enum status unpack(struct input_gzip *gzip, const char **code, struct error *error) {
    int result = inflate(&gzip->z, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR)
        return error_no_memory(error, "unpacking gzip data");
    if (result == Z_STREAM_END) {
        gzip->in_member = false;
        return inflateReset(&gzip->z) == Z_OK ? STATUS_OK : damaged(code, error, "reset failed");
    }
    if (result != Z_OK && result != Z_BUF_ERROR)
        return damaged(code, error, gzip->z.msg ? gzip->z.msg : "unknown format");
    return STATUS_OK;
}

static enum status check_ratio(const struct input_gzip *gzip, const char **code,
                               struct error *error) {
    if (gzip->unpacked_bytes <= RATIO_FREE_BYTES ||
        gzip->unpacked_bytes / RATIO_MAX <= gzip->packed_bytes)
        return STATUS_OK;
    *code = "too_large";
    return error_set(error, STATUS_OVER_LIMIT,
                     "gzip data that expands more than %d times, stopped after %llu bytes",
                     RATIO_MAX, (unsigned long long)gzip->unpacked_bytes);
}

enum status input_gzip_read(struct input_gzip *gzip, int fd, uint8_t *out, size_t room,
                            size_t *count, const char **code, struct error *error) {
    gzip->z.next_out = out;
    gzip->z.avail_out = (uInt)room;
    *count = 0;
    while (!gzip->ended && gzip->z.avail_out == room) {
        TRY(refill(gzip, fd, code, error));
        if (!gzip->in_member)
            skip_padding(gzip);
        if (gzip->z.avail_in == 0) {
            /* refill found the end of the file, or all was padding: then look again */
            TRY(refill(gzip, fd, code, error));
            if (gzip->z.avail_in > 0)
                continue;
            if (gzip->in_member)
                return damaged(code, error, "it ends too early");
            gzip->ended = true;
            break;
        }
        gzip->in_member = true;
        TRY(unpack(gzip, code, error));
    }
    *count = room - gzip->z.avail_out;
    gzip->unpacked_bytes += *count;
    return check_ratio(gzip, code, error);
}
