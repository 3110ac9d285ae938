/* A failure to write ends the job: the queue is cancelled, so nobody waits for a writer that has
 * gone. */
#include "core/job/writer.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/job/result_files.h"

enum { LINE_BYTES_MAX = 0x7fffffff, SYNC_WAIT_MS = 250 };

void writer_init(struct writer *writer, const struct job *job, struct item_queue *finished) {
    *writer = (struct writer){.job = job, .finished = finished};
    text_init(&writer->line, LINE_BYTES_MAX);
    finished_set_init(&writer->written);
    atomic_init(&writer->failed, false);
}

void writer_deinit(struct writer *writer) {
    text_deinit(&writer->line);
    finished_set_deinit(&writer->written);
}

static bool fails_on_warning(const struct settings *settings, const struct row *row) {
    for (int i = 0; i < settings->fail_on.count; i++) {
        enum warning warning =
            codes_warning_find(settings->fail_on.items[i], strlen(settings->fail_on.items[i]));
        if (warning != WARNING_COUNT && row->warnings[warning] > 0)
            return true;
    }
    return false;
}

/* --format text: the text alone on the output, an error on stderr. */
static enum status write_text(struct writer *writer, const struct row *row, struct error *error) {
    if (row->error_code) {
        log_write(writer->job->log, LOG_ERROR, "%s: %s", row->id_json, row->error_message);
        return STATUS_OK;
    }
    text_clear(&writer->line);
    if (!text_append(&writer->line, row->text.bytes, row->text.length) ||
        !text_append_char(&writer->line, '\n'))
        return error_no_memory(error, "a row");
    return output_log_append(writer->job->output, text_view(&writer->line), error);
}

static enum status write_row(struct writer *writer, const struct row *row, struct error *error) {
    const struct job *job = writer->job;
    text_clear(&writer->line);
    if (!row_append_json(&writer->line, row))
        return error_no_memory(error, "a row");
    if (row->error_code && job->errors)
        TRY(output_log_append(job->errors, text_view(&writer->line), error));
    if (job->settings->format == FORMAT_TEXT)
        return write_text(writer, row, error);
    return output_log_append(job->output, text_view(&writer->line), error);
}

static void complete_row(const struct writer *writer, const struct item *item, struct row *row) {
    item_fill_row(item, row);
    row->model = writer->job->model_name;
    row->numerics = writer->job->numerics;
    document_hash_fingerprint(writer->job->settings_hash, item->row_hash, row->fingerprint);
}

static enum status write_item(struct writer *writer, struct item *item, struct error *error) {
    struct row row;
    if (writer->job->settings->format == FORMAT_FILES && !item->error_code) {
        complete_row(writer, item, &row);
        result_files_write(&writer->written, writer->job->settings, &row, item);
    }
    complete_row(writer, item, &row);
    TRY(write_row(writer, &row, error));
    summary_add_row(writer->summary, &row);
    writer->failed_by_warning += !row.error_code && fails_on_warning(writer->job->settings, &row);
    struct job_progress *progress = writer->job->progress;
    atomic_fetch_add(row.error_code ? &progress->failed : &progress->done, 1);
    return STATUS_OK;
}

static enum status sync_outputs(struct writer *writer, bool now, struct error *error) {
    TRY(output_log_sync(writer->job->output, now, error));
    return writer->job->errors ? output_log_sync(writer->job->errors, now, error) : STATUS_OK;
}

static void give_up(struct writer *writer, enum status status) {
    writer->output_closed = status == STATUS_CANCELLED;
    atomic_store(&writer->failed, true);
    item_queue_cancel(writer->finished);
}

void writer_run(struct writer *writer) {
    while (!item_queue_is_drained(writer->finished)) {
        struct item *item = item_queue_pop(writer->finished, SYNC_WAIT_MS);
        int64_t started_ns = clock_now_ns();
        enum status status = STATUS_OK;
        if (item)
            status = write_item(writer, item, &writer->error);
        item_destroy(item);
        if (status == STATUS_OK)
            status = sync_outputs(writer, false, &writer->error);
        writer->write_ms += clock_ms_between(started_ns, clock_now_ns());
        if (status != STATUS_OK) {
            give_up(writer, status);
            return;
        }
    }
    if (sync_outputs(writer, true, &writer->error) != STATUS_OK)
        give_up(writer, STATUS_IO);
}
