/* expand.h - what the two files share that expand a spec's short forms; for these alone. */
#ifndef CORE_TRAIN_SPEC_EXPAND_H
#define CORE_TRAIN_SPEC_EXPAND_H

#include "core/train/spec/spec.h"

enum { PLACE_TEXT_MAX = 256 };

/* Where a value is in the spec, for messages: "model[2].units" */
struct spec_place {
    char text[PLACE_TEXT_MAX];
};
struct spec_place spec_place_member(const struct spec_place *of, const char *key);
struct spec_place spec_place_item(const struct spec_place *of, size_t index);

struct definitions {
    const json_t *all; /* an object; NULL: none */
    int *uses;         /* so far, of the whole spec */
};

/* Within an object or a list, in place: "$name" becomes the value that is defined for it. */
err definitions_use(struct definitions *, json_t *value, const struct spec_place *);

/* Each item of a list with a range ("C{1..26}") becomes one item per number. */
err spread_list(json_t *list, const struct spec_place *);

/* A block that comes with the program: its nodes as JSON, in which input_0 and input_last are the
 * first and the last input of a use of it; or, if their number depends on parameters, make() writes
 * them (a new reference; NULL: no memory). */
struct shipped {
    struct object object;
    int inputs_min, inputs_max;
    const char *nodes; /* NULL: make() does */
    json_t *(*make)(const json_t *said);
};
const struct kind *shipped_at(int); /* NULL: no more */
const struct shipped *shipped_find(const char *name);

/* Expands the nodes that stand for others (mlp, repeat, blocks), and patterns in "inputs".
 * ret_places: for each node, a text that says where in the spec it came from (new reference); NULL:
 * every node is where it is written. */
err nodes_expand(json_t *spec, const struct definitions *, json_t *blocks, json_t **ret_places);

#endif
