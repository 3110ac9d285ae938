/* Ownership of a document's parts. */
#include "core/job/document.h"

#include <stdlib.h>

/* A document may not be larger than what the tokenizer can address. */
static const size_t DOCUMENT_BYTES_MAX = 0xfffffffe;

void document_init(struct document *document) {
    *document = (struct document){0};
    text_init(&document->text, DOCUMENT_BYTES_MAX);
}

void document_deinit(struct document *document) {
    free(document->id_json);
    free(document->path);
    free(document->name);
    text_deinit(&document->text);
    json_decref(document->messages);
    free(document->prompt);
    json_decref(document->options);
    json_decref(document->input);
    free(document->error_message);
    document_init(document);
}
