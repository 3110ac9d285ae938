/* The cache is one small text file a model: named by the key's hash, holding key and hash, written
 * under a temporary name and renamed. */
#include "core/job/model_id.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "core/job/document_hash.h"

enum { READ_BYTES = 1 << 20, PATH_BYTES = 4096 };

bool model_id_cache_folder(char *path, size_t path_bytes) {
    const char *cache = getenv("XDG_CACHE_HOME");
    if (cache && cache[0] == '/')
        return snprintf(path, path_bytes, "%s/sheaf", cache) < (int)path_bytes;
    const char *home = getenv("HOME");
    if (!home || home[0] != '/')
        return false;
    return snprintf(path, path_bytes, "%s/.cache/sheaf", home) < (int)path_bytes;
}

static enum status hash_file(EVP_MD_CTX *context, const char *path, unsigned char *buffer,
                             struct error *error) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, STATUS_IO, errno, "cannot read '%s'", path);
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    ssize_t length;
    while ((length = read(fd, buffer, READ_BYTES)) > 0)
        EVP_DigestUpdate(context, buffer, (size_t)length);
    int error_number = errno;
    close(fd);
    if (length < 0)
        return error_set_errno(error, STATUS_IO, error_number, "cannot read '%s'", path);
    return STATUS_OK;
}

static enum status hash_files(const struct gguf *gguf, char hex[SHA256_HEX_BYTES],
                              struct error *error) {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned char *buffer = malloc(READ_BYTES);
    enum status status = STATUS_OK;
    if (!context || !buffer || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1)
        status = error_no_memory(error, "the model's hash");
    for (size_t i = 0; status == STATUS_OK && i < gguf_file_count(gguf); i++)
        status = hash_file(context, gguf_file_path(gguf, i), buffer, error);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_bytes = 0;
    if (status == STATUS_OK)
        EVP_DigestFinal_ex(context, digest, &digest_bytes);
    for (unsigned i = 0; i < digest_bytes && i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    EVP_MD_CTX_free(context);
    free(buffer);
    return status;
}

/* What changes when a file is another one. */
static bool make_key(const struct gguf *gguf, struct text *key) {
    for (size_t i = 0; i < gguf_file_count(gguf); i++) {
        struct stat info;
        if (stat(gguf_file_path(gguf, i), &info) != 0 ||
            !text_append_format(key, "%ju:%ju:%jd:%jd.%09ld;", (uintmax_t)info.st_dev,
                                (uintmax_t)info.st_ino, (intmax_t)info.st_size,
                                (intmax_t)info.st_mtim.tv_sec, info.st_mtim.tv_nsec))
            return false;
    }
    return true;
}

static bool cache_path(const struct text *key, char *path) {
    char folder[PATH_BYTES - 64];
    if (!model_id_cache_folder(folder, sizeof folder))
        return false;
    uint64_t hash = document_hash_bytes(key->bytes, key->length);
    return snprintf(path, PATH_BYTES, "%s/id-%016" PRIx64, folder, hash) < PATH_BYTES;
}

static bool read_cache(const char *path, const struct text *key, char hex[SHA256_HEX_BYTES]) {
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    char line[PATH_BYTES] = "", digits[SHA256_HEX_BYTES + 2] = "";
    bool fine = fgets(line, sizeof line, file) && fgets(digits, sizeof digits, file);
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    digits[strcspn(digits, "\n")] = '\0';
    if (!fine || strcmp(line, key->bytes) != 0 || strspn(digits, "0123456789abcdef") != 64)
        return false;
    memcpy(hex, digits, SHA256_HEX_BYTES);
    return true;
}

static void make_folders(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
}

static void write_cache(char *path, const struct text *key, const char *hex) {
    char temporary[PATH_BYTES + 32];
    make_folders(path);
    snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(temporary, "we");
    if (!file)
        return;
    bool fine = fprintf(file, "%s\n%s\n", key->bytes, hex) > 0;
    fine = fclose(file) == 0 && fine;
    if (!fine || rename(temporary, path) != 0)
        unlink(temporary);
}

enum status model_id_sha256(const struct gguf *gguf, char hex[SHA256_HEX_BYTES],
                            struct error *error) {
    struct text key;
    text_init(&key, PATH_BYTES - 2);
    char path[PATH_BYTES];
    bool cached = make_key(gguf, &key) && cache_path(&key, path);
    enum status status = STATUS_OK;
    if (!cached || !read_cache(path, &key, hex)) {
        status = hash_files(gguf, hex, error);
        if (status == STATUS_OK && cached)
            write_cache(path, &key, hex);
    }
    text_deinit(&key);
    return status;
}
