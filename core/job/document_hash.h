/* Hashes that say whether a row belongs to a document and to these settings. A fingerprint is
 * "SSSSSSSSSSSSSSSS-DDDDDDDDDDDDDDDD": settings (model, numerics, sampling, limits) and document
 * (rendered prompt and the document's own options). XXH3, 64 bits each. */
#ifndef CORE_JOB_DOCUMENT_HASH_H
#define CORE_JOB_DOCUMENT_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { FINGERPRINT_BYTES = 40 };

uint64_t document_hash_bytes(const void *bytes, size_t length);

/* Chain: fold more bytes into a hash. */
uint64_t document_hash_more(uint64_t hash, const void *bytes, size_t length);

/* Under which hash an id's row is remembered. The rows of later documents with the same id are told
 * apart by their index. */
uint64_t document_hash_id(const char *id_json, size_t length);
uint64_t document_hash_duplicate(uint64_t id_hash, long long index);

void document_hash_fingerprint(uint64_t settings, uint64_t document,
                               char fingerprint[FINGERPRINT_BYTES]);
/* The document part of a fingerprint; 0 when it is not one. */
uint64_t document_hash_of_fingerprint(const char *fingerprint);

#endif
