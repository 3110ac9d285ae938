/* Models larger than the device: some linears stay there, the others, spread evenly between them,
 * pass through a ring (weight_ring.h) step by step. What the device reads is the same bytes, so no
 * bit depends on it. The token table stays: its rows are looked up, not multiplied. */
#include <assert.h>
#include <stdlib.h>

#include "gpu/backend_cuda_state.h"

enum { STAYS = -1 };

void backend_cuda_stream_limit(struct backend *backend, uint64_t bytes) {
    backend_cuda_of(backend)->stream.limit = bytes;
}

uint64_t backend_cuda_stream_copied(const struct backend *backend) {
    const struct backend_cuda *cuda = (const void *)backend;
    return cuda->stream.ring != NULL ? weight_ring_copied(cuda->stream.ring) : 0;
}

/* ---- what stays ---- */

/* The linears that may be streamed, in the order of use; their count. `linears` and `bytes` may be
 * NULL. */
static int list_linears(const struct model *model, const struct linear **linears, uint64_t *bytes) {
    int count = 0;
    for (int i = 0; i < model->op_count; i++) {
        const struct linear *of_op[3];
        model_linears_of(&model->ops[i], of_op);
        for (int j = 0; of_op[j] != NULL; j++) {
            if (backend_cuda_weights_is_tied(model, of_op[j]))
                continue;
            if (linears != NULL) {
                linears[count] = of_op[j];
                bytes[count] = (uint64_t)of_op[j]->out * backend_cuda_weights_row_bytes(of_op[j]);
            }
            count++;
        }
    }
    return count;
}

struct decision {
    const struct linear **linears;
    uint64_t *bytes;
    bool *streamed;
    int count;
    struct weight_ring_division division;
};

static void decision_free(struct decision *decision) {
    free(decision->linears);
    free(decision->bytes);
    free(decision->streamed);
}

static enum status too_little(const struct decision *made, uint64_t fixed, uint64_t limit,
                              struct error *error) {
    uint64_t largest = 0;
    for (int i = 0; i < made->count; i++)
        largest = made->bytes[i] > largest ? made->bytes[i] : largest;
    return error_set(error, STATUS_OVER_LIMIT,
                     "weights must be allowed %.1f MB of device memory at least (%.1f MB that "
                     "cannot be streamed, and the largest matrix), not %.1f MB: raise "
                     "--weights-memory",
                     (double)(fixed + largest) / 1e6, (double)fixed / 1e6, (double)limit / 1e6);
}

static enum status decide(const struct model *model, uint64_t limit, struct decision *made,
                          struct error *error) {
    int count = list_linears(model, NULL, NULL);
    size_t room = (size_t)count + 1;
    *made = (struct decision){.linears = malloc(room * sizeof *made->linears),
                              .bytes = malloc(room * sizeof *made->bytes),
                              .streamed = malloc(room * sizeof *made->streamed),
                              .count = count};
    if (made->linears == NULL || made->bytes == NULL || made->streamed == NULL)
        return error_no_memory(error, "streamed weights");
    list_linears(model, made->linears, made->bytes);
    uint64_t fixed = backend_cuda_weights_fixed_bytes(model);
    uint64_t left = limit > fixed ? limit - fixed : 0;
    struct error refused;
    if (weight_ring_divide(made->bytes, count, left, made->streamed, &made->division, &refused) !=
        STATUS_OK)
        return too_little(made, fixed, limit, error);
    return STATUS_OK;
}

uint64_t backend_cuda_stream_step_bytes(const struct backend *backend, const struct model *model) {
    const struct backend_cuda *cuda = (const void *)backend;
    struct decision made = {0};
    struct error ignored;
    uint64_t bytes = 0;
    if (cuda->stream.limit > 0 && decide(model, cuda->stream.limit, &made, &ignored) == STATUS_OK)
        bytes = made.division.step_bytes;
    decision_free(&made);
    return bytes;
}

uint64_t backend_cuda_stream_memory(const struct backend_cuda *cuda, uint64_t all) {
    return cuda->stream.limit > 0 && cuda->stream.limit < all ? cuda->stream.limit : all;
}

/* ---- preparing ---- */

static enum status take_decision(struct backend_cuda *cuda, const struct decision *made,
                                 struct error *error) {
    struct cuda_stream *stream = &cuda->stream;
    size_t room = (size_t)made->count + 1;
    stream->ring_bytes = made->division.ring_bytes;
    if (stream->ring_bytes == 0)
        return STATUS_OK;
    stream->piece_of = malloc((size_t)cuda->model->linear_count * sizeof *stream->piece_of);
    stream->pieces = calloc(room, sizeof *stream->pieces);
    stream->parts = calloc(room * LINEAR_PARTS_MAX, sizeof *stream->parts);
    stream->decoded = calloc(room, sizeof *stream->decoded);
    if (stream->piece_of == NULL || stream->pieces == NULL || stream->parts == NULL ||
        stream->decoded == NULL)
        return error_no_memory(error, "streamed weights");
    for (int i = 0; i < cuda->model->linear_count; i++)
        stream->piece_of[i] = STAYS;
    for (int i = 0; i < made->count; i++)
        if (made->streamed[i])
            stream->piece_of[made->linears[i]->id] = stream->piece_count++;
    return STATUS_OK;
}

