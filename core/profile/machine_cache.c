/* The key stands in the file, too: names are hashes. Files appear whole, by rename. */
#include "core/profile/machine_cache.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/cpu_affinity.h"
#include "core/base/json.h"

enum { PATH_BYTES = 4096, CPUS_HASHED = 1024 };

static uint64_t mix(uint64_t hash, const void *bytes, size_t length) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

void machine_cache_key(const char *version, const struct cpu_features *features,
                       const struct kernels *kernels, int threads,
                       char key[MACHINE_CACHE_KEY_BYTES]) {
    int cpus[CPUS_HASHED];
    int count = cpu_affinity_list(cpus, CPUS_HASHED);
    size_t known = count < CPUS_HASHED ? (size_t)count : CPUS_HASHED;
    uint64_t affinity = mix(0xcbf29ce484222325u, cpus, known * sizeof *cpus);
    snprintf(key, MACHINE_CACHE_KEY_BYTES, "%s, %d CPUs %016llx, %d threads, %s, sheaf %s, gcc %s",
             features->model_name, count, (unsigned long long)affinity, threads, kernels->numerics,
             version, __VERSION__);
}

static bool path_of(const char *folder, const char *key, const char *end, char *path) {
    uint64_t name = mix(0xcbf29ce484222325u, key, strlen(key));
    int length = snprintf(path, PATH_BYTES, "%s/ceilings-%016llx.json%s", folder,
                          (unsigned long long)name, end);
    return length > 0 && length < PATH_BYTES;
}

bool machine_cache_load(const char *folder, const char *key, struct ceilings_step *run) {
    char path[PATH_BYTES];
    json_t *file = path_of(folder, key, "", path) ? json_load_file(path, 0, NULL) : NULL;
    const char *found = json_string_value(json_object_get(file, "key"));
    bool fine = found != NULL && strcmp(found, key) == 0;
    if (fine) {
        *run = (struct ceilings_step){
            .threads = (int)json_integer_value(json_object_get(file, "threads")),
            .flops = json_number_value(json_object_get(file, "flops")),
            .memory = json_number_value(json_object_get(file, "memory_bytes")),
            .cache = json_number_value(json_object_get(file, "cache_bytes")),
        };
        fine = run->threads > 0 && run->flops > 0 && run->memory > 0;
    }
    json_decref(file);
    return fine;
}

void machine_cache_store(const char *folder, const char *key, const struct ceilings_step *run) {
    char path[PATH_BYTES], draft[PATH_BYTES], end[32];
    snprintf(end, sizeof end, ".%ld", (long)getpid());
    if (!path_of(folder, key, "", path) || !path_of(folder, key, end, draft))
        return;
    mkdir(folder, 0777); /* the folder above it is the user's cache folder */
    json_t *file =
        json_pack("{s:s, s:i, s:f, s:f, s:f}", "key", key, "threads", run->threads, "flops",
                  run->flops, "memory_bytes", run->memory, "cache_bytes", run->cache);
    bool fine = file != NULL && json_dump_file(file, draft, JSON_INDENT(1)) == 0;
    if (!fine || rename(draft, path) != 0)
        unlink(draft);
    json_decref(file);
}
