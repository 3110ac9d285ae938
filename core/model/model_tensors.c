/* Fills a description's tensor slots from a file and accounts for every tensor in it: what the
 * description asks for must be there in the right shape, and what is there must be asked for,
 * because a tensor that nobody reads means that the description is not this model's. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/model_build.h"

static const struct number_range shape_range = {"shape", 1, (double)(1LL << 40), 1};

const struct tensor *model_tensors_find(const struct model_build *build, int slot, int layer) {
    if (slot < 0)
        return NULL;
    size_t row = (size_t)slot * (size_t)build->model->layer_count;
    return build->tensors[row + (build->description->slots[slot].per_layer ? (size_t)layer : 0)];
}

/* "[576, 1536]": rows first, as descriptions write it. */
static void write_shape(char *buffer, size_t bytes, const uint64_t *dims, uint32_t count) {
    int used = snprintf(buffer, bytes, "[");
    for (uint32_t i = count; i-- > 0 && (size_t)used < bytes;)
        used += snprintf(buffer + used, bytes - (size_t)used, "%" PRIu64 "%s", dims[i],
                         i == 0 ? "]" : ", ");
}

/* The slot's shape in a file's order: row length first. */
static enum status expected_dims(const struct model_build *build,
                                 const struct description_slot *slot, uint64_t dims[2],
                                 struct error *error) {
    double value;
    dims[1] = 1;
    for (int i = 0; i < slot->dim_count; i++) {
        TRY(model_config_number(build, &slot->shape[i], &shape_range, slot->line, &value, error));
        dims[slot->dim_count - 1 - i] = (uint64_t)value;
    }
    return STATUS_OK;
}

static enum status check_shape(const struct description_slot *slot, const struct tensor *tensor,
                               const uint64_t dims[2], struct error *error) {
    char expected[96], found[96];
    if (tensor->dims[0] == dims[0] && tensor->dims[1] == dims[1] && tensor->row_count == dims[1])
        return STATUS_OK;
    write_shape(expected, sizeof expected, dims, (uint32_t)slot->dim_count);
    write_shape(found, sizeof found, tensor->dims, tensor->dim_count);
    return error_set(error, STATUS_CORRUPT,
                     "tensor '%s' (slot '%s'): shape %s was expected, found %s", tensor->name,
                     slot->name, expected, found);
}

static enum status missing_tensor(const struct model_build *build,
                                  const struct description_slot *slot, const char *name,
                                  const uint64_t dims[2], struct error *error) {
    char expected[96];
    write_shape(expected, sizeof expected, dims, (uint32_t)slot->dim_count);
    return error_set(
        error, STATUS_CORRUPT,
        "tensor '%s' is missing: description '%s' expects it (slot '%s') with shape %s", name,
        build->description->family, slot->name, expected);
}

static enum status bind_one(const struct model_build *build, int index, int layer,
                            struct error *error) {
    const struct description_slot *slot = &build->description->slots[index];
    char name[MODEL_NAME_BYTES], number[16];
    uint64_t dims[2] = {0};
    snprintf(number, sizeof number, "%d", layer);
    TRY(model_config_expand(slot->pattern, "{i}", number, name, error));
    const struct tensor *tensor = gguf_find_tensor(build->model->gguf, name);
    bool wanted = !slot->optional && slot->tied_to < 0;
    if (tensor != NULL || wanted)
        TRY(expected_dims(build, slot, dims, error));
    if (tensor != NULL)
        TRY(check_shape(slot, tensor, dims, error));
    else if (wanted)
        return missing_tensor(build, slot, name, dims, error);
    else if (slot->tied_to >= 0)
        tensor = model_tensors_find(build, slot->tied_to, 0);
    size_t row = (size_t)index * (size_t)build->model->layer_count;
    build->tensors[row + (size_t)layer] = tensor;
    return STATUS_OK;
}

static enum status bind_slots(const struct model_build *build, struct error *error) {
    for (int slot = 0; slot < build->description->slot_count; slot++) {
        int count = build->description->slots[slot].per_layer ? build->model->layer_count : 1;
        for (int layer = 0; layer < count; layer++)
            TRY(bind_one(build, slot, layer, error));
    }
    return STATUS_OK;
}

/* A pattern with {i} fits the numbers 0 to layers - 1, written without leading zeros. */
static bool pattern_fits(const char *pattern, const char *name, int layers) {
    const char *placeholder = strstr(pattern, "{i}");
    if (placeholder == NULL)
        return strcmp(pattern, name) == 0;
    size_t prefix = (size_t)(placeholder - pattern);
    if (strncmp(pattern, name, prefix) != 0 || name[prefix] < '0' || name[prefix] > '9')
        return false;
    char *end;
    long layer = strtol(name + prefix, &end, 10);
    bool plain = name[prefix] != '0' || end == name + prefix + 1;
    return plain && layer < layers && strcmp(end, placeholder + 3) == 0;
}

static bool is_ignored(const struct model_build *build, const char *name) {
    for (size_t i = 0; i < build->description->ignored_count; i++)
        if (pattern_fits(build->description->ignored[i], name, build->model->layer_count))
            return true;
    return false;
}

static int compare_pointers(const void *a, const void *b) {
    uintptr_t left = (uintptr_t) * (const struct tensor *const *)a;
    uintptr_t right = (uintptr_t) * (const struct tensor *const *)b;
    return (left > right) - (left < right);
}

/* Counts each bound tensor once; any other tensor of the file must be on the ignored list. */
static enum status account(const struct model_build *build, struct error *error) {
    size_t cells = (size_t)build->description->slot_count * (size_t)build->model->layer_count;
    const struct tensor **bound = arena_calloc(build->scratch, cells + 1, sizeof *bound);
    if (bound == NULL)
        return error_no_memory(error, "the model's tensors");
    memcpy(bound, build->tensors, cells * sizeof *bound);
    qsort(bound, cells, sizeof *bound, compare_pointers);
    for (size_t i = 0; i < gguf_tensor_count(build->model->gguf); i++) {
        const struct tensor *tensor = gguf_tensor_at(build->model->gguf, i);
        if (bsearch(&tensor, bound, cells, sizeof *bound, compare_pointers) != NULL) {
            build->model->parameter_count += (int64_t)(tensor->dims[0] * tensor->row_count);
            build->model->weight_bytes += tensor->byte_count;
        } else if (!is_ignored(build, tensor->name)) {
            return error_set(error, STATUS_CORRUPT,
                             "tensor '%s' is in the file, but description '%s' has no slot for it",
                             tensor->name, build->description->family);
        }
    }
    return STATUS_OK;
}

enum status model_tensors_bind(struct model_build *build, struct error *error) {
    size_t cells = (size_t)build->description->slot_count * (size_t)build->model->layer_count;
    build->tensors = arena_calloc(build->scratch, cells + 1, sizeof *build->tensors);
    if (build->tensors == NULL)
        return error_no_memory(error, "the model's tensors");
    TRY(bind_slots(build, error));
    return account(build, error);
}
