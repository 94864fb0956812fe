/* tables.h - tables that the tests of fields use: a small spec with every type of field. */
#ifndef TESTS_CORE_BASE_TABLES_H
#define TESTS_CORE_BASE_TABLES_H

#include "core/base/fields/fields.h"

enum color { RED, GREEN, BLUE };

struct point { /* an object within an object */
    int64_t x, y;
};

struct adam {
    double learning_rate, epsilon;
};

struct step_size { /* the only kind with a required field */
    double value;
};

struct layer { /* the common part of a variant */
    struct variant kind;
    const char *name;
    struct strings inputs;
};

struct everything {
    bool flag;
    int64_t units;
    double rate;
    const char *text;
    int color;
    struct ints sizes;
    struct floats weights;
    struct strings words;
    struct point origin;
    struct objects points; /* of struct point */
    struct variant optimizer;
    struct layer layer;
    struct objects layers; /* of struct layer */
    json_t *json;
};

extern const struct object point_object, everything_object;
extern const struct kinds optimizer_table, layer_table;

/* Parses text by the table; JSON and arena are the caller's to free. */
struct parsed {
    err result;
    struct arena arena;
    json_t *json;
    struct everything value;
};
void parsed_init(struct parsed *, const char *text);
void parsed_fini(struct parsed *);

/* The message with which the table refuses the text. */
void assert_refused(const char *text, const char *message);

#endif
