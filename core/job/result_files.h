/* --format files: a text file a document under the output directory, mirroring the inputs' tree,
 * and the rows in a hidden log beside them, which is what resuming reads. */
#ifndef CORE_JOB_RESULT_FILES_H
#define CORE_JOB_RESULT_FILES_H

#include "core/job/finished_set.h"
#include "core/job/item.h"
#include "core/job/row.h"
#include "core/job/settings.h"

/* The rows' log of an output directory (made when missing): "DIR/.sheaf-rows.jsonl". */
enum status result_files_log_path(const char *directory, struct text *path, struct error *error);

/* Write the row's text to DIR/<path>.txt through a temporary file and a rename. A file that an
 * earlier document of this or another run made is a collision: the item becomes an error item
 * (output_exists). `written`: the files of this run so far, by the hash of their path. */
void result_files_write(struct finished_set *written, const struct settings *settings,
                        const struct row *row, struct item *item);

#endif
