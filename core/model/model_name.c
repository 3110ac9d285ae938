/* Model names from file names. Only the last part after '-' or '.' can be a quantisation suffix,
 * and only when it looks like one as a whole, so that "llama-3" keeps its 3. */
#include "core/model/model_name.h"

#include <stdbool.h>
#include <string.h>

#include "core/base/text.h"

static bool is_digit(char character) {
    return character >= '0' && character <= '9';
}

static char lower(char character) {
    if (character >= 'A' && character <= 'Z')
        return (char)(character - 'A' + 'a');
    return character;
}

static bool ends_with(struct view view, const char *suffix) {
    size_t length = strlen(suffix);
    if (view.length < length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (lower(view.bytes[view.length - length + i]) != suffix[i])
            return false;
    return true;
}

/* "-00001-of-00003" */
static bool ends_with_shard(struct view view) {
    static const char shape[] = "-00000-of-00000";
    size_t length = sizeof shape - 1;
    if (view.length <= length)
        return false;
    for (size_t i = 0; i < length; i++) {
        char character = view.bytes[view.length - length + i];
        if (shape[i] == '0' ? !is_digit(character) : character != shape[i])
            return false;
    }
    return true;
}

/* q4_k_m, iq4_xs, f16, bf16, fp32, mxfp4 */
static bool is_quantisation(struct view part) {
    static const char *const exact[] = {"f16", "f32", "bf16", "fp16", "fp32", "mxfp4"};
    char text[16];
    if (part.length == 0 || part.length >= sizeof text)
        return false;
    for (size_t i = 0; i < part.length; i++)
        text[i] = lower(part.bytes[i]);
    text[part.length] = '\0';
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        if (strcmp(text, exact[i]) == 0)
            return true;
    const char *level = text[0] == 'i' ? text + 1 : text;
    return level[0] == 'q' && is_digit(level[1]);
}

static struct view drop_quantisation(struct view view) {
    size_t last = view.length;
    while (last > 0 && view.bytes[last - 1] != '-' && view.bytes[last - 1] != '.')
        last--;
    struct view part = {view.bytes + last, view.length - last};
    if (last > 1 && is_quantisation(part))
        view.length = last - 1;
    return view;
}

void model_name_from_path(const char *path, char *name, size_t name_bytes) {
    const char *slash = strrchr(path, '/');
    struct view view = view_of(slash == NULL ? path : slash + 1);
    if (ends_with(view, ".gguf") && view.length > 5)
        view.length -= 5;
    if (ends_with_shard(view))
        view.length -= 15;
    view = drop_quantisation(view);
    if (view.length > name_bytes - 1) {
        view.length = name_bytes - 1;
        while (view.length > 0 && ((unsigned char)view.bytes[view.length] & 0xc0) == 0x80)
            view.length--;
    }
    for (size_t i = 0; i < view.length; i++)
        name[i] = view.bytes[i] == ' ' || view.bytes[i] == '\t' ? '-' : lower(view.bytes[i]);
    name[view.length] = '\0';
}
