/* Ceilings that earlier profiles measured, in the user's cache folder: one small file for each CPU,
 * affinity, number of threads, kernel path and build. A run's summary takes them from there instead
 * of measuring again. A file that cannot be read or written is no error. */
#ifndef CORE_PROFILE_MACHINE_CACHE_H
#define CORE_PROFILE_MACHINE_CACHE_H

#include <stddef.h>

#include "core/profile/machine.h"

enum { MACHINE_CACHE_KEY_BYTES = 512 };

/* What the ceilings depend on, as text. */
void machine_cache_key(const char *version, const struct cpu_features *features,
                       const struct kernels *kernels, int threads,
                       char key[MACHINE_CACHE_KEY_BYTES]);

/* The rates with the run's threads; false: none are known under this key. */
bool machine_cache_load(const char *folder, const char *key, struct ceilings_step *run);
void machine_cache_store(const char *folder, const char *key, const struct ceilings_step *run);

#endif
