/* The figures of core/engine/verify.h in words and as one JSON object. */
#include "cmd/verify_report.h"

#include <stdio.h>

#include "cmd/exit_code.h"
#include "core/base/json.h"

static void print_plain(const struct runtime *runtime, const struct verify_report *report,
                        const char *tested) {
    printf("model       %s (%s)\n", runtime->model->name, runtime->model_path);
    printf("numerics    %s against the float64 reference, teacher-forced\n", tested);
    printf("positions   %lld", (long long)report->position_count);
    if (report->not_finite_count > 0)
        printf(" (%lld not finite: left out)", (long long)report->not_finite_count);
    printf("\nlogit error relative L2 %.3e, worst position %.3e (at %lld), largest %.4f\n",
           report->relative_l2, report->relative_l2_max,
           (long long)report->relative_l2_max_position, report->absolute_error_max);
    printf("KL          mean %.3e, largest %.3e nats\n", report->divergence_mean,
           report->divergence_max);
    printf("argmax      %lld of %lld equal; %lld of %lld where the reference's two best differ by "
           "more than twice the largest error\n",
           (long long)report->agree_count,
           (long long)(report->position_count - report->not_finite_count),
           (long long)report->clear_agree_count, (long long)report->clear_count);
}

static void print_json(const struct runtime *runtime, const struct verify_report *report,
                       const char *tested) {
    json_t *object = json_pack(
        "{s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I}", "model",
        runtime->model->name, "numerics", tested, "positions", (json_int_t)report->position_count,
        "not_finite", (json_int_t)report->not_finite_count, "relative_l2", report->relative_l2,
        "relative_l2_max", report->relative_l2_max, "absolute_error_max",
        report->absolute_error_max, "kl_mean", report->divergence_mean, "kl_max",
        report->divergence_max, "argmax_equal", (json_int_t)report->agree_count, "clear",
        (json_int_t)report->clear_count, "clear_equal", (json_int_t)report->clear_agree_count);
    json_dumpf(object, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    printf("\n");
    json_decref(object);
}

int verify_report_print(const struct runtime *runtime, const struct verify_report *report,
                        const char *tested) {
    if (runtime->settings->json)
        print_json(runtime, report, tested);
    else
        print_plain(runtime, report, tested);
    bool fine = report->not_finite_count == 0 && report->clear_agree_count == report->clear_count;
    return fine ? EXIT_ALL_DONE : EXIT_SOME_FAILED;
}
