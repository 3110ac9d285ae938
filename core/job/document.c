/* Ownership of a document's parts. */
#include "core/job/document.h"

#include <stdlib.h>
#include <string.h>

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

void document_short_id(const char *id_json, char *shown, size_t bytes) {
    static const char dots[] = "…";
    size_t length = strlen(id_json);
    if (length >= 2 && id_json[0] == '"') {
        id_json++;
        length -= 2;
    }
    bool whole = length < bytes;
    if (!whole)
        length = bytes - sizeof dots;
    while (!whole && length > 0 && ((unsigned char)id_json[length] & 0xC0) == 0x80)
        length--;
    memcpy(shown, id_json, length);
    memcpy(shown + length, whole ? "" : dots, whole ? 1 : sizeof dots);
}
