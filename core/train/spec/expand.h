/* expand.h - shared by the two files that expand a spec's short forms; private to them. */
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
    int *uses;         /* number of uses so far, in the whole spec */
};

/* Replaces "$name" by its definition, in place, throughout an object or a list. */
err definitions_use(struct definitions *, json_t *value, const struct spec_place *);

/* Each item of a list with a range ("C{1..26}") becomes one item per number. */
err spread_list(json_t *list, const struct spec_place *);

/* A block that the program provides: its nodes as JSON, in which input_0 and input_last stand for
 * the first and the last input; or, if the nodes depend on parameters, make() writes them (a new
 * reference; NULL: out of memory). */
struct shipped {
    struct object object;
    int inputs_min, inputs_max;
    const char *nodes; /* NULL: make() does */
    json_t *(*make)(const json_t *said);
};
const struct kind *shipped_at(int); /* NULL: no more */
const struct shipped *shipped_find(const char *name);

/* Expands nodes that stand for several (mlp, repeat, blocks), and patterns in "inputs". ret_places:
 * for each node, where in the spec it was written (new reference); NULL: nothing was expanded. */
err nodes_expand(json_t *spec, const struct definitions *, json_t *blocks, json_t **ret_places);

#endif
