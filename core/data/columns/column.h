/* column.h - the interface of feature columns: functions of the cells of one row.
 *
 * Each kind is a constant `column_<name>` in core/data/columns/<name>.c. Most kinds make an id of
 * each item of a cell: id() maps an item to an id, and columns.c does the rest (several items, too
 * many, none). Other kinds have make().
 */
#ifndef CORE_DATA_COLUMNS_COLUMN_H
#define CORE_DATA_COLUMNS_COLUMN_H

#include "core/base/fingerprint.h"
#include "core/data/columns/items.h"
#include "core/data/data.h"
#include "core/data/word_ids.h"

enum { IDS_OF_ROW_MAX = 4096, SEPARATOR_BYTES_MAX = 8 };
err separator_check(const char *separator);
enum truncation { TRUNCATE_NONE, TRUNCATE_FIRST, TRUNCATE_LAST };
extern const char *const truncations[]; /* ends with NULL */
static const int64_t BUCKETS_MAX = INT64_C(1) << 53;
static const int64_t NO_ID = -1; /* also in cells of ids, as in TensorFlow's columns */

/* A field for the number of ids; optional: 0 if left out */
#define IDS_FIELD(key, at, text)                                                                   \
    {                                                                                              \
        .name = key, .type = FIELD_INT, .offset = at, .fallback = "null", .min = 1, .max = 0x1p53, \
        .help = text "; null: any of 64 bits, for tables of \"capacity\": \"dynamic\""             \
    }

/* First member of the attributes of kinds that read one cell. */
struct column_source {
    const char *cell;      /* NULL: same name as the column */
    const char *separator; /* NULL: the whole cell is one item */
    int64_t max;           /* items */
    int truncate;          /* enum truncation: which items are kept if there are more */
};

struct column_kind;
struct column_spec;
bool column_reads_cell(const struct column_kind *);
/* The name of the cell that the column reads, if rows may lack it: it has a default, or `any` cell
 * may be missing; else NULL. */
const char *column_optional_cell(const struct column_spec *, bool any);
/* Whether rows may lack the cell: columns read it, and each has a default, or `any` cell may be
 * missing. */
bool columns_may_lack_cell(const struct objects *, const char *name, bool any);

/* Fields of the table of such a kind */
#define SOURCE_FIELDS(of_separator, of_max)                                                        \
    {.name = "source",                                                                             \
     .type = FIELD_STRING,                                                                         \
     .offset = offsetof(struct column_source, cell),                                               \
     .fallback = "null",                                                                           \
     .help = "the cell it reads; null: the cell of the same name"},                                \
        {.name = "separator",                                                                      \
         .type = FIELD_STRING,                                                                     \
         .offset = offsetof(struct column_source, separator),                                      \
         .fallback = of_separator,                                                                 \
         .help =                                                                                   \
             "separator between several values in one cell, of one or more characters; null: one " \
             "value per cell"},                                                                    \
        {.name = "truncate",                                                                       \
         .type = FIELD_ENUM,                                                                       \
         .offset = offsetof(struct column_source, truncate),                                       \
         .fallback = "\"none\"",                                                                   \
         .choices = truncations,                                                                   \
         .help = "which of more than max values are kept: the first, the last; none: more are an " \
                 "error"},                                                                         \
    {                                                                                              \
        .name = "max", .type = FIELD_INT, .offset = offsetof(struct column_source, max),           \
        .fallback = of_max, .min = 1, .max = IDS_OF_ROW_MAX,                                       \
        .help = "maximum number of values per row; shorter rows are padded with nothing"           \
    }

/* What a column lists in the spec or in a file: words, boundaries. */
struct column_content {
    int64_t count;
    uint64_t digest; /* of all, in order */
};

/* Fingerprints of the cells of the current row, shared by the columns that need them. */
struct prints {
    uint64_t row;     /* number of the current row, from 1 */
    uint64_t *row_of; /* [cells] the row that at[] is of; 0: none */
    uint64_t *at;     /* [cells] */
};

/* State of one column while a source is read. */
struct column_maker {
    const struct column_kind *kind;
    const char *name;
    const void *attributes;
    int cell;           /* index in the row; -1: it reads no cell itself */
    struct column made; /* set by open(): [rows] of ids or floats */
    void *state;        /* the kind's private data */
    struct prints *prints;
    int64_t stand_in;              /* the id for a row without ids; NO_ID: none */
    uint64_t inverse;              /* (2^64 - 1) / made.buckets, for column_bucket */
    struct column_content content; /* of kinds that list something */
    int64_t missing;   /* rows whose cell was empty or had a value replaced by the default */
    int64_t weighted;  /* values with a weight; for a label with a positive word: values that
                          were that word */
    bool awaits_word;  /* it is such a label */
    bool loses_weight; /* an id had a weight other than 1, which this column ignores */
    bool awaits_cell;  /* some row must have its cell, and none has so far */
    bool is_trained_on;
    int64_t *pixels_left; /* limit of images (core/data/images/image.h); NULL: none */
};

struct column_context {
    const struct format_context *format; /* to open files */
    const struct row_reader *reader;
    struct column_maker *makers; /* the columns before this one, already open */
    int count;                   /* of makers */
    struct arena *arena;         /* lives until the source has been read */
};

