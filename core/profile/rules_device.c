/* Accelerators: gaps between kernels, splits, transfers. */
#include <stdio.h>

#include "core/profile/rules_state.h"

static const double GAP_SHARE = 0.15;
static const double SHORT_KERNEL = 10e-6;
static const double COMBINE_SHARE = 0.1;
static const double POOL_SHARE = 0.5;
static const double PINNED_SHARE = 0.5;

bool rules_device_gaps(const struct facts *facts, struct advice *advice) {
    const struct facts_device *device = &facts->device;
    double gaps = device->gap_share * facts->seconds;
    if (!device->present ||
        (device->gap_share <= GAP_SHARE && device->kernel_median >= SHORT_KERNEL))
        return false;
    snprintf(advice->evidence, sizeof advice->evidence,
             "no kernel ran for %.0f %% of the time; the median kernel takes %.1f us",
             device->gap_share * 100, device->kernel_median * 1e6);
    rules_predict(advice, 0.5 * gaps, 0.8 * gaps, gaps);
    return true;
}

bool rules_device_split(const struct facts *facts, struct advice *advice) {
    const struct facts_phase *decode = &facts->phases[PHASE_DECODE];
    double tasks = decode->steps > 0 ? decode->runs / decode->steps : 0;
    double seconds = decode->ops[SITE_ATTENTION].seconds;
    if (!facts->device.present || tasks <= 0 || tasks >= facts->device.units)
        return false;
    double saved = seconds * (1 - tasks / facts->device.units);
    snprintf(advice->evidence, sizeof advice->evidence,
             "decode attention has %.0f sequences a step for %d units and takes %.2f s", tasks,
             facts->device.units, seconds);
    rules_predict(advice, 0.4 * saved, 0.7 * saved, saved);
    return true;
}

bool rules_device_combine(const struct facts *facts, struct advice *advice) {
    double attention = facts_op_seconds(facts, SITE_ATTENTION);
    double combine = facts->device.combine_share * attention;
    if (!facts->device.present || facts->device.combine_share <= COMBINE_SHARE)
        return false;
    snprintf(advice->evidence, sizeof advice->evidence,
             "merging splits takes %.0f %% of %.2f s of attention",
             facts->device.combine_share * 100, attention);
    rules_predict(advice, 0.3 * combine, 0.6 * combine, combine);
    return true;
}

bool rules_device_pool(const struct facts *facts, struct advice *advice) {
    double exposed = facts->device.transfer_exposed;
    if (!facts->device.present || facts->kv_peak_share >= POOL_SHARE || exposed <= 0)
        return false;
    snprintf(advice->evidence, sizeof advice->evidence,
             "the KV pool was %.0f %% full at its peak while weights were streamed for %.2f s",
             facts->kv_peak_share * 100, exposed);
    rules_predict(advice, 0, (1 - facts->kv_peak_share) * exposed, exposed);
    return true;
}

bool rules_device_offload(const struct facts *facts, struct advice *advice) {
    double exposed = facts->device.transfer_exposed;
    if (!facts->device.present || exposed <= 0)
        return false;
    snprintf(advice->evidence, sizeof advice->evidence,
             "%.2f s of transfers were not hidden by kernels, at %.1f GB/s", exposed,
             facts->device.transfer_rate * 1e-9);
    rules_predict(advice, 0.2 * exposed, 0.5 * exposed, exposed);
    return true;
}

bool rules_device_pinned(const struct facts *facts, struct advice *advice) {
    const struct facts_device *device = &facts->device;
    if (!device->present || device->transfer_ceiling <= 0 ||
        device->transfer_rate >= PINNED_SHARE * device->transfer_ceiling)
        return false;
    double saved =
        device->transfer_exposed * (1 - device->transfer_rate / device->transfer_ceiling);
    snprintf(advice->evidence, sizeof advice->evidence,
             "transfers reach %.1f of %.1f GB/s; %.2f s of them are not hidden",
             device->transfer_rate * 1e-9, device->transfer_ceiling * 1e-9,
             device->transfer_exposed);
    rules_predict(advice, 0.5 * saved, 0.8 * saved, saved);
    return true;
}
