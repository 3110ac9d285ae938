/* A model's identity for rows: the SHA-256 of its files, computed once and kept in the user's cache
 * folder under size, modification time, inode and device; and its short name. */
#ifndef CORE_JOB_MODEL_ID_H
#define CORE_JOB_MODEL_ID_H

#include "core/base/error.h"
#include "core/weights/gguf.h"

enum { SHA256_HEX_BYTES = 65 };

/* Hex digits of the hash over all files in order. A cache that cannot be read or written is no
 * error. */
enum status model_id_sha256(const struct gguf *gguf, char hex[SHA256_HEX_BYTES],
                            struct error *error);

/* The folder for caches: $XDG_CACHE_HOME/sheaf or ~/.cache/sheaf; false when neither is known. */
bool model_id_cache_folder(char *path, size_t path_bytes);

#endif
