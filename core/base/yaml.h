/* YAML documents as a tree of borrowed text, over libyaml. Only what job files and model
 * descriptions need: scalars, sequences, mappings; anchors and aliases are refused, duplicate keys
 * are errors. */
#ifndef CORE_BASE_YAML_H
#define CORE_BASE_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/arena.h"
#include "core/base/error.h"

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_node {
    enum yaml_kind kind;
    int line;           /* 1-based, of the node's first character */
    bool quoted;        /* scalar: written in quotes, or as a block scalar: always a string */
    const char *scalar; /* scalar: NUL-terminated */
    size_t scalar_length;
    size_t count;              /* sequence: items; mapping: pairs */
    struct yaml_node **keys;   /* mapping: scalar keys, in file order */
    struct yaml_node **values; /* mapping: values; sequence: items */
};

/* Parse one document. Nodes live in `arena`. Errors name the line. At most 64 levels deep. */
enum status yaml_parse(const char *bytes, size_t length, struct arena *arena,
                       struct yaml_node **root, struct error *error);

/* The value of `key`, or NULL. */
struct yaml_node *yaml_find(const struct yaml_node *mapping, const char *key);

/* Typed reads of a scalar node: false when it is not exactly such a value. */
bool yaml_to_int64(const struct yaml_node *node, long long *value);
bool yaml_to_double(const struct yaml_node *node, double *value);
bool yaml_to_bool(const struct yaml_node *node, bool *value); /* true, false, yes, no, on, off */

#endif
