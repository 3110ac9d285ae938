/* Split models: `split.no`, `split.count`, `split.tensors.count`, and NAME-00001-of-0000N.gguf. */
#include "core/weights/gguf_split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARD_COUNT_MAX = 65535, SUFFIX_BYTES_MAX = 64 };

static enum status read_count(const struct gguf_content *content, const char *key, uint64_t *out,
                              struct error *error) {
    const struct gguf_value *value = gguf_parse_find(content, key);
    if (value && !gguf_read_u64(value, out))
        return error_set(error, STATUS_CORRUPT, "'%s' is not a non-negative integer", key);
    return STATUS_OK;
}

enum status gguf_split_read(const struct gguf_content *content, struct gguf_split *split,
                            struct error *error) {
    *split = (struct gguf_split){.shard_count = 1};
    TRY(read_count(content, "split.no", &split->index, error));
    TRY(read_count(content, "split.count", &split->shard_count, error));
    TRY(read_count(content, "split.tensors.count", &split->tensor_count, error));
    if (split->shard_count == 0) /* some writers mark an unsplit file so */
        split->shard_count = 1;
    if (split->shard_count > SHARD_COUNT_MAX || split->index >= split->shard_count)
        return error_set(error, STATUS_CORRUPT, "it says to be shard %llu of %llu",
                         (unsigned long long)split->index + 1,
                         (unsigned long long)split->shard_count);
    return STATUS_OK;
}

static int suffix_of(uint64_t index, uint64_t count, char suffix[SUFFIX_BYTES_MAX]) {
    return snprintf(suffix, SUFFIX_BYTES_MAX, "-%05llu-of-%05llu.gguf",
                    (unsigned long long)index + 1, (unsigned long long)count);
}

enum status gguf_split_path(const char *path, const struct gguf_split *split, uint64_t index,
                            char **shard_path, struct error *error) {
    char suffix[SUFFIX_BYTES_MAX];
    size_t suffix_bytes = (size_t)suffix_of(split->index, split->shard_count, suffix);
    size_t path_bytes = strlen(path);
    if (path_bytes < suffix_bytes || strcmp(path + path_bytes - suffix_bytes, suffix) != 0)
        return error_set(
            error, STATUS_NOT_FOUND,
            "it is shard %llu of %llu, but its name does not end in '%s', so the other "
            "shards cannot be found",
            (unsigned long long)split->index + 1, (unsigned long long)split->shard_count, suffix);
    int prefix_bytes = (int)(path_bytes - suffix_bytes);
    suffix_of(index, split->shard_count, suffix);
    size_t bytes = path_bytes + SUFFIX_BYTES_MAX;
    *shard_path = malloc(bytes);
    if (!*shard_path)
        return error_no_memory(error, "a shard's path");
    snprintf(*shard_path, bytes, "%.*s%s", prefix_bytes, path, suffix);
    return STATUS_OK;
}
