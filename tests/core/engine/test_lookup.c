/* Guesses against a plain search of the whole text, and what right and wrong ones lead to. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine/lookup.h"
#include "tests/core/engine/fake_device.h"

enum { TOKENS = 3000 };

static void open_lookup(struct lookup *lookup, int token_count_max) {
    *lookup = (struct lookup){
        .places = malloc(lookup_place_count(token_count_max) * sizeof *lookup->places)};
    memset(lookup->places, 0x55, lookup_place_count(token_count_max) * sizeof *lookup->places);
    lookup_open(lookup, token_count_max);
}

/* Behind the latest earlier occurrence of the last `length` tokens; 0: none. */
static int search(const int32_t *tokens, int count, int length) {
    for (int end = count - 1; count >= length && end >= length; end--)
        if (memcmp(tokens + end - length, tokens + count - length,
                   (size_t)length * sizeof *tokens) == 0)
            return end;
    return 0;
}

static bool occurs_before(const int32_t *tokens, int count, const int32_t *guesses, int guessed) {
    for (int end = 2; end < count; end++)
        if (memcmp(tokens + end - 2, tokens + count - 2, 2 * sizeof *tokens) == 0 &&
            memcmp(tokens + end, guesses, (size_t)guessed * sizeof *tokens) == 0)
            return true;
    return false;
}

/* Text with quotes: random tokens, and now and then a stretch of what came before. */
static void fill_text(int32_t *tokens, uint64_t *state, int vocabulary) {
    for (int at = 0; at < TOKENS;) {
        int length = fake_between(state, 1, 20);
        bool quote = at > 50 && fake_between(state, 0, 1) == 1;
        int from = quote ? fake_between(state, 0, at - 20) : 0;
        for (int i = 0; i < length && at < TOKENS; i++, at++)
            tokens[at] = quote ? tokens[from + i] : fake_between(state, 0, vocabulary);
    }
}

/* Steps of random length through one text; counts guesses and those a search would not give. */
static void compare_with_search(uint64_t seed, int vocabulary, int *guesses, int *others) {
    int32_t tokens[TOKENS + LOOKUP_GUESSES_MAX], text[TOKENS];
    uint64_t state = seed;
    struct lookup lookup;
    fill_text(text, &state, vocabulary);
    memcpy(tokens, text, sizeof text);
    open_lookup(&lookup, TOKENS);
    for (int count = 1; count < TOKENS; count += fake_between(&state, 1, 9)) {
        int guessed = lookup_guess(&lookup, tokens, count, LOOKUP_GUESSES_MAX);
        int place = search(tokens, count, 4);
        place = place > 0 ? place : search(tokens, count, 2);
        bool same = guessed == 0 || (place > 0 && memcmp(tokens + count, tokens + place,
                                                         (size_t)guessed * sizeof *tokens) == 0);
        cr_assert(same || occurs_before(tokens, count, tokens + count, guessed));
        cr_assert(place > 0 || guessed == 0);
        *guesses += guessed > 0;
        *others += !same || (guessed == 0 && place > 0);
        memcpy(tokens + count, text + count,
               (size_t)(count + 9 < TOKENS ? 9 : TOKENS - count) * sizeof *text);
    }
    free(lookup.places);
}

Test(lookup, finds_what_a_search_finds) {
    int guesses = 0, others = 0;
    for (uint64_t seed = 1; seed <= 20; seed++)
        compare_with_search(seed * 77, seed % 2 ? 40 : 30000, &guesses, &others);
    cr_assert_gt(guesses, 4000);
    cr_assert_lt(others, guesses / 20, "%d of %d were lost to other grams", others, guesses);
}

static struct lookup one_gram(int32_t *tokens, int count, int repeats) {
    struct lookup lookup;
    for (int i = 0; i < count * repeats; i++)
        tokens[i] = 100 + i % count;
    open_lookup(&lookup, 1000);
    return lookup;
}

