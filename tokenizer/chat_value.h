/* Values a template computes with, and what Python says of them: truth, equality, order, type
 * names, and their text (str, repr). Values are immutable, except namespaces. */
#ifndef TOKENIZER_CHAT_VALUE_H
#define TOKENIZER_CHAT_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "tokenizer/chat_string.h"

enum chat_value_kind {
    CHAT_ABSENT, /* an argument that was not given; never seen by a template */
    CHAT_UNDEFINED,
    CHAT_NONE,
    CHAT_BOOL,
    CHAT_INTEGER,
    CHAT_FLOAT,
    CHAT_STRING,
    CHAT_LIST,
    CHAT_TUPLE,
    CHAT_ITERATOR, /* what a lazy filter gives: only good for iterating, and always true */
    CHAT_DICT,
    CHAT_NAMESPACE,
    CHAT_FUNCTION, /* a function of the environment */
    CHAT_METHOD,   /* a method with its receiver */
    CHAT_MACRO,
    CHAT_LOOP, /* `loop` inside a for */
};

enum { CHAT_VALUE_DEPTH_MAX = 64 }; /* lists in lists: the walkers below refuse more */

struct chat_list;
struct chat_dict;
struct chat_missing;
struct chat_bound;
struct chat_macro;
struct chat_function;
struct chat_loop;

struct chat_value {
    enum chat_value_kind kind;
    union {
        bool boolean;
        int64_t integer;
        double number;
        const struct chat_string *string;
        const struct chat_list *list;         /* lists, tuples, iterators */
        struct chat_dict *dict;               /* dicts and namespaces */
        const struct chat_missing *missing;   /* undefined */
        const struct chat_function *function; /* functions */
        const struct chat_bound *bound;       /* methods */
        const struct chat_macro *macro;
        const struct chat_loop *loop;
    } as;
};

struct chat_list {
    size_t count;
    struct chat_value *items;
};

struct chat_entry {
    struct chat_value key; /* a string, number, bool, none or tuple */
    struct chat_value value;
};

struct chat_dict { /* insertion order */
    size_t count, capacity;
    struct chat_entry *entries;
};

struct chat_loop {
    const struct chat_list *items;
    size_t index; /* from 0 */
};

/* What an undefined value would have been: a variable, or `name` of an object of type `owner`. */
struct chat_missing {
    const char *owner; /* NULL: a variable */
    struct view name;
};

static inline struct chat_value chat_value_none(void) {
    return (struct chat_value){.kind = CHAT_NONE};
}
static inline struct chat_value chat_value_bool(bool boolean) {
    return (struct chat_value){.kind = CHAT_BOOL, .as.boolean = boolean};
}
static inline struct chat_value chat_value_integer(int64_t integer) {
    return (struct chat_value){.kind = CHAT_INTEGER, .as.integer = integer};
}
static inline struct chat_value chat_value_float(double number) {
    return (struct chat_value){.kind = CHAT_FLOAT, .as.number = number};
}
static inline struct chat_value chat_value_string(const struct chat_string *string) {
    return (struct chat_value){.kind = CHAT_STRING, .as.string = string};
}

/* NULL when the arena is full. */
struct chat_list *chat_value_new_list(struct arena *arena, size_t count);
struct chat_dict *chat_value_new_dict(struct arena *arena, size_t capacity);
/* Replaces the value of an equal key. */
bool chat_value_dict_set(struct arena *arena, struct chat_dict *dict, struct chat_value key,
                         struct chat_value value);
/* The value of a key, or NULL. Keys that are strings must be flat. */
const struct chat_value *chat_value_dict_get(const struct chat_dict *dict, struct chat_value key);
const struct chat_value *chat_value_dict_find(const struct chat_dict *dict, struct view key);

bool chat_value_is_number(struct chat_value value);                    /* bool, integer or float */
double chat_value_to_double(struct chat_value value);                  /* of a number */
bool chat_value_to_integer(struct chat_value value, int64_t *integer); /* of a bool or integer */
bool chat_value_is_sequence(struct chat_value value);                  /* list or tuple */
bool chat_value_hashable(struct chat_value value);                     /* may be a dict's key */
bool chat_value_truth(struct chat_value value);
const char *chat_value_type_name(struct chat_value value); /* "str", "list", "Undefined"… */

/* Equality and order as Python has them; values nested too deeply are unequal and not comparable.
 * Strings must be flat, at the top and inside: the evaluator makes them so before they enter a list
 * or a dict. `order`: -1, 0, 1. */
bool chat_value_equal(struct chat_value a, struct chat_value b);
bool chat_value_compare(struct chat_value a, struct chat_value b, int *order);

#endif
