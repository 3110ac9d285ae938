/* Streamed weights: each piece arrives whole, in order, for any sizes and rings, with the last one
 * or without; a file that cannot be read is an error of the step, and nobody waits for ever. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/engine/weight_stream.h"
#include "tests/support/folder.h"
#include "tests/support/random_tensor.h"

enum { PIECES_MAX = 9, FILE_BYTES = 1 << 20 };

struct rig {
    int descriptor;
    uint8_t *content; /* [FILE_BYTES] of the file */
    struct weight_piece pieces[PIECES_MAX];
    int piece_count;
    struct weight_stream *stream;
};

static void open_file(struct rig *rig) {
    uint64_t state = 7;
    *rig = (struct rig){.content = malloc(FILE_BYTES)};
    for (size_t i = 0; i < FILE_BYTES; i++)
        rig->content[i] = (uint8_t)random_tensor_next(&state);
    rig->descriptor = open("weights", O_RDWR | O_CREAT | O_TRUNC, 0600);
    cr_assert_eq(write(rig->descriptor, rig->content, FILE_BYTES), FILE_BYTES);
}

static void close_rig(struct rig *rig) {
    weight_stream_destroy(rig->stream);
    close(rig->descriptor);
    free(rig->content);
}

/* Pieces of random sizes, one behind another with gaps between them; the last ends with the file.
 */
static uint64_t make_pieces(struct rig *rig, int count, uint64_t seed) {
    uint64_t at = 0, largest = 0, room = FILE_BYTES / (uint64_t)count;
    rig->piece_count = count;
    for (int i = 0; i < count; i++) {
        uint64_t bytes = 64 + random_tensor_next(&seed) % (room - 128);
        uint64_t offset = (at + random_tensor_next(&seed) % 64) / 64 * 64;
        if (i == count - 1)
            bytes = FILE_BYTES - offset;
        rig->pieces[i] = (struct weight_piece){offset, bytes};
        largest = bytes > largest ? bytes : largest;
        at = offset + bytes + 63;
    }
    return largest;
}

static void start(struct rig *rig, uint64_t ring_bytes, int optional_from) {
    struct error error;
    struct weight_stream_options options = {rig->descriptor, rig->pieces, rig->piece_count,
                                            optional_from, ring_bytes};
    cr_assert_eq(weight_stream_create(&options, &rig->stream, &error), STATUS_OK, "%s", error.text);
}

static void take(struct rig *rig, int piece) {
    const uint8_t *bytes = weight_stream_take(rig->stream, piece);
    cr_assert_eq((uintptr_t)bytes % 64, 0);
    cr_assert_eq(memcmp(bytes, rig->content + rig->pieces[piece].offset, rig->pieces[piece].bytes),
                 0, "piece %d of %d", piece, rig->piece_count);
    weight_stream_give_back(rig->stream);
}

static void step(struct rig *rig, int piece_end) {
    struct error error;
    weight_stream_begin(rig->stream, piece_end == rig->piece_count);
    for (int i = 0; i < piece_end; i++)
        take(rig, i);
    cr_assert_eq(weight_stream_check(rig->stream, &error), STATUS_OK, "%s", error.text);
}

TestSuite(weight_stream, .init = folder_enter, .fini = folder_leave, .timeout = 60);

Test(weight_stream, every_piece_in_order_for_any_sizes) {
    struct rig rig;
    open_file(&rig);
    for (int count = 1; count <= PIECES_MAX; count++) {
        for (uint64_t ring = 0; ring < 5; ring++) {
            uint64_t least = weight_stream_ring_least(make_pieces(&rig, count, ring));
            start(&rig, least + ring * least / 3, count);
            for (int i = 0; i < 20; i++)
                step(&rig, count);
            weight_stream_destroy(rig.stream);
        }
    }
    rig.stream = NULL;
    close_rig(&rig);
}

Test(weight_stream, the_last_pieces_are_left_out_of_some_steps) {
    struct rig rig;
    uint64_t state = 3;
    open_file(&rig);
    for (int count = 1; count <= PIECES_MAX; count++) {
        for (int optional_from = 0; optional_from < count; optional_from++) {
            uint64_t least = weight_stream_ring_least(make_pieces(&rig, count, 1));
            start(&rig, 3 * least, optional_from);
            for (int i = 0; i < 30; i++)
                step(&rig, random_tensor_next(&state) % 3 == 0 ? count : optional_from);
            weight_stream_destroy(rig.stream);
        }
    }
    rig.stream = NULL;
    close_rig(&rig);
}

Test(weight_stream, a_piece_left_out_is_not_read) {
    struct rig rig;
    open_file(&rig);
    uint64_t least = weight_stream_ring_least(make_pieces(&rig, 3, 1));
    start(&rig, least, 2);
    for (int i = 0; i < 10; i++)
        step(&rig, 2);
    struct weight_stream_totals totals = weight_stream_totals(rig.stream);
    uint64_t each = rig.pieces[0].bytes + rig.pieces[1].bytes;
    cr_expect_geq(totals.bytes, 10 * each);
    cr_expect_leq(totals.bytes, 11 * each);
    cr_expect_gt(totals.reading_ns, 0);
    close_rig(&rig);
}

Test(weight_stream, a_file_that_is_cut_is_an_error_and_no_hang) {
    struct rig rig;
    struct error error;
    open_file(&rig);
    uint64_t least = weight_stream_ring_least(make_pieces(&rig, 4, 1));
    start(&rig, least, 4);
    step(&rig, 4);
    cr_assert_eq(ftruncate(rig.descriptor, (off_t)rig.pieces[2].offset), 0);
    for (int i = 0; i < 4; i++) {
        weight_stream_take(rig.stream, i);
        weight_stream_give_back(rig.stream);
    }
    for (int i = 0; i < 4; i++) { /* what was read ahead of the cut is used up */
        weight_stream_take(rig.stream, i);
        weight_stream_give_back(rig.stream);
    }
    cr_expect_eq(weight_stream_check(rig.stream, &error), STATUS_IO);
    cr_expect(strstr(error.text, "packed weights") != NULL, "%s", error.text);
    close_rig(&rig);
}

Test(weight_stream, ends_while_it_reads_or_waits) {
    struct rig rig;
    open_file(&rig);
    uint64_t least = weight_stream_ring_least(make_pieces(&rig, 5, 2));
    for (int i = 0; i < 200; i++) {
        start(&rig, least, i % 2 == 0 ? 4 : 5);
        if (i % 3 == 0)
            take(&rig, 0);
        weight_stream_destroy(rig.stream);
    }
    rig.stream = NULL;
    close_rig(&rig);
}

Test(weight_stream, the_rate_of_a_file) {
    struct rig rig;
    open_file(&rig);
    cr_expect_gt(weight_stream_rate("weights"), 0);
    cr_expect_eq(weight_stream_rate("nowhere"), 0);
    cr_expect_eq(ftruncate(rig.descriptor, 0), 0);
    cr_expect_eq(weight_stream_rate("weights"), 0);
    close_rig(&rig);
}
