/* Rows as JSON, the set of finished ids, the summary's percentiles, the order of documents, the
 * queue. */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "core/job/finished_set.h"
#include "core/job/item_queue.h"
#include "core/job/order.h"
#include "core/job/row.h"
#include "core/job/summary.h"

static json_t *parse_row(const struct row *row) {
    struct text text;
    text_init(&text, 1 << 20);
    cr_assert(row_append_json(&text, row));
    cr_assert_eq(text.bytes[text.length - 1], '\n');
    cr_assert_null(memchr(text.bytes, '\n', text.length - 1));
    json_t *value = NULL;
    struct error error;
    cr_assert_eq(json_parse(text.bytes, text.length, &value, &error), STATUS_OK, "%s", text.bytes);
    text_deinit(&text);
    return value;
}

static struct row sample_row(void) {
    return (struct row){.id_json = "17",
                        .index = 3,
                        .source_path = "a.jsonl",
                        .source_line = 4,
                        .text = {"hi\n\"\x01", 5},
                        .finish_reason = "stop",
                        .has_tokens = true,
                        .prompt_tokens = 9,
                        .completion_tokens = 2,
                        .has_timing = true,
                        .timing = {.latency_ms = 1.5, .tokens_per_second = NAN},
                        .model = "m",
                        .numerics = "n",
                        .fingerprint = "f"};
}

Test(rows, a_row_is_one_line_of_json_with_kinds_kept) {
    struct row row = sample_row();
    json_t *value = parse_row(&row);
    cr_assert_eq(json_integer_value(json_object_get(value, "id")), 17);
    cr_assert_str_eq(json_string_value(json_object_get(value, "text")), "hi\n\"\x01");
    const json_t *timing = json_object_get(value, "timing");
    cr_assert(json_is_null(json_object_get(timing, "tokens_per_second")));
    cr_assert_float_eq(json_real_value(json_object_get(timing, "latency_ms")), 1.5, 1e-9);
    cr_assert_null(json_object_get(value, "error"));
    json_decref(value);
}

Test(rows, guesses_are_told_where_there_may_be_some) {
    struct row row = sample_row();
    row.guessed_tokens = 5;
    row.accepted_tokens = 3;
    json_t *value = parse_row(&row);
    cr_assert_null(json_object_get(json_object_get(value, "work"), "guessed"));
    json_decref(value);
    row.speculates = true;
    value = parse_row(&row);
    const json_t *work = json_object_get(value, "work");
    cr_assert_eq(json_integer_value(json_object_get(work, "guessed")), 5);
    cr_assert_eq(json_integer_value(json_object_get(work, "accepted")), 3);
    json_decref(value);
}

Test(rows, an_error_row_has_code_message_and_no_text) {
    struct row row = sample_row();
    row.error_code = "unreadable";
    row.error_message = "cannot read 'x': Permission denied";
    row.has_timing = false;
    json_t *value = parse_row(&row);
    const json_t *error = json_object_get(value, "error");
    cr_assert_str_eq(json_string_value(json_object_get(error, "code")), "unreadable");
    cr_assert(json_is_true(json_object_get(error, "retryable")));
    cr_assert_null(json_object_get(value, "text"));
    json_decref(value);
}

Test(rows, finished_ids_survive_growth) {
    struct finished_set set;
    finished_set_init(&set);
    for (uint64_t i = 0; i < 50000; i++)
        finished_set_get(&set, i * 0x9e3779b97f4a7c15u)->state = finished_set_state(i << 3, 1);
    cr_assert_eq(set.count, 50000u);
    for (uint64_t i = 0; i < 50000; i++) {
        const struct finished_entry *entry = finished_set_find(&set, i * 0x9e3779b97f4a7c15u);
        cr_assert_not_null(entry);
        cr_assert(finished_set_matches(entry->state, i << 3));
        cr_assert_eq(entry->state & 7, 1u);
    }
    cr_assert_null(finished_set_find(&set, 12345));
    finished_set_deinit(&set);
}

Test(rows, percentiles_are_within_one_percent) {
    static struct histogram histogram;
    for (int i = 1; i <= 1000; i++)
        summary_histogram_add(&histogram, i);
    cr_assert_float_eq(summary_histogram_percentile(&histogram, 50), 500, 6);
    cr_assert_float_eq(summary_histogram_percentile(&histogram, 99), 990, 11);
    cr_assert_leq(summary_histogram_percentile(&histogram, 100), 1000);
    static struct histogram empty;
    cr_assert(isnan(summary_histogram_percentile(&empty, 50)));
}

static struct item *item_of(long long index, int length, int first_token) {
    struct item *item = item_create();
    item->document.index = index;
    item->token_count = length;
    item->tokens = malloc((size_t)length * sizeof *item->tokens);
    for (int i = 0; i < length; i++)
        item->tokens[i] = i < 128 ? first_token : (int32_t)(index * 1000 + i);
    return item;
}

Test(rows, groups_with_a_common_prefix_stay_together_longest_first) {
    struct order_window window;
    order_window_init(&window);
    /* Two groups (first tokens 1 and 2) interleaved, and a loner that is longest of all. */
    const int lengths[] = {200, 300, 250, 400, 900};
    const int firsts[] = {1, 2, 1, 2, 3};
    for (int i = 0; i < 5; i++)
        cr_assert(order_window_add(&window, item_of(i, lengths[i], firsts[i])));
    order_window_sort(&window);
    int order[5];
    for (int i = 0; i < 5; i++) {
        struct item *item = order_window_take(&window);
        order[i] = firsts[item->document.index];
        item_destroy(item);
    }
    const int expected[] = {3, 2, 2, 1, 1};
    cr_assert_arr_eq(order, expected, sizeof order);
    cr_assert(order_window_is_empty(&window));
    order_window_deinit(&window);
}

static void *push_many(void *context) {
    struct item_queue *queue = context;
    for (int i = 0; i < 1000; i++) {
        struct item *item = item_create();
        item->document.index = i;
        if (!item_queue_push(queue, item))
            return NULL;
    }
    item_queue_close(queue);
    return NULL;
}

Test(rows, a_full_queue_blocks_and_keeps_order) {
    struct item_queue queue;
    item_queue_init(&queue, 4, 1 << 20);
    pthread_t thread;
    pthread_create(&thread, NULL, push_many, &queue);
    long long next = 0;
    while (!item_queue_is_drained(&queue)) {
        struct item *item = item_queue_pop(&queue, 1000);
        if (!item)
            continue;
        cr_assert_eq(item->document.index, next++);
        cr_assert_leq(queue.count, 4u);
        item_destroy(item);
    }
    cr_assert_eq(next, 1000);
    pthread_join(thread, NULL);
    item_queue_deinit(&queue);
}

Test(rows, cancelling_frees_a_blocked_producer) {
    struct item_queue queue;
    item_queue_init(&queue, 2, 1 << 20);
    pthread_t thread;
    pthread_create(&thread, NULL, push_many, &queue);
    item_destroy(item_queue_pop(&queue, 1000));
    item_queue_cancel(&queue);
    pthread_join(thread, NULL);
    item_queue_deinit(&queue);
}
