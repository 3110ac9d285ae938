/* What is shared between the steps that turn a description and a file into a model: read the config
 * (model_config.c), find the tensors (model_tensors.c), make rope tables (model_rope.c), compile
 * the ops (model_compile.c). Lives only during model_open; what must stay is copied into the
 * model's arena. */
#ifndef CORE_MODEL_MODEL_BUILD_H
#define CORE_MODEL_MODEL_BUILD_H

#include "core/model/description.h"
#include "core/model/model.h"

enum { MODEL_LAYERS_MAX = 4096, MODEL_NAME_BYTES = 256 };

struct model_build {
    const struct description *description;
    struct model *model;
    const char *architecture; /* the file's general.architecture */
    struct arena *scratch;    /* freed when the model is open */
    double *values;           /* [config_count] */
    const struct tensor *
        *tensors;       /* [slot_count][layer_count]; global slots fill entry 0; NULL: absent */
    struct rope *ropes; /* [rope_count], in the model's arena */
};

/* Fills values and the model's dimensions; every number is checked for range, so that no product of
 * dimensions can overflow later. */
enum status model_config_read(struct model_build *build, struct error *error);

/* Fills tensors, parameter_count and weight_bytes. Missing, misshapen and unknown tensors are
 * refused. */
enum status model_tensors_bind(struct model_build *build, struct error *error);

enum status model_rope_build(struct model_build *build, struct error *error);

/* Fills ops, linear_count and kv_groups. */
enum status model_compile_ops(struct model_build *build, struct error *error);

/* ---- shared helpers ---- */

/* The tensor of a slot for a layer (any layer for global slots), or NULL. */
const struct tensor *model_tensors_find(const struct model_build *build, int slot, int layer);

/* Replace `placeholder` in `pattern` by `text`; too long a result is an error. */
enum status model_config_expand(const char *pattern, const char *placeholder, const char *text,
                                char buffer[MODEL_NAME_BYTES], struct error *error);

struct number_range {
    const char *name;
    double min, max;
    int multiple; /* whole multiples only; 0: any number */
};
enum status model_config_check(const struct number_range *range, double value, struct error *error);

/* Evaluate with a range; the error names the line of the description. */
enum status model_config_number(const struct model_build *build,
                                const struct expression *expression,
                                const struct number_range *range, int line, double *value,
                                struct error *error);

#endif
