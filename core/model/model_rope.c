/* Rope frequencies of each rope of a description, in double: the base's geometric series, context
 * scaling by the method the file names, and per-frequency divisors from a tensor (Llama 3). YaRN:
 * Peng et al. 2023, section 3, with the correction range rounded outwards to whole dimensions. */
#include <math.h>
#include <string.h>

#include "core/model/model_build.h"

static const double two_pi = 6.283185307179586476925;

struct scaling {
    double factor, original_context, gain, beta_fast, beta_slow;
};

struct rope_work {
    const struct model_build *build;
    const struct description_rope *source;
    double base;
    struct rope *rope;
    double *frequencies; /* [dims / 2], the rope's own */
};

static enum status scale_none(struct rope_work *work, const struct scaling *scaling) {
    (void)work;
    (void)scaling;
    return STATUS_OK;
}

static enum status scale_linear(struct rope_work *work, const struct scaling *scaling) {
    for (int i = 0; i < work->rope->dims / 2; i++)
        work->frequencies[i] /= scaling->factor;
    return STATUS_OK;
}

/* The dimension whose wave turns `turns` times over the original context. */
static double turning_dimension(const struct rope_work *work, const struct scaling *scaling,
                                double turns) {
    return work->rope->dims * log(scaling->original_context / (turns * two_pi)) /
           (2 * log(work->base));
}

/* Fast waves stay, slow waves are stretched by the factor, a ramp lies between. */
static enum status scale_yarn(struct rope_work *work, const struct scaling *scaling) {
    double low = fmax(0, floor(turning_dimension(work, scaling, scaling->beta_fast)));
    double high =
        fmin(work->rope->dims - 1, ceil(turning_dimension(work, scaling, scaling->beta_slow)));
    for (int i = 0; i < work->rope->dims / 2; i++) {
        double ramp = (i - low) / fmax(0.001, high - low);
        double stretched = fmin(1, fmax(0, ramp));
        double frequency = work->frequencies[i];
        work->frequencies[i] =
            frequency / scaling->factor * stretched + frequency * (1 - stretched);
    }
    double growth = scaling->factor > 1 ? 0.1 * log(scaling->factor) : 0;
    work->rope->magnitude = scaling->gain * (1 + growth);
    return STATUS_OK;
}

static const struct {
    const char *name;
    enum status (*apply)(struct rope_work *work, const struct scaling *scaling);
} scalings[] = {
    {"none", scale_none},
    {"linear", scale_linear},
    {"yarn", scale_yarn},
};

/* The file's scaling method; without one it is linear, whose factor is 1 when that is not told
 * either. */
static enum status read_scaling_type(const struct rope_work *work, struct view *type,
                                     struct error *error) {
    char key[MODEL_NAME_BYTES];
    TRY(model_config_expand(work->source->scaling_type, "{arch}", work->build->architecture, key,
                            error));
    const struct gguf_value *value = gguf_find(work->build->model->gguf, key);
    *type = view_of("linear");
    if (value != NULL && !gguf_read_string(value, type))
        return error_set(error, STATUS_CORRUPT, "metadata '%s' must be a text", key);
    return STATUS_OK;
}

static enum status read_scaling(const struct rope_work *work, struct scaling *scaling,
                                struct error *error) {
    static const struct number_range factor = {"factor", 1e-6, 1e6, 0};
    static const struct number_range context = {"original_context", 1, 1e12, 0};
    static const struct number_range gain = {"gain", 1e-6, 1e6, 0};
    static const struct number_range beta = {"beta", 1e-6, 1e6, 0};
    const struct model_build *build = work->build;
    const struct description_rope *source = work->source;
    int line = source->line;
    TRY(model_config_number(build, &source->factor, &factor, line, &scaling->factor, error));
    TRY(model_config_number(build, &source->original_context, &context, line,
                            &scaling->original_context, error));
    TRY(model_config_number(build, &source->gain, &gain, line, &scaling->gain, error));
    TRY(model_config_number(build, &source->beta_fast, &beta, line, &scaling->beta_fast, error));
    return model_config_number(build, &source->beta_slow, &beta, line, &scaling->beta_slow, error);
}

static enum status apply_scaling(struct rope_work *work, struct error *error) {
    struct scaling scaling;
    struct view type;
    if (work->source->scaling_type == NULL)
        return STATUS_OK;
    TRY(read_scaling_type(work, &type, error));
    TRY(read_scaling(work, &scaling, error));
    for (size_t i = 0; i < sizeof scalings / sizeof *scalings; i++)
        if (view_is(type, scalings[i].name))
            return scalings[i].apply(work, &scaling);
    return error_set(error, STATUS_UNSUPPORTED,
                     "rope scaling '%.*s' is not supported (there are: none, linear, yarn)",
                     (int)(type.length > 64 ? 64 : type.length), type.bytes);
}

static enum status apply_divisors(struct rope_work *work, struct error *error) {
    const struct tensor *tensor = model_tensors_find(work->build, work->source->divisors, 0);
    int pairs = work->rope->dims / 2;
    if (tensor == NULL)
        return STATUS_OK;
    if (tensor->dims[0] != (uint64_t)pairs || tensor->row_count != 1)
        return error_set(error, STATUS_CORRUPT, "tensor '%s' must have %d values", tensor->name,
                         pairs);
    float *values = arena_calloc(work->build->scratch, (size_t)pairs, sizeof *values);
    if (values == NULL)
        return error_no_memory(error, "rope divisors");
    tensor_unpack_row(tensor, 0, values);
    for (int i = 0; i < pairs; i++) {
        if (!(values[i] >= 1e-6f && values[i] <= 1e6f))
            return error_set(error, STATUS_CORRUPT,
                             "tensor '%s': value %d must be from 1e-6 to 1e6, found %g",
                             tensor->name, i, (double)values[i]);
        work->frequencies[i] /= (double)values[i];
    }
    return STATUS_OK;
}

static enum status build_rope(struct rope_work *work, struct error *error) {
    struct number_range dims = {"dims", 2, work->build->model->head_dim, 2};
    static const struct number_range base = {"base", 1.0001, 1e15, 0};
    double dim_count;
    TRY(model_config_number(work->build, &work->source->dims, &dims, work->source->line, &dim_count,
                            error));
    TRY(model_config_number(work->build, &work->source->base, &base, work->source->line,
                            &work->base, error));
    work->rope->pairing = work->source->pairing;
    work->rope->dims = (int)dim_count;
    work->rope->magnitude = 1;
    work->frequencies = arena_calloc(&work->build->model->arena, (size_t)work->rope->dims / 2,
                                     sizeof *work->frequencies);
    if (work->frequencies == NULL)
        return error_no_memory(error, "rope tables");
    work->rope->frequencies = work->frequencies;
    for (int i = 0; i < work->rope->dims / 2; i++)
        work->frequencies[i] = pow(work->base, -2.0 * i / work->rope->dims);
    TRY(apply_scaling(work, error));
    return apply_divisors(work, error);
}

enum status model_rope_build(struct model_build *build, struct error *error) {
    const struct description *description = build->description;
    build->ropes = arena_calloc(&build->model->arena, (size_t)description->rope_count + 1,
                                sizeof *build->ropes);
    if (build->ropes == NULL)
        return error_no_memory(error, "rope tables");
    for (int i = 0; i < description->rope_count; i++) {
        struct rope_work work = {
            .build = build, .source = &description->ropes[i], .rope = &build->ropes[i]};
        if (build_rope(&work, error) != STATUS_OK)
            return error_context(error, "rope '%s'", description->ropes[i].name);
    }
    return STATUS_OK;
}
