/* fields.h - tables of fields: one table parses, checks and documents one kind of object.
 *
 * An object of the spec, the attributes of an op, an optimizer, a data format and the command line
 * are each described by a table of fields: name, type, where it goes in a struct, default as a
 * person would write it, range, help. From it come the JSON reader, the flag reader, `dtrain help`
 * and the JSON Schema, so none of them can disagree.
 *
 * What a field stores at its offset:
 * - BOOL: bool; INT: int64_t; FLOAT: double; ENUM: int (index into choices)
 * - SECONDS: uint64_t of milliseconds, the nearest; written and bounded in seconds
 * - STRING: const char * (NULL when absent and fallback "null")
 * - INTS: struct ints; FLOATS: struct floats; STRINGS, FILES: struct strings
 * - OBJECT: the object's struct, in place; OBJECTS: struct objects of it
 * - VARIANT: struct variant, in place, or where there is a common object that object's struct,
 * which begins with the struct variant; VARIANTS: struct objects of the same
 * - JSON: a borrowed json_t *, not converted (required, or NULL by fallback "null")
 *
 * With fallback "null" a JSON null is the same as an absent key, and leaves zeros (of a VARIANT
 * with a common object: kind NULL and the defaults of the common fields).
 *
 * A VARIANT is an object whose key member ("op", "type") names one of several kinds, each with
 * fields of its own: {"type": "adam", "learning_rate": 0.001}. A bare string "adam" means the kind
 * with all its defaults; a bare number is allowed where the kinds name a shorthand
 * ({"learning_rate": 0.5}).
 *
 * Errors carry the path and say what was expected and the nearest known name:
 *     model[3].units: expected an integer from 1 to 16777216, got "ten"
 *     model[3]: unknown key "unit" (did you mean "units"?); dense knows activation,
 *         bias_initializer, ...
 */
#ifndef CORE_BASE_FIELDS_FIELDS_H
#define CORE_BASE_FIELDS_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/text.h"

struct ints {
    int64_t *at;
    int count;
};
struct floats {
    double *at;
    int count;
};
struct strings {
    const char **at;
    int count;
};
struct objects {
    void *at;
    int count;
}; /* count structs of object->size bytes */

static inline bool strings_have(const struct strings *list, const char *text)
{
    return text_find(list->at, list->count, text) >= 0;
}

enum field_type {
    FIELD_BOOL,
    FIELD_INT,
    FIELD_FLOAT,
    FIELD_SECONDS,
    FIELD_STRING,
    FIELD_ENUM,
    FIELD_INTS, /* a list, or one integer that stands for a list of one */
    FIELD_FLOATS,
    FIELD_STRINGS,
    FIELD_FILES, /* at least one; a string stands for a list of one */
    FIELD_OBJECT,
    FIELD_OBJECTS,
    FIELD_VARIANT,
    FIELD_VARIANTS,
    FIELD_JSON,
};

struct field {
    const char *name; /* NULL ends a table */
    enum field_type type;
    size_t offset;
    /* default as JSON text ("0.1", "true", "null", "[]"; text that is not JSON is a string: adam);
     * NULL: required */
    const char *fallback;
    /* INT, FLOAT, SECONDS, and each member of INTS, FLOATS; both 0: any; max < min: no upper limit
     */
    double min, max;
    const char *zero;           /* flags, INT: a word for 0, such as "auto"; NULL: none */
    int count_min, count_max;   /* lists; both 0: any length up to FIELD_LIST_MAX */
    const char *const *choices; /* ENUM: names, ends with NULL */
    /* OBJECT, OBJECTS; VARIANT(S): fields common to all kinds, or NULL */
    const struct object *object;
    const struct kinds *kinds; /* VARIANT, VARIANTS */
    bool may_differ;           /* tasks of one job need not agree on it */
    const char *group;         /* the group of members of which one is given; NULL: none */
    bool group_is_required; /* exactly one of the group must be given: in the schema, not checked by
                               the parser */
    unsigned takers;        /* flags: which commands take it: bits of the table's owner; 0: all */
    const char *environment; /* flags: environment variable, read if the flag is absent */
    /* flags: variables, ends with NULL: `environment` is read only if one of these, or its flag, is
     * given; NULL: always */
    const char *const *environment_beside;
    /* flags: a shortcut for --set KEY=VALUE with this key, "train.last_step": the assignment is
     * added to "set", a FIELD_STRINGS of the same table. letter: as in "-o DIR"; 0: none */
    const char *stands_for;
    char letter;
    const char *help; /* one sentence, no full stop; flags: NULL: not in the help */
};

struct object {
    const char *name;           /* "data", "dense": used in messages and help */
    const char *summary;        /* one sentence */
    const struct field *fields; /* ends with name == NULL; may be NULL for none */
    size_t size;                /* of the struct that it fills */
};

/* One kind of a variant: descriptor is what the program works with (a struct op, a struct
 * optimizer). */
struct kind {
    const struct object *object; /* its name is the kind's name */
    const void *descriptor;
};

/* A name that people look for among the kinds, and where it is instead. */
struct elsewhere {
    const char *name; /* NULL ends a list */
    const char *words;
};