/* What of a column is used if it is a key of a cross */
enum crossing {
    CROSSES_IDS,
    CROSSES_WORDS,
    CROSSES_NAME, /* words of the cell that has the column's name, if there is one; else ids */
};

struct column_kind {
    struct object object;
    /* Checks the attributes and sets `made`. ERR_INPUT: the text lacks the column's name, which the
     * caller adds. */
    err (*open)(struct column_maker *, const struct column_context *);
    /* Returns the id of an item, and may set the item's weight; NO_ID: none. ERR_INPUT: what was
     * expected. */
    err (*id)(const struct column_maker *, struct item *, int64_t *ret);
    /* Counts and digests what the column lists; NULL: the kind lists nothing. */
    const char *content_name; /* "words" */
    err (*content)(const void *attributes, const struct format_context *,
                   struct column_content *ret);
    /* For kinds that list words: the words by id; ids of hash buckets follow them. */
    err (*words)(const void *attributes, const struct format_context *, struct arena *,
                 struct word_ids *ret);
    bool is_of_print; /* id() is column_bucket() of a word's fingerprint */
    bool is_of_id;    /* id() of an id is the id itself, if below made.buckets */
    /* If ids are the numbers in the cell: the field that limits them, which does not change any id.
     * Else NULL. */
    const char *limit_name;
    enum crossing crosses;
    /* If id is NULL: makes the column's values of one row; to: memory as `made` describes */
    err (*make)(struct column_maker *, const struct cell *cells, void *to);
    /* As id(), for a kind that has make() and may be a key of a cross; NULL: it may not. */
    err (*key)(const struct column_maker *, struct item *, int64_t *ret);
};
extern const struct kinds column_kinds; /* key "column" */

/* {"column": "hash", "name": "occupation", ...}: the common part */
struct column_spec {
    struct variant column;
    const char *name;
    /* Set if what it lists was known when the run began: a file that has changed since is refused.
     * Zeroed: unknown. */
    struct column_content content;
    int left_out; /* how many columns before it in the spec were left out, for messages */
};
extern const struct object column_spec_object;

/* For open(): the column has `max` ids below `buckets`; 0: below ANY_ID. */
void column_makes_ids(struct column_maker *, int64_t max, int64_t buckets);
/* hash % made.buckets, which is at least 1, by two multiplications, since a division takes longer
 * than the hash. The quotient is often too small by 1, so that is corrected without a branch. */
static inline int64_t column_bucket(const struct column_maker *m, uint64_t hash)
{
    const uint64_t buckets = (uint64_t)m->made.buckets;
    const uint64_t quotient = (uint64_t)((unsigned __int128)hash * m->inverse >> 64);
    const uint64_t rest = hash - quotient * buckets;
    return (int64_t)(rest - (buckets & -(uint64_t)(rest >= buckets)));
}
/* Fingerprint of a cell that is one word */
static inline uint64_t column_print(struct prints *p, const struct cell *cells, int cell)
{
    if (p->row_of[cell] != p->row) {
        p->row_of[cell] = p->row;
        p->at[cell] = fingerprint(cells[cell].text, cells[cell].length);
    }
    return p->at[cell];
}

/* cell: the first with that name. ERR_INPUT: it is the label, or another has the same name. */
err column_check_cell(const struct row_reader *, const char *name, int cell);
/* Rotates a ring of `count` values of at most 8 bytes so that index `first` becomes index 0. */
void column_turn(void *values, size_t bytes, int64_t count, int64_t first);
/* The items of the column's cell, for kinds that read one. */
struct items column_items(const struct column_maker *, const struct cell *cells);

/* Reads what the column lists, and sets spec->content. */
err column_note_content(struct column_spec *, const struct format_context *);

/* Returns ERR_INPUT: expected `expected`, got the item */
err item_refuse(const struct item *, const char *expected);
/* Returns ERR_INPUT: the item is not an id of the column */
err column_refuse_id(const struct column_maker *, const struct item *);

/* The columns of the spec for the reader's cells, or those that the reader makes itself; for one
 * thread. The reader is only needed during the call. */
struct columns;
err columns_new(const struct row_reader *, const struct format_context *, struct columns **ret);
void columns_free(struct columns *); /* may be NULL */
/* The columns, with `at` NULL: labels first. */
const struct column *columns_made(const struct columns *, int *ret_count);
/* Writes one row to index `at` of to[i], the memory of column i. ERR_INPUT names the place. */
err columns_make(struct columns *, const struct row_reader *, const struct row *, void *const *to,
                 int64_t at);

/* Limits the pixels of all images in the rows that follow, each pass over an image counted; for
 * untrusted rows. */
void columns_limit_pixels(struct columns *, int64_t pixels);

/* Whether, in the rows so far, a column with weights has seen no weight, a label no positive word,
 * or a column no cell though some row must have it. */
bool columns_await(const struct columns *);
/* ERR_INPUT: after all `rows` rows, a column has values but no weight, or no such word or cell was
 * seen. The reader may be of any of the files. */
err columns_check_awaited(const struct columns *, const char *name, const struct row_reader *,
                          int64_t rows);

/* Reads all rows into memory; closes the reader, also on failure. With has_other_parts there may be
 * no rows: then there are no columns, or their `at` is NULL. */
err columns_open(struct row_reader *, const struct format_context *, struct dataset *ret);

#endif
