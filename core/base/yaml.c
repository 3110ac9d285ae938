/* libyaml's events made into a tree, by recursion with a stated depth. What YAML allows beyond
 * plain data (anchors, aliases, tags, several documents) is refused, with its line. */
#include "core/base/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "core/base/text.h"

enum { YAML_DEPTH_MAX = 64 };

struct reader {
    yaml_parser_t parser;
    struct view input;
    struct arena *arena;
    struct error *error;
};

/* A growing list of nodes in the arena: outgrown blocks stay there until the arena ends. */
struct node_list {
    struct yaml_node **nodes;
    size_t count;
    size_t capacity;
};

static enum status read_node(struct reader *reader, const yaml_event_t *event, int depth,
                             struct yaml_node **node);

static int line_of(const yaml_event_t *event) {
    return (int)event->start_mark.line + 1;
}

static enum status refuse(const struct reader *reader, int line, const char *what) {
    return error_set(reader->error, STATUS_BAD_INPUT, "line %d: %s", line, what);
}

/* Wrong bytes are reported by offset only. */
static int line_at(const struct reader *reader, size_t offset) {
    int line = 1;
    for (size_t i = 0; i < offset && i < reader->input.length; i++)
        line += reader->input.bytes[i] == '\n';
    return line;
}

static enum status refuse_syntax(const struct reader *reader) {
    const yaml_parser_t *parser = &reader->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        return error_no_memory(reader->error, "YAML");
    const char *problem = parser->problem ? parser->problem : "invalid YAML";
    if (parser->error == YAML_READER_ERROR)
        return refuse(reader, line_at(reader, parser->problem_offset), problem);
    return refuse(reader, (int)parser->problem_mark.line + 1, problem);
}

/* The next event; the caller deletes it. */
static enum status next_event(struct reader *reader, yaml_event_t *event) {
    return yaml_parser_parse(&reader->parser, event) ? STATUS_OK : refuse_syntax(reader);
}

static enum status list_append(struct reader *reader, struct node_list *list,
                               struct yaml_node *node) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 8;
        struct yaml_node **nodes =
            arena_calloc(reader->arena, capacity, sizeof(struct yaml_node *));
        if (!nodes)
            return error_no_memory(reader->error, "YAML");
        if (list->count > 0)
            memcpy(nodes, list->nodes, list->count * sizeof(struct yaml_node *));
        list->nodes = nodes;
        list->capacity = capacity;
    }
    list->nodes[list->count++] = node;
    return STATUS_OK;
}

/* Reads the node that comes next. `*ended` is set, and no node given, at the end of the collection.
 */
static enum status read_next(struct reader *reader, int depth, struct yaml_node **node,
                             bool *ended) {
    yaml_event_t event;
    TRY(next_event(reader, &event));
    *ended = event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
    enum status status = STATUS_OK;
    if (!*ended)
        status = read_node(reader, &event, depth, node);
    yaml_event_delete(&event);
    return status;
}

static enum status read_sequence(struct reader *reader, int depth, struct yaml_node *node) {
    struct node_list items = {0};
    for (;;) {
        struct yaml_node *item = NULL;
        bool ended;
        TRY(read_next(reader, depth, &item, &ended));
        if (ended)
            break;
        TRY(list_append(reader, &items, item));
    }
    node->values = items.nodes;
    node->count = items.count;
    return STATUS_OK;
}

static enum status check_key(struct reader *reader, const struct node_list *keys,
                             const struct yaml_node *key) {
    if (key->kind != YAML_SCALAR)
        return refuse(reader, key->line, "a key must be plain text");
    if (strlen(key->scalar) != key->scalar_length)
        return refuse(reader, key->line, "a key must not hold NUL");
    for (size_t i = 0; i < keys->count; i++) {
        if (strcmp(keys->nodes[i]->scalar, key->scalar) == 0)
            return error_set(reader->error, STATUS_BAD_INPUT,
                             "line %d: duplicate key '%s' (first on line %d)", key->line,
                             key->scalar, keys->nodes[i]->line);
    }
    return STATUS_OK;
}

static enum status read_mapping(struct reader *reader, int depth, struct yaml_node *node) {
    struct node_list keys = {0};
    struct node_list values = {0};
    for (;;) {
        struct yaml_node *key = NULL;
        struct yaml_node *value = NULL;
        bool ended;
        TRY(read_next(reader, depth, &key, &ended));
        if (ended)
            break;
        TRY(check_key(reader, &keys, key));
        TRY(read_next(reader, depth, &value, &ended));
        TRY(list_append(reader, &keys, key));
        TRY(list_append(reader, &values, value));
    }
    node->keys = keys.nodes;
    node->values = values.nodes;
    node->count = keys.count;
    return STATUS_OK;
}

static enum status read_scalar(struct reader *reader, const yaml_event_t *event,
                               struct yaml_node *node) {
    const char *tag = (const char *)event->data.scalar.tag;
    bool is_text = tag && (strcmp(tag, YAML_STR_TAG) == 0 || strcmp(tag, "!") == 0);
    if (tag && !is_text)
        return refuse(reader, node->line, "tags are not supported");
    node->quoted = is_text || event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    node->scalar_length = event->data.scalar.length;
    node->scalar = arena_copy_text(reader->arena, (const char *)event->data.scalar.value,
                                   event->data.scalar.length);
    return node->scalar ? STATUS_OK : error_no_memory(reader->error, "YAML");
}

