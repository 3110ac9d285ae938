/* The numbers here were chosen by replaying the outputs of two models over documents that are
 * quoted, listed, summarised and ignored: grams of 4 and 2 foretell more than any single length,
 * guessing no further than the agreement is long keeps four of five guesses right, and rests make
 * texts without quotes cost nothing that can be measured. */
#include "core/engine/lookup.h"

#include <string.h>
#include <xxhash.h>

enum {
    WAYS = 4, /* places of one hash */
    PLACES_MAX = 1 << 16,
    MATCH_STRONG = 5, /* an agreement that is worth a guess even in a rest */
    REACH_STRONG = 3, /* ... and this many */
    PAUSE_MAX = 31,
};

static const int lengths[] = {2, 4}; /* of grams; the longer one is preferred */

size_t lookup_place_count(int token_count_max) {
    size_t count = 64;
    while (count < 2 * (size_t)token_count_max && count < PLACES_MAX)
        count *= 2;
    return count;
}

int lookup_more_rows(int max_sequences) {
    int most = max_sequences * (1 + LOOKUP_GUESSES_MAX);
    most = most < LOOKUP_ROWS_MAX ? most : LOOKUP_ROWS_MAX;
    return most > max_sequences ? most - max_sequences : 0;
}

uint64_t lookup_bytes(int max_sequences, int token_count_max) {
    return (uint64_t)max_sequences * lookup_place_count(token_count_max) * sizeof(int32_t);
}

void lookup_open(struct lookup *lookup, int token_count_max) {
    *lookup = (struct lookup){
        .places = lookup->places,
        .place_count = (uint32_t)lookup_place_count(token_count_max),
        .reach = LOOKUP_GUESSES_MAX,
    };
    memset(lookup->places, 0, lookup->place_count * sizeof *lookup->places);
}

/* The places of the gram of `length` tokens that ends before `end`. */
static int32_t *ways_of(const struct lookup *lookup, const int32_t *tokens, int end, int length) {
    uint64_t hash = XXH3_64bits(tokens + end - length, (size_t)length * sizeof *tokens);
    return &lookup->places[(hash * WAYS) & (lookup->place_count - 1)];
}

static bool same_gram(const int32_t *tokens, int place, int end, int length) {
    return place >= length && memcmp(tokens + place - length, tokens + end - length,
                                     (size_t)length * sizeof *tokens) == 0;
}

/* In the gram's own place, or the place that was written longest ago. */
static void index_gram(struct lookup *lookup, const int32_t *tokens, int end, int length) {
    int32_t *ways = ways_of(lookup, tokens, end, length);
    int oldest = 0;
    for (int way = 0; way < WAYS; way++) {
        if (same_gram(tokens, ways[way], end, length)) {
            ways[way] = end;
            return;
        }
        oldest = ways[way] < ways[oldest] ? way : oldest;
    }
    ways[oldest] = end;
}

static void index_until(struct lookup *lookup, const int32_t *tokens, int end) {
    for (int at = lookup->indexed + 1; at <= end; at++)
        for (int i = 0; i < 2 && at >= lengths[i]; i++)
            index_gram(lookup, tokens, at, lengths[i]);
    lookup->indexed = end > lookup->indexed ? end : lookup->indexed;
}

/* The position behind the latest earlier occurrence of the last tokens; 0: none is known. */
static int find(const struct lookup *lookup, const int32_t *tokens, int count) {
    int found = 0;
    for (int i = 1; i >= 0 && found == 0; i--) {
        if (count < lengths[i])
            continue;
        const int32_t *ways = ways_of(lookup, tokens, count, lengths[i]);
        for (int way = 0; way < WAYS; way++)
            if (ways[way] > found && same_gram(tokens, ways[way], count, lengths[i]))
                found = ways[way];
    }
    return found;
}

/* Tokens before `place` that agree with those before `count`. Nothing depends on more than a few.
 */
static int agreement(const int32_t *tokens, int place, int count) {
    int match = 0;
    while (match < place && match <= LOOKUP_GUESSES_MAX &&
           tokens[place - 1 - match] == tokens[count - 1 - match])
        match++;
    return match;
}

int lookup_guess(struct lookup *lookup, int32_t *tokens, int count, int most) {
    index_until(lookup, tokens, count - 1);
    int place = find(lookup, tokens, count);
    lookup->match = agreement(tokens, place, count);
    bool strong = lookup->match >= MATCH_STRONG;
    if (place == 0 || (lookup->rest > 0 && !strong))
        return 0;
    int reach = strong && lookup->reach < REACH_STRONG ? REACH_STRONG : lookup->reach;
    int guesses = lookup->match - 1 < reach ? lookup->match - 1 : reach;
    guesses = guesses < most ? guesses : most;
    for (int i = 0; i < guesses; i++) /* may go on into the guesses themselves */
        tokens[count + i] = tokens[place + i];
    return guesses;
}

void lookup_learn(struct lookup *lookup, int guessed, int right) {
    if (guessed == 0) {
        lookup->rest -= lookup->match > 0 && lookup->rest > 0;
        return;
    }
    if (right == 0) {
        lookup->reach = lookup->reach > 1 ? lookup->reach / 2 : 1;
        lookup->rest = lookup->pause;
        lookup->pause = 2 * lookup->pause < PAUSE_MAX ? 2 * lookup->pause + 1 : PAUSE_MAX;
        return;
    }
    lookup->reach = right < guessed ? right + 1 : 2 * lookup->reach;
    if (lookup->reach > LOOKUP_GUESSES_MAX)
        lookup->reach = LOOKUP_GUESSES_MAX;
    lookup->rest = lookup->pause = 0;
}
