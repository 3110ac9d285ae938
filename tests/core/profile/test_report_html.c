/* The HTML report: every plot and table is there, what users wrote stays text, and the data block
 * is the report itself. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/profile/report_html.h"

static const char SAMPLE[] =
    "{\"machine\":{\"cpu\":\"A <b>CPU</b> & more\",\"numerics\":\"cpu\",\"threads\":2,"
    "\"threads_max\":2,\"ceilings\":{\"by_threads\":[{\"threads\":1,\"flops\":5e11,"
    "\"memory_bytes\":4e10}],\"cache_bytes\":2e11}},"
    "\"model\":{\"name\":\"</script><script>alert(1)</script>\"},"
    "\"run\":{\"documents\":2,\"seconds\":1.5,\"steps\":2,\"overhead_share\":0.001},"
    "\"attention\":{\"share\":0.25,\"flops_per_second\":6e10},"
    "\"ops\":[{\"phase\":\"prefill\",\"op\":\"attention\",\"path\":\"attention/x\","
    "\"shape\":\"9 heads\",\"seconds\":0.5,\"share\":0.33,\"floor_seconds\":0.25,"
    "\"efficiency\":0.5,\"flops\":1e10,\"bytes_moved\":1e8,\"flops_per_second\":2e10,"
    "\"bytes_per_second\":2e8,\"verdict\":\"compute\"},"
    "{\"phase\":\"decode\",\"op\":\"down\",\"path\":\"down/y\",\"seconds\":0.25}],"
    "\"layers\":[{\"layer\":0,\"prefill_seconds\":0.5,\"prefill_attention_seconds\":0.2}],"
    "\"steps\":[{\"at_seconds\":0,\"seconds\":0.5,\"memory\":{\"kv_used\":10,\"kv_reserved\":20}},"
    "{\"at_seconds\":0.5,\"seconds\":0.25,\"memory\":{\"kv_used\":15,\"kv_reserved\":20}}],"
    "\"documents\":[{\"id\":\"a<i>\",\"at_seconds\":0,\"queued_seconds\":0.1,"
    "\"prefill_seconds\":0.5,\"decode_seconds\":0.1}],"
    "\"advice\":[{\"setting\":\"threads\",\"from\":1,\"to\":2,\"evidence\":\"one of two\","
    "\"predicted_gain\":{\"low\":0.1,\"mid\":0.2,\"high\":0.3}}]}";

static json_t *sample(void) {
    struct error error;
    json_t *report = NULL;
    cr_assert_eq(json_parse(SAMPLE, strlen(SAMPLE), &report, &error), STATUS_OK, "%s", error.text);
    return report;
}

static int count(const char *text, const char *what) {
    int found = 0;
    for (; (text = strstr(text, what)) != NULL; text += strlen(what))
        found++;
    return found;
}

Test(report_html, has_every_plot_and_stays_text) {
    json_t *report = sample();
    struct text page;
    text_init(&page, 1 << 22);
    cr_assert(report_html_write(&page, report));
    const char *plots[] = {"Seconds by operation", "Roofline:",         "Seconds by layer",
                           "KV memory over",       "Steps by duration", "Documents over"};
    for (size_t i = 0; i < sizeof plots / sizeof plots[0]; i++)
        cr_expect_geq(count(page.bytes, plots[i]), 1, "%s", plots[i]);
    cr_expect_eq(count(page.bytes, "<svg"), 6);
    cr_expect_eq(count(page.bytes, "</svg>"), 6);
    cr_expect_eq(count(page.bytes, "<script"), 1, "a name became markup");
    cr_expect_eq(count(page.bytes, "<b>"), 0);
    cr_expect_eq(count(page.bytes, "<i>"), 0);
    cr_expect_eq(count(page.bytes, "--threads: 1 → 2"), 1);
    cr_expect_eq(count(page.bytes, "nan"), 0);
    cr_expect_eq(count(page.bytes, "http"), 0, "nothing is fetched");
    text_deinit(&page);
    json_decref(report);
}

Test(report_html, holds_the_report_as_data) {
    json_t *report = sample(), *found = NULL;
    struct text page;
    struct error error;
    text_init(&page, 1 << 22);
    cr_assert(report_html_write(&page, report));
    const char *begin = strstr(page.bytes, "id=\"report\">");
    cr_assert_not_null(begin);
    begin += strlen("id=\"report\">");
    const char *end = strstr(begin, "</script>");
    cr_assert_eq(json_parse(begin, (size_t)(end - begin), &found, &error), STATUS_OK, "%s",
                 error.text);
    cr_expect(json_equal(found, report));
    json_decref(found);
    text_deinit(&page);
    json_decref(report);
}

Test(report_html, an_empty_report_is_a_page) {
    json_t *report = json_object();
    struct text page;
    text_init(&page, 1 << 22);
    cr_assert(report_html_write(&page, report));
    cr_expect_eq(count(page.bytes, "</html>"), 1);
    cr_expect_eq(count(page.bytes, "nan"), 0);
    text_deinit(&page);
    json_decref(report);
}

Test(report_html, too_little_room_is_no_page) {
    json_t *report = sample();
    for (size_t room = 0; room < 6000; room += 500) {
        struct text page;
        text_init(&page, room);
        cr_expect_not(report_html_write(&page, report));
        text_deinit(&page);
    }
    json_decref(report);
}