Test(lookup, guesses_no_further_than_the_agreement_is_long) {
    int32_t tokens[64] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    for (int length = 1; length <= 6; length++) {
        struct lookup lookup;
        open_lookup(&lookup, 1000);
        tokens[12] = 99;
        for (int i = 0; i < length; i++)
            tokens[13 + i] = 1 + i;
        int guessed = lookup_guess(&lookup, tokens, 13 + length, LOOKUP_GUESSES_MAX);
        cr_assert_eq(guessed, length - 1, "%d after %d", guessed, length);
        for (int i = 0; i < guessed; i++)
            cr_assert_eq(tokens[13 + length + i], length + 1 + i);
        free(lookup.places);
    }
}

Test(lookup, a_guess_goes_on_into_itself) {
    int32_t tokens[64];
    struct lookup lookup = one_gram(tokens, 3, 4);
    cr_assert_eq(lookup_guess(&lookup, tokens, 12, 20), LOOKUP_GUESSES_MAX);
    for (int i = 0; i < LOOKUP_GUESSES_MAX; i++)
        cr_assert_eq(tokens[12 + i], 100 + i % 3);
    cr_assert_eq(lookup_guess(&lookup, tokens, 12, 2), 2);
    cr_assert_eq(lookup_guess(&lookup, tokens, 12, 0), 0);
    free(lookup.places);
}

Test(lookup, the_same_question_has_the_same_answer_until_it_learns) {
    int32_t tokens[64];
    struct lookup lookup = one_gram(tokens, 3, 4);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(lookup_guess(&lookup, tokens, 12, 7), 7);
    lookup_learn(&lookup, 7, 2);
    cr_assert_eq(lookup_guess(&lookup, tokens, 12, 7), 3, "one further than what was right");
    lookup_learn(&lookup, 3, 3);
    cr_assert_eq(lookup_guess(&lookup, tokens, 12, 7), 6);
    free(lookup.places);
}

/* Text in which every pair of tokens was seen, and never followed by what it is followed by now. */
Test(lookup, wrong_guesses_become_rare) {
    int32_t tokens[1200 + LOOKUP_GUESSES_MAX];
    struct lookup lookup;
    int guessed = 0, late = 0;
    for (int i = 0; i < 1200; i++)
        tokens[i] = i % 3 < 2 ? i % 3 : 2 + i;
    open_lookup(&lookup, 1200);
    for (int count = 1; count < 1200; count++) {
        int32_t next = tokens[count];
        int guesses = lookup_guess(&lookup, tokens, count, LOOKUP_GUESSES_MAX);
        cr_assert_leq(guesses, 1);
        guessed += guesses;
        late += count > 600 ? guesses : 0;
        lookup_learn(&lookup, guesses, guesses > 0 && tokens[count] == next);
        tokens[count] = next;
    }
    cr_assert(guessed > 5 && guessed < 40, "%d of 400 finds were used", guessed);
    cr_assert(late > 1 && late < 10, "it never stops to look: %d", late);
    free(lookup.places);
}

Test(lookup, a_long_agreement_ends_a_rest) {
    int32_t tokens[64];
    struct lookup lookup = one_gram(tokens, 10, 4);
    for (int i = 0; i < 4; i++)
        lookup_learn(&lookup, 7, 0);
    cr_assert_gt(lookup.rest, 0);
    cr_assert_eq(lookup_guess(&lookup, tokens, 14, 7), 0, "4 agree");
    cr_assert_eq(lookup_guess(&lookup, tokens, 17, 7), 3, "7 agree");
    free(lookup.places);
}

Test(lookup, memory_is_bounded_and_as_foretold) {
    cr_assert_eq(lookup_place_count(1), 64);
    cr_assert_eq(lookup_place_count(2048), 4096);
    cr_assert_eq(lookup_place_count(2049), 8192);
    cr_assert_eq(lookup_place_count(1 << 30), 1 << 16);
    cr_assert_eq(lookup_bytes(64, 1 << 20), 64 * 4 << 16);
    cr_assert_eq(lookup_more_rows(1), LOOKUP_GUESSES_MAX);
    cr_assert_eq(lookup_more_rows(4096), 0, "as many rows as there are anyway");
    for (int sequences = 1; sequences < 100; sequences++) {
        int rows = sequences + lookup_more_rows(sequences);
        cr_assert_eq(rows, sequences > LOOKUP_ROWS_MAX       ? sequences
                           : 8 * sequences < LOOKUP_ROWS_MAX ? 8 * sequences
                                                             : LOOKUP_ROWS_MAX);
    }
}
