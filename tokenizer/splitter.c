/* The scanners. In their comments L, N and S are letters, numbers and blanks, and "other" is what
 * is none of the three; the expressions are those of the models' tokenizer.json files. Alternatives
 * are tried in their order, and the first that matches wins, as in the expression. */
#include "tokenizer/splitter.h"

#include <stdio.h>
#include <string.h>

#include "tokenizer/unicode_classes.h"

enum { CLASS_WORD_OR_SPACE = CLASS_LETTER | CLASS_NUMBER | CLASS_SPACE };

/* Past the characters that have one of `wanted`. */
static const uint8_t *skip(const uint8_t *at, const uint8_t *end, unsigned wanted) {
    while (at < end) {
        struct unicode_character character = unicode_classes_read(at, end);
        if (!(character.class_bits & wanted))
            break;
        at += character.length;
    }
    return at;
}

/* Past the characters that have none of `stop`. */
static const uint8_t *skip_until(const uint8_t *at, const uint8_t *end, unsigned stop) {
    while (at < end) {
        struct unicode_character character = unicode_classes_read(at, end);
        if (character.class_bits & stop)
            break;
        at += character.length;
    }
    return at;
}

static unsigned class_at(const uint8_t *at, const uint8_t *end) {
    return at < end ? unicode_classes_read(at, end).class_bits : 0;
}

/* A run of blanks. */
struct blanks {
    const uint8_t *last;          /* its last character */
    const uint8_t *after_newline; /* behind its last CR or LF, or NULL */
    const uint8_t *end;
};

static struct blanks read_blanks(const uint8_t *at, const uint8_t *end) {
    struct blanks blanks = {.last = at};
    while (at < end) {
        struct unicode_character character = unicode_classes_read(at, end);
        if (!(character.class_bits & CLASS_SPACE))
            break;
        blanks.last = at;
        at += character.length;
        if (character.class_bits & CLASS_NEWLINE)
            blanks.after_newline = at;
    }
    blanks.end = at;
    return blanks;
}

/* \s+(?!\S)|\s+ : blanks leave their last one to what follows, unless nothing follows or there is
 * only one. `first` is where they begin; `alone`: what follows does not take a blank. */
static const uint8_t *end_of_blanks(const uint8_t *first, const uint8_t *end, unsigned alone) {
    struct blanks blanks = read_blanks(first, end);
    if (blanks.end == end || blanks.last == first || (class_at(blanks.end, end) & alone))
        return blanks.end;
    return blanks.last;
}

/* Length of '(s|t|re|ve|m|ll|d) at `at`, or 0. `fold`: 0x20 to take capitals too, else 0. */
static unsigned contraction(const uint8_t *at, const uint8_t *end, uint8_t fold) {
    if (*at != '\'' || end - at < 2)
        return 0;
    uint8_t first = at[1] | fold;
    if (first == 's' || first == 't' || first == 'm' || first == 'd')
        return 2;
    if (end - at < 3)
        return 0;
    if (fold && at[1] == 0xC5 && at[2] == 0xBF) /* U+017F folds to s */
        return 3;
    uint8_t second = at[2] | fold;
    bool is_long = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                   (first == 'l' && second == 'l');
    return is_long ? 3 : 0;
}

/* '(?:s|t|re|ve|m|ll|d)| ?L+| ?N+| ?other+|\s+(?!\S)|\s+
 * `alone`: characters that are cut off before this expression sees the text. */
static const uint8_t *next_gpt2(const uint8_t *at, const uint8_t *end, unsigned alone) {
    unsigned length = contraction(at, end, 0);
    if (length)
        return at + length;
    const uint8_t *word = at + (*at == ' ');
    if (word == end)
        return end;
    unsigned class_bits = class_at(word, end);
    if (class_bits & (CLASS_SPACE | alone))
        return end_of_blanks(at, end, alone);
    if (class_bits & CLASS_LETTER)
        return skip(word, end, CLASS_LETTER);
    if (class_bits & CLASS_NUMBER)
        return skip(word, end, CLASS_NUMBER);
    return skip_until(word, end, CLASS_WORD_OR_SPACE | alone);
}

static void gpt2(struct splitter_cursor *cursor) {
    cursor->at = next_gpt2(cursor->at, cursor->end, 0);
}

/* Every digit first, on its own; then the above on what lies between. */
static void digits_then_gpt2(struct splitter_cursor *cursor) {
    struct unicode_character character = unicode_classes_read(cursor->at, cursor->end);
    if (character.class_bits & CLASS_DIGIT)
        cursor->at += character.length;
    else
        cursor->at = next_gpt2(cursor->at, cursor->end, CLASS_DIGIT);
}

