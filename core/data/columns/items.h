/* items.h - the values of a cell, one by one. */
#ifndef CORE_DATA_COLUMNS_ITEMS_H
#define CORE_DATA_COLUMNS_ITEMS_H

#include "core/data/cells.h"

enum { ITEM_TEXT_MAX = 32 };

/* A word, trimmed, with no NUL behind; or an id or a number as the format has them. */
struct item {
    const char *text; /* NULL: none */
    size_t length;
    bool is_id;   /* else, of an item without text, a number */
    bool is_pair; /* an id that came with a number: the two together are not one number */
    int64_t id;
    double number;
    float weight;               /* of an id; 1 where nobody says */
    bool has_weight;            /* somebody says */
    const struct cell *written; /* the id and its number as they stand in the file; NULL: so */
    bool is_replaced;           /* by a default: it is none of what the column takes */
};

/* What is between blanks, which count for nothing at either end */
struct item item_trimmed(const char *from, const char *to);

struct items {
    const struct cell *cell;
    const char *separator; /* NULL: the cell is one item */
    size_t at;
    int64_t index;
};

/* The cell as it stands is its only item. */
static inline bool cell_is_word(const struct cell *cell, const char *separator)
{
    return cell->text && cell->length > 0 && !separator;
}

/* Empty ones are passed over. False: there are no more. */
bool items_next(struct items *, struct item *ret);

/* A finite number; a whole one, exact however it is written ("12.0", "1e3"), or the id. False: it
 * is none. */
bool item_number(const struct item *, double *ret);
bool item_integer(const struct item *, int64_t *ret);
/* The same as an id of 64 bits, to 2^64 - 1 (id_of_64_bits) */
bool item_any_id(const struct item *, int64_t *ret);

/* As it is written; an id, or a float that the format has as such, in the fewest digits that are no
 * other one: in buffer, or where it lies. */
const char *item_text(const struct item *, char buffer[ITEM_TEXT_MAX], size_t *ret_length);
uint64_t item_fingerprint(const struct item *);

#endif
