/* column.h - what a column of the spec is: a function of the cells of one row.
 *
 * A kind is described once, in core/data/columns/<name>.c, by a constant `column_<name>`. Most
 * kinds make ids, one of each item of a cell: they say which id an item has, and what is around it
 * (several items, too many of them, none) is done for all of them in columns.c. Who makes anything
 * else has make().
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

/* A field that says how many ids there are, which may be left out: 0 then */
#define IDS_FIELD(key, at, text)                                                                   \
    {                                                                                              \
        .name = key, .type = FIELD_INT, .offset = at, .fallback = "null", .min = 1, .max = 0x1p53, \
        .help = text "; null: any of 64 bits, for tables of \"capacity\": \"dynamic\""             \
    }

/* The first member of the attributes of a kind that reads one cell. */
struct column_source {
    const char *cell;      /* NULL: called as the column is */
    const char *separator; /* NULL: the whole cell is one item */
    int64_t max;           /* items */
    int truncate;          /* enum truncation: what becomes of more */
};

struct column_kind;
struct column_spec;
bool column_reads_cell(const struct column_kind *);
/* The cell that a column is made of, where it has a default for rows without it, or any may lack
 * it; else NULL. */
const char *column_optional_cell(const struct column_spec *, bool any);
/* Whether rows may lack the cell: columns read it, and each has a default, or any may lack it. */
bool columns_may_lack_cell(const struct objects *, const char *name, bool any);

/* Rows of the field table of such a kind */
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

/* What a column has listed, in the spec or in a file: words, boundaries. */
struct column_content {
    int64_t count;
    uint64_t digest; /* of all, in their order */
};

/* Fingerprints of cells, for all columns that are made of them; of the row at hand. */
struct prints {
    uint64_t row;     /* counted from 1 */
    uint64_t *row_of; /* [cells] of which it is; 0: of none */
    uint64_t *at;     /* [cells] */
};

/* A column while the source is read. */
struct column_maker {
    const struct column_kind *kind;
    const char *name;
    const void *attributes;
    int cell;           /* of the row; -1: it reads none by itself */
    struct column made; /* described by open(): [rows] of ids or floats */
    void *state;        /* the kind's own */
    struct prints *prints;
    int64_t stand_in;              /* the id of a row without any; NO_ID: none */
    uint64_t inverse;              /* of made.buckets: column_bucket */
    struct column_content content; /* of kinds that have it */
    int64_t missing;   /* rows in which its cell was empty, or a default replaced what it has */
    int64_t weighted;  /* values that had a weight; of a label with a positive word, that were it */
    bool awaits_word;  /* such a label */
    bool loses_weight; /* an id of a row had a weight other than 1, and it takes none */
    bool awaits_cell;  /* no row so far has its cell, and one of them must */
    bool is_trained_on;
    int64_t *pixels_left; /* of images (core/data/images/image.h); NULL: any number */
};

struct column_context {
    const struct format_context *format; /* for files */
    const struct row_reader *reader;
    struct column_maker *makers; /* those before this one are open */
    int count;                   /* of these */
    struct arena *arena;         /* as long as the source is read */
};

/* What of a column is crossed where it is a key */
enum crossing {
    CROSSES_IDS,
    CROSSES_WORDS,
    CROSSES_NAME, /* its words where it is called as a cell is, which then is the key; else ids */
};

struct column_kind {
    struct object object;
    /* Checks the attributes and describes what is made. ERR_INPUT: without the column's name. */
    err (*open)(struct column_maker *, const struct column_context *);
    /* The id of an item, whose weight it may set; NO_ID: none. ERR_INPUT: what was expected. */
    err (*id)(const struct column_maker *, struct item *, int64_t *ret);
    /* What it has listed; NULL: a kind lists nothing. */
    const char *content_name; /* "words" */
    err (*content)(const void *attributes, const struct format_context *,
                   struct column_content *ret);
    /* Of a kind that lists words: these, by id; those of its hash are behind them. */
    err (*words)(const void *attributes, const struct format_context *, struct arena *,
                 struct word_ids *ret);
    bool is_of_print; /* id() is column_bucket() of a word's fingerprint */
    bool is_of_id;    /* id() of an id is the id itself, where it is below made.buckets */
    /* Ids are the numbers that stand there: a limit on them changes none. The limit's field. */
    const char *limit_name;
    enum crossing crosses;
    /* Or, where id is NULL, all of the row; to: as made says */
    err (*make)(struct column_maker *, const struct cell *cells, void *to);
    /* The same as id(), of one that makes its row by itself and may be a key of a cross; NULL:
     * none.
     */
    err (*key)(const struct column_maker *, struct item *, int64_t *ret);
};
extern const struct kinds column_kinds; /* key "column" */

