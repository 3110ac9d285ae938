/* One reader, one taker, one lock. Pieces lie in the ring in the order of the file's reading, each
 * in one stretch; what a piece needs is rounded to whole blocks of the disk on both sides. */
#include "core/engine/weight_stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"

enum { BLOCK_BYTES = 4096, HUGE_PAGE_BYTES = 2 << 20 };
static const uint64_t READ_BYTES_MAX = UINT64_C(8) << 20; /* of one call: ends soon when told to */

/* A piece in the ring. */
struct entry {
    int piece;
    uint64_t at; /* in the ring */
    bool is_read;
};

/* Whether the step that the reader is in takes the optional pieces. */
enum optional { OPTIONAL_UNKNOWN, OPTIONAL_TAKEN, OPTIONAL_LEFT_OUT };

struct source {
    int descriptor; /* borrowed */
    int direct;     /* the same file past the page cache, or -1 */
};

struct weight_stream {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t reader;
    bool has_lock, has_changed, has_reader;
    struct source source;
    uint8_t *ring;
    uint64_t ring_bytes;
    struct weight_piece *pieces;
    int piece_count;
    int optional_from;
    /* under the lock */
    struct entry *entries; /* [piece_count], circular: those in the ring */
    int entry_first, entry_count;
    int next; /* piece to read */
    enum optional optional;
    bool stop;
    int error_number; /* of the first read that failed */
    struct weight_stream_totals totals;
};

static uint64_t block_floor(uint64_t bytes) {
    return bytes / BLOCK_BYTES * BLOCK_BYTES;
}

/* In the ring: from the block that the piece begins in to the end of that it ends in. */
static uint64_t room_of(const struct weight_piece *piece) {
    uint64_t end = piece->offset + piece->bytes;
    return block_floor(end + BLOCK_BYTES - 1) - block_floor(piece->offset);
}

uint64_t weight_stream_ring_least(uint64_t bytes) {
    return 2 * (block_floor(bytes) + 2 * BLOCK_BYTES);
}

/* ---- the ring ---- */

static struct entry *entry_at(struct weight_stream *stream, int index) {
    return &stream->entries[(stream->entry_first + index) % stream->piece_count];
}

/* A place for `room` bytes behind the newest entry and before the oldest; false: none yet. */
static bool find_place(struct weight_stream *stream, uint64_t room, uint64_t *at) {
    *at = 0;
    if (stream->entry_count == 0)
        return true;
    if (stream->entry_count == stream->piece_count)
        return false;
    const struct entry *newest = entry_at(stream, stream->entry_count - 1);
    uint64_t oldest = entry_at(stream, 0)->at;
    uint64_t end = newest->at + room_of(&stream->pieces[newest->piece]);
    if (newest->at < oldest) {
        *at = end;
        return end + room <= oldest;
    }
    if (end + room <= stream->ring_bytes) {
        *at = end;
        return true;
    }
    return room <= oldest;
}

/* ---- the reader ---- */

