/* Case mapping. ASCII text keeps its layout and so shares its origins; other text is rebuilt. */
#include "tokenizer/chat_case.h"

#include <string.h>
#include <utf8proc.h>

static bool is_cased(int32_t character) {
    utf8proc_category_t category = utf8proc_category(character);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
           category == UTF8PROC_CATEGORY_LT;
}

/* Whether the character after `character` begins a word. */
static bool begins_word(enum chat_case kind, int32_t character) {
    if (kind == CHAT_CASE_TITLE)
        return character < 0 || !is_cased(character);
    if (kind == CHAT_CASE_WORDS)
        return chat_string_is_space(character) ||
               (character > 0 && character < 0x80 && strchr("-({[<", (char)character) != NULL);
    return false;
}

static int32_t map_character(enum chat_case kind, int32_t character, bool first) {
    if (character < 0)
        return character;
    if (kind == CHAT_CASE_UPPER || (kind == CHAT_CASE_WORDS && first))
        return utf8proc_toupper(character);
    if (first && kind != CHAT_CASE_LOWER)
        return utf8proc_totitle(character);
    return utf8proc_tolower(character);
}

static bool is_ascii(struct view bytes) {
    for (size_t i = 0; i < bytes.length; i++) {
        if ((unsigned char)bytes.bytes[i] >= 0x80)
            return false;
    }
    return true;
}

static enum status map_ascii(struct chat_evaluator *evaluator, const struct chat_string *flat,
                             enum chat_case kind, struct chat_value *result) {
    char *bytes = arena_alloc(&evaluator->arena, flat->length);
    struct chat_string *string = arena_alloc(&evaluator->arena, sizeof *string);
    if (!bytes || !string)
        return chat_eval_full(evaluator);
    bool first = true;
    for (size_t i = 0; i < flat->length; i++) {
        bytes[i] = (char)map_character(kind, flat->bytes[i], first);
        first = begins_word(kind, flat->bytes[i]);
    }
    *string = *flat;
    string->bytes = bytes;
    *result = chat_value_string(string);
    return STATUS_OK;
}

static void append_mapped(struct chat_string_builder *builder, const struct chat_string *flat,
                          size_t offset, int32_t mapped, bool double_s) {
    size_t end;
    enum text_origin origin = chat_string_origin(flat, offset, &end);
    char bytes[4];
    size_t length = double_s ? 2 : 0;
    if (double_s)
        memcpy(bytes, mapped == 'S' ? "SS" : "Ss", 2);
    else
        length = (size_t)utf8proc_encode_char(mapped, (utf8proc_uint8_t *)bytes);
    chat_string_builder_append(builder, (struct view){bytes, length}, origin);
}

enum status chat_case_map(struct chat_evaluator *evaluator, const struct chat_string *flat,
                          enum chat_case kind, struct chat_value *result) {
    enum { SHARP_S = 0xDF };
    TRY(chat_eval_charge(evaluator, flat->length));
    if (is_ascii(chat_string_view(flat)))
        return map_ascii(evaluator, flat, kind, result);
    struct chat_string_builder builder;
    chat_string_builder_init(&builder, &evaluator->arena);
    bool first = true;
    for (size_t i = 0; i < flat->length;) {
        int32_t character;
        size_t length = chat_string_character(flat->bytes + i, flat->length - i, &character);
        bool upper = kind == CHAT_CASE_UPPER || (kind == CHAT_CASE_WORDS && first);
        bool sharp = character == SHARP_S && (upper || (first && kind != CHAT_CASE_LOWER));
        if (character < 0)
            chat_string_builder_append_slice(&builder, flat, i, length);
        else if (sharp)
            append_mapped(&builder, flat, i, upper ? 'S' : 's', true);
        else
            append_mapped(&builder, flat, i, map_character(kind, character, first), false);
        first = begins_word(kind, character);
        i += length;
    }
    return chat_eval_built(evaluator, &builder, result);
}

bool chat_case_is_digit(int32_t character) {
    static const struct {
        int32_t first, last;
    } others[] = {{0xB2, 0xB3}, {0xB9, 0xB9}, {0x2070, 0x2070}, {0x2074, 0x2079}, {0x2080, 0x2089}};
    if (character < 0)
        return false;
    if (utf8proc_category(character) == UTF8PROC_CATEGORY_ND)
        return true;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (character >= others[i].first && character <= others[i].last)
            return true;
    }
    return false;
}
