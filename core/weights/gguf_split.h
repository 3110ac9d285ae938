/* Names and bookkeeping of models split over several GGUF files. */
#ifndef CORE_WEIGHTS_GGUF_SPLIT_H
#define CORE_WEIGHTS_GGUF_SPLIT_H

#include "core/base/error.h"
#include "core/weights/gguf_parse.h"

/* What a file says about the split it belongs to; a file that says nothing is shard 0 of 1. */
struct gguf_split {
    uint64_t index;
    uint64_t shard_count;
    uint64_t tensor_count; /* over all shards; 0: not said */
};

enum status gguf_split_read(const struct gguf_content *content, struct gguf_split *split,
                            struct error *error);

/* Given the path of shard `split->index`, write that of shard `index` (malloc'd) to *shard_path. A
 * path that does not end in -00001-of-0000N.gguf with the right numbers is an error. */
enum status gguf_split_path(const char *path, const struct gguf_split *split, uint64_t index,
                            char **shard_path, struct error *error);

#endif