static enum status read_collection(struct reader *reader, const yaml_event_t *event, int depth,
                                   struct yaml_node *node) {
    bool sequence = event->type == YAML_SEQUENCE_START_EVENT;
    const yaml_char_t *tag =
        sequence ? event->data.sequence_start.tag : event->data.mapping_start.tag;
    const yaml_char_t *anchor =
        sequence ? event->data.sequence_start.anchor : event->data.mapping_start.anchor;
    if (anchor)
        return refuse(reader, node->line, "anchors are not supported");
    if (tag)
        return refuse(reader, node->line, "tags are not supported");
    if (depth == YAML_DEPTH_MAX)
        return error_set(reader->error, STATUS_BAD_INPUT, "line %d: nested deeper than %d levels",
                         node->line, YAML_DEPTH_MAX);
    node->kind = sequence ? YAML_SEQUENCE : YAML_MAPPING;
    return sequence ? read_sequence(reader, depth + 1, node)
                    : read_mapping(reader, depth + 1, node);
}

static enum status read_node(struct reader *reader, const yaml_event_t *event, int depth,
                             struct yaml_node **result) {
    struct yaml_node *node = arena_calloc(reader->arena, 1, sizeof *node);
    if (!node)
        return error_no_memory(reader->error, "YAML");
    node->line = line_of(event);
    *result = node;
    if (event->type == YAML_ALIAS_EVENT)
        return refuse(reader, node->line, "aliases are not supported");
    if (event->type != YAML_SCALAR_EVENT)
        return read_collection(reader, event, depth, node);
    if (event->data.scalar.anchor)
        return refuse(reader, node->line, "anchors are not supported");
    return read_scalar(reader, event, node);
}

/* Stream start, document start, one node, document end, stream end. */
static enum status read_document(struct reader *reader, struct yaml_node **root) {
    for (;;) {
        yaml_event_t event;
        TRY(next_event(reader, &event));
        yaml_event_type_t type = event.type;
        int line = line_of(&event);
        enum status status = STATUS_OK;
        if (type == YAML_DOCUMENT_START_EVENT && *root)
            status = refuse(reader, line, "only one document is allowed");
        else if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
                 type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT)
            status = read_node(reader, &event, 0, root);
        yaml_event_delete(&event);
        TRY(status);
        if (type == YAML_STREAM_END_EVENT)
            return *root ? STATUS_OK : refuse(reader, 1, "no content");
    }
}

enum status yaml_parse(const char *bytes, size_t length, struct arena *arena,
                       struct yaml_node **root, struct error *error) {
    *root = NULL;
    struct reader reader = {.input = {bytes, length}, .arena = arena, .error = error};
    if (!yaml_parser_initialize(&reader.parser))
        return error_no_memory(error, "YAML");
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)(bytes ? bytes : ""),
                                 length);
    enum status status = read_document(&reader, root);
    yaml_parser_delete(&reader.parser);
    if (status != STATUS_OK)
        *root = NULL;
    return status;
}

struct yaml_node *yaml_find(const struct yaml_node *mapping, const char *key) {
    if (mapping->kind != YAML_MAPPING)
        return NULL;
    for (size_t i = 0; i < mapping->count; i++) {
        if (strcmp(mapping->keys[i]->scalar, key) == 0)
            return mapping->values[i];
    }
    return NULL;
}

/* Whether the scalar is plain, not empty, and made of the given characters only. */
static bool is_plain_of(const struct yaml_node *node, const char *characters) {
    return node->kind == YAML_SCALAR && !node->quoted && node->scalar_length > 0 &&
           strspn(node->scalar, characters) == node->scalar_length;
}

bool yaml_to_int64(const struct yaml_node *node, long long *value) {
    if (!is_plain_of(node, "+-0123456789"))
        return false;
    char *end;
    errno = 0;
    long long parsed = strtoll(node->scalar, &end, 10);
    if (errno != 0 || end == node->scalar || *end != '\0')
        return false;
    *value = parsed;
    return true;
}

bool yaml_to_double(const struct yaml_node *node, double *value) {
    if (!is_plain_of(node, "+-.0123456789eE"))
        return false;
    char *end;
    double parsed = strtod(node->scalar, &end);
    if (end == node->scalar || *end != '\0' || !isfinite(parsed))
        return false;
    *value = parsed;
    return true;
}

bool yaml_to_bool(const struct yaml_node *node, bool *value) {
    static const struct {
        const char *name;
        bool value;
    } names[] = {{"true", true}, {"false", false}, {"yes", true},
                 {"no", false},  {"on", true},     {"off", false}};
    if (node->kind != YAML_SCALAR || node->quoted)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(node->scalar, names[i].name) == 0) {
            *value = names[i].value;
            return true;
        }
    }
    return false;
}
