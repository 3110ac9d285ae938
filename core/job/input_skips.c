/* Counting what was skipped. Beyond the table's size extensions are only counted in the total. */
#include "core/job/input_skips.h"

#include <string.h>

#include "core/job/input_path.h"

enum { EXTENSIONS_NAMED = 4 };

void input_skips_add_binary(struct input_skips *skips, const char *path) {
    char name[SKIPPED_EXTENSION_BYTES];
    input_path_extension(path, name, sizeof name);
    skips->binary++;
    if (name[0] == '\0')
        return;
    for (int i = 0; i < skips->extension_count; i++)
        if (strcmp(skips->extensions[i].name, name) == 0) {
            skips->extensions[i].count++;
            return;
        }
    if (skips->extension_count == SKIPPED_EXTENSIONS_MAX)
        return;
    struct skipped_extension *extension = &skips->extensions[skips->extension_count++];
    memcpy(extension->name, name, sizeof name);
    extension->count = 1;
}

long long input_skips_total(const struct input_skips *skips) {
    return skips->binary + skips->hidden + skips->special + skips->loops + skips->own;
}

/* The index of the most frequent extension that is not yet named, the earlier on ties. */
static int most_frequent(const struct input_skips *skips, const bool *named) {
    int best = -1;
    for (int i = 0; i < skips->extension_count; i++)
        if (!named[i] && (best < 0 || skips->extensions[i].count > skips->extensions[best].count))
            best = i;
    return best;
}

static bool append_extensions(const struct input_skips *skips, struct text *out) {
    bool named[SKIPPED_EXTENSIONS_MAX] = {0};
    bool fine = true;
    for (int n = 0; n < EXTENSIONS_NAMED && fine; n++) {
        int best = most_frequent(skips, named);
        if (best < 0)
            break;
        named[best] = true;
        fine = text_append_format(out, "%s%s", n ? ", " : " (", skips->extensions[best].name);
    }
    if (fine && skips->extension_count > EXTENSIONS_NAMED)
        fine = text_append_string(out, ", …");
    return fine && (skips->extension_count == 0 || text_append_char(out, ')'));
}

bool input_skips_message(const struct input_skips *skips, struct text *out) {
    const struct {
        long long count;
        const char *one, *many;
    } parts[] = {
        {skips->binary, "binary file", "binary files"},
        {skips->hidden, "hidden file or folder", "hidden files or folders"},
        {skips->special, "special file", "special files"},
        {skips->loops, "symbolic link to a folder above it",
         "symbolic links to a folder above them"},
        {skips->own, "output of this run", "outputs of this run"},
    };
    const char *before = "skipped ";
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].count == 0)
            continue;
        if (!text_append_format(out, "%s%lld %s", before, parts[i].count,
                                parts[i].count == 1 ? parts[i].one : parts[i].many))
            return false;
        if (i == 0 && !append_extensions(skips, out))
            return false;
        before = ", ";
    }
    return true;
}
