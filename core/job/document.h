/* A document on its way from the input to the engine: what was read, or why it could not be. */
#ifndef CORE_JOB_DOCUMENT_H
#define CORE_JOB_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/json.h"
#include "core/base/text.h"

struct document {
    long long index;    /* running number from 0, error documents included */
    char *id_json;      /* the id as JSON text: "\"contracts/a.txt\"", 17; owned */
    char *path;         /* as in rows: UTF-8, percent-escaped where it is not; NULL: stdin; owned */
    char *name;         /* last part of the path ("stdin" for stdin); owned */
    long long line;     /* of a JSONL file, from 1; 0: a whole file */
    struct text text;   /* valid UTF-8, BOM stripped */
    json_t *messages;   /* array of {role, content} instead of a text, or NULL; owned */
    char *prompt;       /* the line's own prompt, or NULL; owned */
    json_t *options;    /* the line's options by long names (an OpenAI body's translated), or NULL;
                           owned */
    json_t *input;      /* other keys of the line, carried into the row, or NULL; owned */
    size_t input_bytes; /* about what they take in memory */
    long long replaced_bytes; /* bytes that became U+FFFD */
    int64_t read_ns;          /* time spent opening, reading and decoding */
    int64_t ready_ns;         /* clock when reading ended */
    const char *error_code;   /* NULL: fine; a static string of codes.h */
    char *error_message;      /* owned */
};

void document_init(struct document *document);
void document_deinit(struct document *document);

/* An id for lists and messages: without its quotes, escapes kept (it is harmless on a terminal),
 * cut to `bytes` (at least 8, with the NUL) at a character. */
void document_short_id(const char *id_json, char *shown, size_t bytes);

#endif
