/* The table, and the choice among what fires. */
#include "core/profile/rules.h"

#include <string.h>

#include "core/profile/rules_state.h"

static const double THRESHOLD = 0.03;

struct rule {
    int number;
    const char *name;
    const char *setting;
    enum rules_consent consent;
    bool (*fires)(const struct facts *facts, struct advice *advice);
};

static const struct rule rules[RULES_COUNT] = {
    {1, "more sequences at once", "max-sequences", ADVICE_AUTOMATIC, rules_batch_sequences},
    {2, "smaller weights", "model", ADVICE_ONLY, rules_numbers_weights},
    {3, "int8 KV", "kv-dtype", ADVICE_CONSENT, rules_numbers_kv},
    {4, "a larger KV pool", "kv-memory", ADVICE_AUTOMATIC, rules_batch_pool_full},
    {5, "larger chunks for the matmuls", "batch-tokens", ADVICE_AUTOMATIC, rules_batch_chunk},
    {6, "larger chunks for attention", "batch-tokens", ADVICE_AUTOMATIC, rules_batch_reread},
    {7, "smaller chunks, to stay in cache", "batch-tokens", ADVICE_AUTOMATIC,
     rules_batch_activations},
    {8, "smaller steps for even latency", "batch-tokens", ADVICE_AUTOMATIC, rules_batch_stalls},
    {9, "one launch a step", NULL, ADVICE_ONLY, rules_device_gaps},
    {10, "less work between steps", NULL, ADVICE_ONLY, rules_threads_host},
    {11, "attention split over more units", NULL, ADVICE_ONLY, rules_device_split},
    {12, "attention split less", NULL, ADVICE_ONLY, rules_device_combine},
    {13, "fewer threads: they wait for each other", "threads", ADVICE_AUTOMATIC,
     rules_threads_wait},
    {14, "the number of threads the machine can use", "threads", ADVICE_AUTOMATIC,
     rules_threads_ladder},
    {15, "even tasks", NULL, ADVICE_ONLY, rules_threads_imbalance},
    {16, "shared beginnings computed once", "prefix-cache", ADVICE_AUTOMATIC, rules_batch_prefix},
    {17, "room for shared beginnings", "kv-memory", ADVICE_AUTOMATIC, rules_batch_evicted},
    {18, "pages of another size", NULL, ADVICE_ONLY, rules_batch_fragments},
    {19, "memory of the pool for weights", "gpu-memory", ADVICE_ONLY, rules_device_pool},
    {20, "fewer streamed weights", "weights-memory", ADVICE_ONLY, rules_device_offload},
    {21, "pinned staging", NULL, ADVICE_ONLY, rules_device_pinned},
    {22, "a smaller head", "model", ADVICE_ONLY, rules_numbers_logits},
    {23, "the fast kernel path", "isa", ADVICE_CONSENT, rules_numbers_path},
    {24, "memory that stays", NULL, ADVICE_ONLY, rules_threads_faults},
    {25, "long documents first", NULL, ADVICE_ONLY, rules_batch_tail},
    {26, "documents ready in time", NULL, ADVICE_ONLY, rules_threads_input},
};

void rules_predict(struct advice *advice, double low, double middle, double high) {
    advice->saved_low = low > 0 ? low : 0;
    advice->saved = middle > advice->saved_low ? middle : advice->saved_low;
    advice->saved_high = high > advice->saved ? high : advice->saved;
}

static double gain_of(double seconds, double saved) {
    double left = seconds - saved;
    return left > 0 ? seconds / left - 1 : 0;
}

bool rules_try(int number, const struct facts *facts, struct advice *advice) {
    const struct rule *rule = &rules[number - 1];
    *advice = (struct advice){.rule = rule->number,
                              .name = rule->name,
                              .setting = rule->setting,
                              .consent = rule->consent,
                              .confidence = "medium"};
    if (!rule->fires(facts, advice))
        return false;
    advice->gain = gain_of(facts->seconds, advice->saved);
    advice->gain_low = gain_of(facts->seconds, advice->saved_low);
    advice->gain_high = gain_of(facts->seconds, advice->saved_high);
    return true;
}

double rules_threshold(const struct facts *facts) {
    return 2 * facts->noise > THRESHOLD ? 2 * facts->noise : THRESHOLD;
}

/* The place of advice for the same setting, or -1. */
static int find_same(const struct rules_advice *advice, const char *setting) {
    for (int i = 0; setting != NULL && i < advice->count; i++)
        if (advice->items[i].setting != NULL && strcmp(advice->items[i].setting, setting) == 0)
            return i;
    return -1;
}

static void remove_at(struct rules_advice *advice, int place) {
    advice->count--;
    for (int i = place; i < advice->count; i++)
        advice->items[i] = advice->items[i + 1];
}

static void insert(struct rules_advice *advice, const struct advice *item) {
    int place = advice->count++;
    for (; place > 0 && advice->items[place - 1].saved < item->saved; place--)
        advice->items[place] = advice->items[place - 1];
    advice->items[place] = *item;
}

void rules_run(const struct facts *facts, struct rules_advice *advice) {
    advice->count = 0;
    for (int number = 1; number <= RULES_COUNT; number++) {
        struct advice item;
        if (!rules_try(number, facts, &item) ||
            item.saved < rules_threshold(facts) * facts->seconds)
            continue;
        int same = find_same(advice, item.setting);
        if (same >= 0 && advice->items[same].saved >= item.saved)
            continue;
        if (same >= 0)
            remove_at(advice, same);
        insert(advice, &item);
    }
}

const char *rules_consent_name(enum rules_consent consent) {
    static const char *const names[] = {"automatic", "consent", "advice"};
    return names[consent];
}