static const uint8_t *skip_numbers(const uint8_t *at, const uint8_t *end, int count_max) {
    for (int i = 0; i < count_max && (class_at(at, end) & CLASS_NUMBER); i++)
        at += unicode_classes_read(at, end).length;
    return at;
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\nLN]?L+|N{1,max}| ?other+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ */
static const uint8_t *next_cl100k(const uint8_t *at, const uint8_t *end, int numbers_max) {
    unsigned length = contraction(at, end, 0x20);
    if (length)
        return at + length;
    struct unicode_character first = unicode_classes_read(at, end);
    if (first.class_bits & CLASS_LETTER)
        return skip(at, end, CLASS_LETTER);
    if (first.class_bits & CLASS_NUMBER)
        return skip_numbers(at, end, numbers_max);
    const uint8_t *second = at + first.length;
    unsigned second_class = class_at(second, end);
    if (!(first.class_bits & CLASS_NEWLINE) && (second_class & CLASS_LETTER))
        return skip(second, end, CLASS_LETTER);
    const uint8_t *other = *at == ' ' ? second : at;
    if (other < end && !(class_at(other, end) & CLASS_WORD_OR_SPACE))
        return skip(skip_until(other, end, CLASS_WORD_OR_SPACE), end, CLASS_NEWLINE);
    const uint8_t *after_newline = read_blanks(at, end).after_newline;
    return after_newline ? after_newline : end_of_blanks(at, end, 0);
}

static void llama3(struct splitter_cursor *cursor) {
    cursor->at = next_cl100k(cursor->at, cursor->end, 3);
}

static void qwen2(struct splitter_cursor *cursor) {
    cursor->at = next_cl100k(cursor->at, cursor->end, 1);
}

/* The reference looks for these digits after it has spelled bytes in the byte-level alphabet, where
 * the bytes of ², ³, ¹, ¼, ½, ¾ in Latin-1 stand for themselves, wherever in a character they
 * occur. */
static bool is_falcon_digit(uint8_t byte) {
    return (byte >= '0' && byte <= '9') || byte == 0xB2 || byte == 0xB3 || byte == 0xB9 ||
           byte == 0xBC || byte == 0xBD || byte == 0xBE;
}

static bool is_three_digits(const uint8_t *at, const uint8_t *end) {
    for (int i = 0; i < 3; i++)
        if (at + i >= end || at[i] < '0' || at[i] > '9')
            return false;
    return true;
}

/* Runs of punctuation; in each run and between them gpt2's words; in each word runs of digits; in
 * each run of digits, groups of three from the left. */
static void falcon(struct splitter_cursor *cursor) {
    const uint8_t *at = cursor->at;
    if (at >= cursor->run_end)
        cursor->run_end = class_at(at, cursor->end) & CLASS_PUNCTUATION
                              ? skip(at, cursor->end, CLASS_PUNCTUATION)
                              : skip_until(at, cursor->end, CLASS_PUNCTUATION);
    if (at >= cursor->word_end)
        cursor->word_end = next_gpt2(at, cursor->run_end, 0);
    const uint8_t *end = cursor->word_end;
    if (is_three_digits(at, end)) {
        cursor->at = at + 3;
        return;
    }
    bool digits = is_falcon_digit(*at);
    do
        at++;
    while (at < end && is_falcon_digit(*at) == digits && !(digits && is_three_digits(at, end)));
    cursor->at = at;
}

static const struct splitter splitters[] = {
    {.name = "gpt-2", .next = gpt2},
    {.name = "phi-2", .next = gpt2},
    {.name = "smollm", .next = digits_then_gpt2},
    {.name = "starcoder", .next = digits_then_gpt2},
    {.name = "refact", .next = digits_then_gpt2},
    {.name = "command-r", .next = digits_then_gpt2, .composes = true},
    {.name = "qwen2", .next = qwen2, .composes = true},
    {.name = "deepseek-r1-qwen", .next = qwen2, .composes = true},
    {.name = "llama-bpe", .next = llama3, .whole_words = true, .adds_bos = true},
    {.name = "llama3", .next = llama3, .whole_words = true, .adds_bos = true},
    {.name = "llama-v3", .next = llama3, .whole_words = true, .adds_bos = true},
    {.name = "falcon3", .next = llama3, .whole_words = true, .adds_bos = true},
    {.name = "falcon", .next = falcon},
};

enum { SPLITTER_COUNT = sizeof splitters / sizeof *splitters };

enum status splitter_find(struct view name, const struct splitter **splitter, struct error *error) {
    char names[256];
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; i < SPLITTER_COUNT; i++) {
        if (view_is(name, splitters[i].name)) {
            *splitter = &splitters[i];
            return STATUS_OK;
        }
        int count =
            snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", splitters[i].name);
        if (count > 0 && used + (size_t)count < sizeof names)
            used += (size_t)count;
    }
    if (name.length == 0)
        return error_set(error, STATUS_UNSUPPORTED,
                         "the vocabulary names no splitter (tokenizer.ggml.pre); supported: %s",
                         names);
    return error_set(error, STATUS_UNSUPPORTED, "splitter '%.*s' is not supported; supported: %s",
                     (int)(name.length > 64 ? 64 : name.length), name.bytes, names);
}
