/* A row that is no row is left out: the report is no place to judge it. */
#include "cmd/profile_documents.h"

#include <stdio.h>
#include <stdlib.h>

static json_t *seconds_of(const json_t *timing, const char *key) {
    return json_real(json_number_value(json_object_get(timing, key)) * 1e-3);
}

static bool add_row(json_t *documents, const json_t *row) {
    const json_t *timing = json_object_get(row, "timing");
    json_t *id = json_object_get(row, "id");
    if (!json_is_object(timing) || id == NULL)
        return true;
    char *shown = json_is_string(id) ? NULL : json_dumps(id, JSON_ENCODE_ANY);
    json_t *document = json_pack(
        "{s:s, s:o, s:o, s:o}", "id", shown ? shown : json_string_value(id), "queued_seconds",
        seconds_of(timing, "queued_ms"), "prefill_seconds", seconds_of(timing, "prefill_ms"),
        "decode_seconds", seconds_of(timing, "decode_ms"));
    free(shown);
    return document != NULL && json_array_append_new(documents, document) == 0;
}

json_t *profile_documents_json(const char *path) {
    json_t *documents = json_array();
    FILE *file = documents != NULL ? fopen(path, "re") : NULL;
    char *line = NULL;
    size_t capacity = 0;
    bool fine = documents != NULL;
    ssize_t length = 0;
    while (fine && file && json_array_size(documents) < PROFILE_DOCUMENTS_MAX &&
           (length = getline(&line, &capacity, file)) > 0) {
        json_t *row = json_loadb(line, (size_t)length, 0, NULL);
        fine = row == NULL || add_row(documents, row);
        json_decref(row);
    }
    free(line);
    if (file)
        fclose(file);
    if (fine)
        return documents;
    json_decref(documents);
    return NULL;
}
