/* fields_inside.h - shared by the files of this folder only. */
#ifndef CORE_BASE_FIELDS_FIELDS_INSIDE_H
#define CORE_BASE_FIELDS_FIELDS_INSIDE_H

#include "core/base/fields/fields.h"

enum { KINDS_MAX = 512, NAMES_MAX = 512 };

/* The path to a JSON value: a linked list in the callers' stack frames, made text only for
 * messages. */
struct place {
    const struct place *up;
    const char *name; /* the member's name; NULL: an element of a list */
    int index;
    int depth;
};

struct place place_member(const struct place *up, const char *name);
struct place place_element(const struct place *up, int index);

/* One value to parse, its field and its path. */
struct field_input {
    struct arena *arena;
    const struct field *field;
    json_t *json;
    const struct place *place;
};

/* Write the value to *ret, which is zeroed and large enough for the field's type. */
err field_parse(const struct field_input *, void *ret);
err field_parse_object(const struct field_input *, void *ret);
err field_parse_variant(const struct field_input *, void *ret);
err fail_expected(const struct field_input *); /* expected ..., got ... */

/* The value that stands for an absent one. New reference; NULL where the field is required. */
json_t *field_fallback(const struct field *);
bool field_is_null_by_default(const struct field *);

/* JSON if the text parses as such, else a string of its bytes. New reference. */
json_t *json_from_text(const char *text);

int fields_count(const struct object *); /* 0 for NULL */
/* NULL if there is none of that name. */
const struct field *object_field_n(const struct object *, const char *name, size_t length);
bool object_needs_nothing(const struct object *); /* no required field */
int kinds_names(const struct kinds *, const char *names[KINDS_MAX]);

/* The bounds of a field, by the rules in fields.h. */
bool field_has_min(const struct field *);
bool field_has_max(const struct field *);
int field_count_max(const struct field *);
int field_choices_count(const struct field *);

/* A text of limited length, built piece by piece; the end that does not fit is cut. */
struct text {
    char at[ERROR_TEXT_MAX];
    size_t length;
};
void text_add(struct text *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_quoted(struct text *, const char *bytes);    /* "abc...", control bytes as \x1b */
void text_add_bounds(struct text *, const struct field *); /* from 1 to 10, at least 0 */
void text_add_names(struct text *, const char *const *names, int count); /* a, b, c, ... */
void text_add_near(struct text *, const char *word, const char *const *names, int count);
void text_add_place(struct text *, const struct place *); /* model[3].units */
void text_add_expected(struct text *, const struct field *);
void text_add_found(struct text *, const json_t *);
json_type text_in_quotes(const char *string); /* "0.1": JSON_REAL; not JSON: JSON_STRING */
err fail_at(const struct place *, const struct text *message); /* ERR_INPUT, place: message */

#endif