/* {"column": "hash", "name": "occupation", ...}: the common part */
struct column_spec {
    struct variant column;
    const char *name;
    /* Set where what it has listed is known before: a file that has changed since is refused.
     * Zeroed: not known. */
    struct column_content content;
    int left_out; /* of those that stand before it in the spec, for messages */
};
extern const struct object column_spec_object;

/* For open(): `max` ids below `buckets`; 0: below ANY_ID. */
void column_makes_ids(struct column_maker *, int64_t max, int64_t buckets);
/* hash % made.buckets, of which there is at least one, by two multiplications: a division takes
 * longer than the hash. The quotient is too small by at most 1, as often as not: no branch. */
static inline int64_t column_bucket(const struct column_maker *m, uint64_t hash)
{
    const uint64_t buckets = (uint64_t)m->made.buckets;
    const uint64_t quotient = (uint64_t)((unsigned __int128)hash * m->inverse >> 64);
    const uint64_t rest = hash - quotient * buckets;
    return (int64_t)(rest - (buckets & -(uint64_t)(rest >= buckets)));
}
/* Of a cell that is one word */
static inline uint64_t column_print(struct prints *p, const struct cell *cells, int cell)
{
    if (p->row_of[cell] != p->row) {
        p->row_of[cell] = p->row;
        p->at[cell] = fingerprint(cells[cell].text, cells[cell].length);
    }
    return p->at[cell];
}

/* ERR_INPUT where the cell of that name, the first, is the label, or not the only one. */
err column_check_cell(const struct row_reader *, const char *name, int cell);
/* Values of a row that were written round and round, of at most 8 bytes each: the first comes
 * first. */
void column_turn(void *values, size_t bytes, int64_t count, int64_t first);
/* The items of the column's cell, of a kind that reads one. */
struct items column_items(const struct column_maker *, const struct cell *cells);

/* Reads what the column has listed, and notes it in the spec. */
err column_note_content(struct column_spec *, const struct format_context *);

/* ERR_INPUT: "expected EXPECTED, got "what is there"" */
err item_refuse(const struct item *, const char *expected);
/* What is no id of the column */
err column_refuse_id(const struct column_maker *, const struct item *);

/* The columns of the spec, of rows with these cells, or those that the reader makes by itself; for
 * one thread. Of the reader only what it says of them is wanted, and until then. */
struct columns;
err columns_new(const struct row_reader *, const struct format_context *, struct columns **ret);
void columns_free(struct columns *); /* NULL is fine */
/* What is made, at NULL: labels, then the others. */
const struct column *columns_made(const struct columns *, int *ret_count);
/* One row, as row number `at` of memory for as many columns as are made. ERR_INPUT names the place.
 */
err columns_make(struct columns *, const struct row_reader *, const struct row *, void *const *to,
                 int64_t at);

/* The next rows are somebody's whose images may have this many pixels, each pass over them counted.
 */
void columns_limit_pixels(struct columns *, int64_t pixels);

/* Of the rows so far: whether a column that has weights has seen none, a label no positive word, or
 * one that some row must have no cell. */
bool columns_await(const struct columns *);
/* ERR_INPUT: among all rows, which are this many, there are values and no weight, or no such word
 * or cell. The reader: of any of the files. */
err columns_check_awaited(const struct columns *, const char *name, const struct row_reader *,
                          int64_t rows);

/* Reads all rows into memory; takes the reader, also on failure. Where there may be other parts,
 * perhaps none: then without columns, or with columns at NULL. */
err columns_open(struct row_reader *, const struct format_context *, struct dataset *ret);

#endif