struct kinds {
    const char *key;                     /* "op", "type" */
    const char *noun;                    /* for messages: "op", "optimizer" */
    const struct kind *(*at)(int index); /* NULL past the end */
    const char *number_kind,
        *number_field; /* a bare number n means {key: number_kind, number_field: n} */
    const struct elsewhere *elsewhere; /* may be NULL */
    /* For the schema: an object that may be given instead of a kind (NULL: none), and whether the
     * document itself may define more kinds. */
    const struct object *beside;
    bool has_more;
};

struct variant {
    const struct kind *kind; /* NULL when absent (fallback "null") */
    void *attributes;        /* the kind's own struct */
};

enum { FIELD_LIST_MAX = 65536, FIELD_DEPTH_MAX = 32 };

/* Fills *ret (object->size bytes, uninitialized) from json. path is put before messages ("" at the
 * top). Strings and lists are allocated in the arena; json must outlive JSON fields. */
err fields_parse(const struct object *, json_t *json, const char *path, struct arena *, void *ret);

/* The inverse, for an object whose fields are BOOL, INT, FLOAT, ENUM, STRING, STRINGS, FLOATS and
 * JSON: parsing the result gives the same bits. New reference; NULL: no memory. */
json_t *fields_write(const struct object *, const void *from);

/* NULL: no field has that name. */
const struct field *object_field(const struct object *, const char *name);
/* The stored value of the field of that name, which must exist. */
void *fields_at(const struct object *, const void *of, const char *name);
/* The stored value of the field of that name and type; NULL: there is no such field. */
void *fields_find(const struct object *, const void *of, const char *name, enum field_type);
/* The value of the STRING field of that name, which must exist. */
const char *fields_string(const struct object *, const void *of, const char *name);

/* As if {} had been parsed; every field must have a default. */
err fields_defaults(const struct object *, struct arena *, void *ret);

/* Changes one value of a JSON tree: "train.last_step=200", "model[0].units=20". The value is JSON
 * if it parses as such, else a string. Members are made where absent; the parser then checks them.
 * Other members of its group are removed, unless the value is null or 0. object: the table of root,
 * for the groups. */
err fields_override(const struct object *, json_t *root, const char *assignment);

/* Deletes the may_differ fields from json, an object of this table; elements of lists are not
 * changed. */
void fields_keep_shared(const struct object *, json_t *json);

/* --name=value and --name value from argv[1..]; BOOL fields also as bare --name. A FIELD_STRINGS
 * flag may repeat. Arguments that do not begin with -- go to ret_rest (at most rest_max, then
 * ERR_INPUT). Absent flags take their environment variable if it is set and not empty. `--` ends
 * the flags. */
err flags_parse(const struct object *, int argc, char **argv, struct arena *, void *ret,
                const char **ret_rest, int rest_max, int *ret_rest_count);
bool flags_given(const struct object *, int argc, char **argv, const char *name);
bool flags_has(const struct object *, const char *word); /* "--seed", "--seed=1": one of them? */
/* Is the next word the value of this one ("--seed")? Not behind a boolean, nor an unknown flag. */
bool flags_take_value(const struct object *, const char *word);

/* ERR_INPUT, for a value that is kept as JSON: "FIELD: expected EXPECTED, got WHAT IT IS" */
err fields_fail_expected(const char *field, const char *expected, const json_t *got);

/* Documentation from the same tables. */
void fields_help(FILE *, const struct object *, int indent); /* a table of fields */
void flags_help(FILE *, const struct object *);
json_t *fields_json(const struct object *); /* [{"name", "type", "text"}]; new reference */
/* A stream that makes a document as JSON, of text and of tables that flags_help prints to it:
 * [{"text": ...}, {"flags": [...]}]. One at a time; NULL: no memory. Closing returns a new
 * reference; NULL: no memory. */
FILE *help_document_open(void);
json_t *help_document_close(void);
void kinds_help(FILE *, const struct kinds *);                         /* a line per kind */
const struct kind *kinds_find(const struct kinds *, const char *name); /* NULL if none */
json_t *fields_schema(const struct object *); /* JSON Schema (2020-12); new reference */

/* The known name nearest to a word by edit distance (transpositions count one), or NULL if none is
 * near. The module of a TensorFlow name, as in "tf.train.AdamOptimizer", is ignored. */
const char *nearest_name(const char *given, const char *const *names, int count);
/* For the end of a message: ` (did you mean "NAME"?)` with the nearest known name, or "". */
struct suggestion {
    char text[200];
};
struct suggestion suggest(const char *given, const char *const *names, int count);
/* For names in a file: as above, or `; it has a, b, ...` if none is near. */
struct suggestion suggest_or_list(const char *given, const char *const *names, int count);
/* What other frameworks mean by this word, such as "max_to_keep"; NULL: not known. */
const char *name_of_others(const char *word);

/* A row of a table of fields, which fills this member: FIELD_OF("units", INT, struct attributes,
 * units, .min = 1, .help = "..."). */
#define FIELD_OF(key, kind, in, member, ...)                                                       \
    {                                                                                              \
        .name = key, .type = FIELD_##kind, .offset = offsetof(in, member), __VA_ARGS__             \
    }

#endif