/* Blocks until `room` bytes at `offset` are in `out`, or as many as the file has. */
static int read_blocks(int descriptor, uint64_t offset, uint64_t room, uint64_t least,
                       uint8_t *out) {
    uint64_t done = 0;
    while (done < least) {
        uint64_t length = room - done < READ_BYTES_MAX ? room - done : READ_BYTES_MAX;
        ssize_t count = pread(descriptor, out + done, length, (off_t)(offset + done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 ? errno : EIO;
        done += (uint64_t)count;
    }
    return 0;
}

/* Some file systems open a file for direct reading and refuse to read it. */
static int read_piece(struct source *source, const struct weight_piece *piece, uint8_t *out) {
    uint64_t first = block_floor(piece->offset), room = room_of(piece);
    uint64_t least = piece->offset + piece->bytes - first;
    if (source->direct >= 0) {
        int failed = read_blocks(source->direct, first, room, least, out);
        if (failed != EINVAL)
            return failed;
        close(source->direct);
        source->direct = -1;
    }
    int failed = read_blocks(source->descriptor, first, room, least, out);
    posix_fadvise(source->descriptor, (off_t)first, (off_t)room, POSIX_FADV_DONTNEED);
    return failed;
}

/* The next piece and its place, under the lock; false: nothing to read now. */
static bool choose_next(struct weight_stream *stream, uint64_t *at) {
    bool at_optional = stream->next == stream->optional_from;
    if (at_optional && stream->optional == OPTIONAL_LEFT_OUT) {
        stream->next = 0;
        stream->optional = OPTIONAL_UNKNOWN;
        at_optional = stream->optional_from == 0;
    }
    if (at_optional && stream->optional == OPTIONAL_UNKNOWN)
        return false;
    return find_place(stream, room_of(&stream->pieces[stream->next]), at);
}

static void advance(struct weight_stream *stream) {
    stream->next = (stream->next + 1) % stream->piece_count;
    if (stream->next == 0)
        stream->optional = OPTIONAL_UNKNOWN;
}

static void *reader_main(void *context) {
    struct weight_stream *stream = context;
    pthread_mutex_lock(&stream->lock);
    while (!stream->stop) {
        uint64_t at;
        if (!choose_next(stream, &at)) {
            pthread_cond_wait(&stream->changed, &stream->lock);
            continue;
        }
        const struct weight_piece *piece = &stream->pieces[stream->next];
        struct entry *entry = entry_at(stream, stream->entry_count);
        *entry = (struct entry){.piece = stream->next, .at = at};
        stream->entry_count++;
        advance(stream);
        pthread_mutex_unlock(&stream->lock);
        int64_t started_ns = clock_now_ns();
        int failed = read_piece(&stream->source, piece, stream->ring + at);
        int64_t ended_ns = clock_now_ns();
        pthread_mutex_lock(&stream->lock);
        entry->is_read = true;
        stream->totals.bytes += piece->bytes;
        stream->totals.reading_ns += ended_ns - started_ns;
        if (failed != 0 && stream->error_number == 0)
            stream->error_number = failed;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

/* ---- the taker ---- */

/* Those that the step before left out may still stand next. */
void weight_stream_begin(struct weight_stream *stream, bool with_optional) {
    pthread_mutex_lock(&stream->lock);
    if (stream->optional == OPTIONAL_LEFT_OUT && stream->next == stream->optional_from)
        stream->next = 0;
    stream->optional = with_optional ? OPTIONAL_TAKEN : OPTIONAL_LEFT_OUT;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

const uint8_t *weight_stream_take(struct weight_stream *stream, int piece) {
    pthread_mutex_lock(&stream->lock);
    if (stream->entry_count == 0 || !entry_at(stream, 0)->is_read) {
        int64_t started_ns = clock_now_ns();
        while (stream->entry_count == 0 || !entry_at(stream, 0)->is_read)
            pthread_cond_wait(&stream->changed, &stream->lock);
        stream->totals.waited_ns += clock_now_ns() - started_ns;
    }
    struct entry *entry = entry_at(stream, 0);
    assert(entry->piece == piece);
    const uint8_t *bytes = stream->ring + entry->at + stream->pieces[piece].offset % BLOCK_BYTES;
    pthread_mutex_unlock(&stream->lock);
    return bytes;
}

void weight_stream_give_back(struct weight_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    assert(stream->entry_count > 0);
    stream->entry_first = (stream->entry_first + 1) % stream->piece_count;
    stream->entry_count--;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

enum status weight_stream_check(struct weight_stream *stream, struct error *error) {
    pthread_mutex_lock(&stream->lock);
    int number = stream->error_number;
    pthread_mutex_unlock(&stream->lock);
    return number == 0 ? STATUS_OK
                       : error_set_errno(error, STATUS_IO, number, "cannot read packed weights");
}

struct weight_stream_totals weight_stream_totals(struct weight_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    struct weight_stream_totals totals = stream->totals;
    pthread_mutex_unlock(&stream->lock);
    return totals;
}

/* ---- life ---- */

/* The descriptor's own flags belong to its owner. */
static int open_direct(int descriptor) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
}

static enum status make_ring(struct weight_stream *stream, uint64_t bytes, struct error *error) {
    stream->ring_bytes = block_floor(bytes);
    void *ring =
        mmap(NULL, stream->ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ring == MAP_FAILED)
        return error_set_errno(error, STATUS_NO_MEMORY, errno,
                               "cannot map %llu bytes for streamed weights",
                               (unsigned long long)stream->ring_bytes);
    stream->ring = ring;
    if (stream->ring_bytes >= HUGE_PAGE_BYTES)
        madvise(ring, stream->ring_bytes, MADV_HUGEPAGE); /* advice only: refusal is no failure */
    return STATUS_OK;
}

static enum status start(struct weight_stream *stream, struct error *error) {
    stream->has_lock = pthread_mutex_init(&stream->lock, NULL) == 0;
    stream->has_changed = pthread_cond_init(&stream->changed, NULL) == 0;
    if (stream->has_lock && stream->has_changed)
        stream->has_reader = pthread_create(&stream->reader, NULL, reader_main, stream) == 0;
    return stream->has_reader ? STATUS_OK : error_no_memory(error, "a thread that reads weights");
}

static enum status open_stream(struct weight_stream *stream,
                               const struct weight_stream_options *options, struct error *error) {
    size_t count = (size_t)options->piece_count;
    stream->piece_count = options->piece_count;
    stream->optional_from = options->optional_from;
    stream->pieces = calloc(count, sizeof *stream->pieces);
    stream->entries = calloc(count, sizeof *stream->entries);
    if (stream->pieces == NULL || stream->entries == NULL)
        return error_no_memory(error, "streamed weights");
    memcpy(stream->pieces, options->pieces, count * sizeof *stream->pieces);
    for (size_t i = 0; i < count; i++)
        assert(weight_stream_ring_least(stream->pieces[i].bytes) <= options->ring_bytes);
    TRY(make_ring(stream, options->ring_bytes, error));
    stream->source = (struct source){options->descriptor, open_direct(options->descriptor)};
    return start(stream, error);
}

enum status weight_stream_create(const struct weight_stream_options *options,
                                 struct weight_stream **stream, struct error *error) {
    struct weight_stream *made = calloc(1, sizeof *made);
    *stream = NULL;
    if (made == NULL)
        return error_no_memory(error, "streamed weights");
    made->source.direct = -1;
    enum status status = open_stream(made, options, error);
    if (status != STATUS_OK) {
        weight_stream_destroy(made);
        return status;
    }
    *stream = made;
    return STATUS_OK;
}

static void stop_reader(struct weight_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    stream->stop = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->reader, NULL);
}

void weight_stream_destroy(struct weight_stream *stream) {
    if (stream == NULL)
        return;
    if (stream->has_reader)
        stop_reader(stream);
    if (stream->has_changed)
        pthread_cond_destroy(&stream->changed);
    if (stream->has_lock)
        pthread_mutex_destroy(&stream->lock);
    if (stream->source.direct >= 0)
        close(stream->source.direct);
    if (stream->ring != NULL)
        munmap(stream->ring, stream->ring_bytes);
    free(stream->pieces);
    free(stream->entries);
    free(stream);
}

/* ---- how fast ---- */

enum { SAMPLE_COUNT = 4, SAMPLE_BYTES = 8 << 20 };

/* Bytes a second of pieces spread over the file; a small file is read over and over. */
static double rate_of(struct source *source, uint64_t file_bytes, uint8_t *memory) {
    uint64_t bytes = file_bytes < SAMPLE_BYTES ? file_bytes : SAMPLE_BYTES;
    int64_t started_ns = clock_now_ns();
    for (uint64_t i = 0; i < SAMPLE_COUNT; i++) {
        struct weight_piece piece = {block_floor((file_bytes - bytes) / SAMPLE_COUNT * i), bytes};
        if (read_piece(source, &piece, memory) != 0)
            return 0;
    }
    return (double)(bytes * SAMPLE_COUNT) / ((double)(clock_now_ns() - started_ns) * 1e-9);
}

double weight_stream_rate(const char *path) {
    struct stat info;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return 0;
    double rate = 0;
    size_t room = SAMPLE_BYTES + BLOCK_BYTES;
    void *memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct source source = {descriptor, open_direct(descriptor)};
    if (memory != MAP_FAILED && fstat(descriptor, &info) == 0 && info.st_size > 0)
        rate = rate_of(&source, (uint64_t)info.st_size, memory);
    if (memory != MAP_FAILED)
        munmap(memory, room);
    if (source.direct >= 0)
        close(source.direct);
    close(descriptor);
    return rate;
}