enum status backend_cuda_stream_decide(struct backend_cuda *cuda, struct error *error) {
    struct decision made = {0};
    if (cuda->stream.limit == 0)
        return STATUS_OK;
    enum status status = decide(cuda->model, cuda->stream.limit, &made, error);
    if (status == STATUS_OK)
        status = take_decision(cuda, &made, error);
    decision_free(&made);
    return status;
}

bool backend_cuda_stream_has(const struct backend_cuda *cuda, int linear_id) {
    return cuda->stream.piece_of != NULL && cuda->stream.piece_of[linear_id] != STAYS;
}

struct device_host *backend_cuda_stream_decoded(struct backend_cuda *cuda, int linear_id) {
    return &cuda->stream.decoded[cuda->stream.piece_of[linear_id]];
}

/* From the decoded copy where there is one, else from the file's tensors. */
static void describe_piece(struct cuda_stream *stream, const struct linear *linear) {
    int piece = stream->piece_of[linear->id];
    struct weight_ring_part *parts = &stream->parts[piece * LINEAR_PARTS_MAX];
    const struct device_host *decoded = &stream->decoded[piece];
    struct weight_ring_piece *made = &stream->pieces[piece];
    made->parts = parts;
    if (decoded->bytes != NULL) {
        parts[0] = (struct weight_ring_part){decoded->bytes, decoded->byte_count, 0};
        made->part_count = 1;
        made->byte_count = decoded->byte_count;
        return;
    }
    for (int i = 0; i < linear->part_count; i++) {
        const struct tensor *tensor = linear->parts[i];
        parts[i] = (struct weight_ring_part){tensor->bytes, tensor->byte_count, made->byte_count};
        made->byte_count += tensor->byte_count;
    }
    made->part_count = linear->part_count;
}

/* Every op names its linears in the order of their use; the logits' come last, if at all. */
enum status backend_cuda_stream_start(struct backend_cuda *cuda, struct error *error) {
    struct cuda_stream *stream = &cuda->stream;
    const struct model *model = cuda->model;
    if (stream->piece_count == 0)
        return STATUS_OK;
    struct weight_ring_options options = {.pieces = stream->pieces,
                                          .piece_count = stream->piece_count,
                                          .optional_from = stream->piece_count,
                                          .ring_bytes = stream->ring_bytes};
    for (int i = 0; i < model->op_count; i++) {
        const struct linear *linears[3];
        model_linears_of(&model->ops[i], linears);
        for (int j = 0; linears[j] != NULL; j++) {
            if (!backend_cuda_stream_has(cuda, linears[j]->id))
                continue;
            describe_piece(stream, linears[j]);
            if (model->ops[i].kind == OP_LOGITS)
                options.optional_from = stream->piece_of[linears[j]->id];
        }
    }
    return weight_ring_create(cuda->device, &options, &stream->ring, error);
}

/* ---- steps ---- */

enum status backend_cuda_stream_begin(struct backend_cuda *cuda, bool with_logits,
                                      struct error *error) {
    return cuda->stream.ring == NULL ? STATUS_OK
                                     : weight_ring_begin(cuda->stream.ring, with_logits, error);
}

uint64_t backend_cuda_stream_take(struct backend_cuda *cuda, const struct cuda_linear *linear) {
    int id = (int)(linear - cuda->linears);
    uint64_t address = linear->weights;
    if (cuda->status == STATUS_OK && backend_cuda_stream_has(cuda, id))
        cuda->status =
            weight_ring_take(cuda->stream.ring, cuda->stream.piece_of[id], &address, &cuda->error);
    return address;
}

void backend_cuda_stream_give_back(struct backend_cuda *cuda, const struct cuda_linear *linear) {
    if (cuda->status == STATUS_OK && backend_cuda_stream_has(cuda, (int)(linear - cuda->linears)))
        cuda->status = weight_ring_give_back(cuda->stream.ring, &cuda->error);
}

void backend_cuda_stream_release(struct backend_cuda *cuda) {
    struct cuda_stream *stream = &cuda->stream;
    weight_ring_destroy(stream->ring);
    for (int i = 0; i < stream->piece_count; i++)
        device_host_free(cuda->device, &stream->decoded[i]);
    free(stream->piece_of);
    free(stream->pieces);
    free(stream->parts);
    free(stream->decoded);
    *stream = (struct cuda_stream){0};
}
