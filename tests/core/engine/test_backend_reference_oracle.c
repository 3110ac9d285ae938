/* The reference against PyTorch and transformers on a real model, where scripts/dump_reference.py
 * has left one: SHEAF_ORACLE=DIR names its folder. Without it the test is skipped. */
#include "tests/core/engine/reference_run.h"

static void *read_file(const char *folder, const char *name, size_t *bytes) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file, "%s", path);
    fseek(file, 0, SEEK_END);
    *bytes = (size_t)ftell(file);
    rewind(file);
    void *data = malloc(*bytes);
    cr_assert_eq(fread(data, 1, *bytes, file), *bytes, "%s", path);
    fclose(file);
    return data;
}

Test(oracle, float32_transformers_agree_within_1e_4) {
    const char *folder = getenv("SHEAF_ORACLE");
    if (folder == NULL)
        cr_skip_test("SKIPPED: SHEAF_ORACLE names no folder of scripts/dump_reference.py");
    char path[512];
    size_t id_bytes, logit_bytes;
    struct reference_run run;
    struct error error = {0};
    struct verify verify;
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    reference_run_open(&run, path, NULL, 2);
    int32_t *ids = read_file(folder, "ids.bin", &id_bytes);
    float *wanted = read_file(folder, "logits.bin", &logit_bytes);
    int count = (int)(id_bytes / sizeof *ids);
    size_t vocab = (size_t)run.model->vocab_count;
    cr_assert_eq(logit_bytes, (size_t)count * vocab * sizeof *wanted);
    float *found = reference_run_logits(&run, ids, count, 128);
    verify_init(&verify, run.model->vocab_count);
    for (int i = 0; i < count; i++)
        cr_assert_eq(
            verify_add(&verify, i, found + (size_t)i * vocab, wanted + (size_t)i * vocab, &error),
            STATUS_OK);
    struct verify_report report = verify_finish(&verify);
    cr_log_info("%d positions: relative L2 %.3g, worst %.3g, max error %.3g", count,
                report.relative_l2, report.relative_l2_max, report.absolute_error_max);
    cr_expect_lt(report.relative_l2, 1e-4);
    cr_expect_lt(report.relative_l2_max, 1e-4);
    cr_expect_eq(report.not_finite_count, 0);
    cr_expect_eq(report.clear_agree_count, report.clear_count);
    verify_deinit(&verify);
    free(ids);
    free(wanted);
    free(found);
    reference_run_close(&run);
}
