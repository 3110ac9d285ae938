/* XXH3 from libxxhash: fast, well spread, and the same on every machine. */
#include "core/job/document_hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

uint64_t document_hash_bytes(const void *bytes, size_t length) {
    return XXH3_64bits(bytes, length);
}

uint64_t document_hash_more(uint64_t hash, const void *bytes, size_t length) {
    return XXH3_64bits_withSeed(bytes, length, hash);
}

uint64_t document_hash_id(const char *id_json, size_t length) {
    return XXH3_64bits(id_json, length);
}

uint64_t document_hash_duplicate(uint64_t id_hash, long long index) {
    return XXH3_64bits_withSeed(&index, sizeof index, id_hash);
}

void document_hash_fingerprint(uint64_t settings, uint64_t document,
                               char fingerprint[FINGERPRINT_BYTES]) {
    snprintf(fingerprint, FINGERPRINT_BYTES, "%016" PRIx64 "-%016" PRIx64, settings, document);
}

uint64_t document_hash_of_fingerprint(const char *fingerprint) {
    if (strlen(fingerprint) != 33 || fingerprint[16] != '-')
        return 0;
    return strtoull(fingerprint + 17, NULL, 16);
}
