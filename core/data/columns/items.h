/* items.h - the values of a cell, one by one. */
#ifndef CORE_DATA_COLUMNS_ITEMS_H
#define CORE_DATA_COLUMNS_ITEMS_H

#include "core/data/cells.h"

enum { ITEM_TEXT_MAX = 32 };

/* A word, trimmed, not NUL-terminated; or an id or a number as the format stores it. */
struct item {
    const char *text; /* NULL: an id or a number */
    size_t length;
    bool is_id;   /* false without text: a number */
    bool is_pair; /* an id with a number: so not a single number */
    int64_t id;
    double number;
    float weight;               /* of an id; 1 if none is given */
    bool has_weight;            /* a weight is given */
    const struct cell *written; /* the id and its number as written in the file; NULL: in the
                                   usual form */
    bool is_replaced;           /* by the column's default, because the column does not take the
                                   value */
};

/* The text between `from` and `to` without blanks at its ends */
struct item item_trimmed(const char *from, const char *to);

struct items {
    const struct cell *cell;
    const char *separator; /* NULL: the cell is one item */
    size_t at;
    int64_t index;
};

/* Whether the whole text of the cell is its only item. */
static inline bool cell_is_word(const struct cell *cell, const char *separator)
{
    return cell->text && cell->length > 0 && !separator;
}

/* Skips empty items. False: no more. */
bool items_next(struct items *, struct item *ret);

/* item_number: a finite number; item_integer: a whole number, exact in any notation ("12.0",
 * "1e3"), or the id. False: it is not one. */
bool item_number(const struct item *, double *ret);
bool item_integer(const struct item *, int64_t *ret);
/* Likewise an id of 64 bits, up to 2^64 - 1 (id_of_64_bits) */
bool item_any_id(const struct item *, int64_t *ret);

/* The item as text, in buffer or in place; an id or a float that the format stores in binary is
 * written in the fewest digits that identify it. */
const char *item_text(const struct item *, char buffer[ITEM_TEXT_MAX], size_t *ret_length);
uint64_t item_fingerprint(const struct item *);

#endif
