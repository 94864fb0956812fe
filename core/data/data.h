/* data.h - examples as they are stored: formats, and the data section of the spec.
 *
 * A format opens the files that the spec names as a dataset: rows in memory, in columns as stored.
 * source.h makes batches of them.
 */
#ifndef CORE_DATA_DATA_H
#define CORE_DATA_DATA_H

#include "core/base/arena.h"
#include "core/base/fields/fields.h"
#include "core/data/bad_rows.h"
#include "core/data/cells.h"
#include "core/graph/batch.h"
#include "core/graph/graph.h"

/* Index of the labels among a dataset's columns; the others follow, most often just "features". */
enum { LABELS, FEATURES };
struct dataset {
    int64_t rows;
    /* As stored: labels INT32 or FLOAT32, with `at` NULL if it was opened without labels; others
     * UINT8, FLOAT32 or INT64. */
    struct column *columns; /* [column_count]; live as long as the dataset */
    int column_count;
    int64_t first_row;        /* for messages: how many rows of the source were skipped */
    const char *name;         /* for messages: the files or the generator */
    const char *label_name;   /* for messages: the files of the labels */
    struct left_out left_out; /* broken rows of the whole source, including those before `skip` */
    struct data_parts *parts; /* owned; its files if there are several (parts.h); else NULL */
    const char *use;          /* for messages: which parts of the file are labels, features; ""
                                 or NULL: nothing to say */
    struct strings feature_names; /* of the elements of "features", in order; none: no file names
                                     them. They live as long as the dataset */
    int64_t lanes;     /* row r continues the sequence of row r - lanes; 0: rows are independent */
    uint64_t meanings; /* a digest of what its ids stand for; 0: unknown */
    void *owned;       /* the format's private data */
    void (*close)(struct dataset *);
};

/* feature = scale * number + offset */
struct feature_scaling {
    double scale, offset;
};

/* A check that is called with the columns of a source once they are known and before its rows are
 * read, and may refuse them. Not called if only the rows determine the columns. */
struct columns_wanted {
    err (*check)(struct columns_wanted *, const struct column *columns, int count);
    bool is_told; /* check() was called, or is no longer needed */
    err refused;  /* result of check(); if not OK, the source is not opened */
    char why[ERROR_TEXT_MAX];
};

struct label_seen;
enum { MISSING_WORDS_MAX = 64 };
enum { FILES_OF_PART_MAX = 2 };
struct format_context {
    const char *directory; /* base of relative paths */
    bool only_here;        /* patterns in URLs are not expanded: no server is contacted */
    /* One file of each field of type FILES, in order: a format reads one part at a time. NULL: the
     * labels are not read. */
    const char *files[FILES_OF_PART_MAX];
    const char *only_file;     /* read this one instead of all files of the source; NULL: all */
    bool has_other_parts;      /* other files of the source may have what this one lacks, even
                                  all rows */
    struct label_seen *labels; /* labels of all files (formats/label.h), if they are read one
                                  after the other; else NULL */
    /* For rows that name their cells: the names from the files before; none: this is the first
     * file. */
    struct strings cell_names;
    /* If the file names the elements of "features", they are selected by these names, in this
     * order: names from the checkpoint, data.train, or the files before. None: the file's own
     * order. */
    struct strings feature_names;
    /* Columns that the caller makes of the cells later; the cell of one with a default may be
     * missing in all rows. NULL: `columns` */
    const struct objects *later_columns;
    struct feature_scaling
        scaling;               /* of features that a format scales as it reads them; zeros: none */
    bool takes_other_features; /* a file without feature_names is accepted, in its own order */
    struct bad_rows *bad_rows; /* counts broken rows; NULL: none are allowed */
    struct columns_wanted *wanted; /* NULL: no check; lives as long as the source */
    uint64_t seed;
    bool wants_all_cells; /* for training: each column's cell must occur in some row, even if it
                             has a default */
    bool without_labels;  /* for predictions: labels may be missing and are not read */
    const struct objects
        *columns; /* of struct column_spec; NULL or empty: the format's own columns */
    const char
        *index_folder; /* where streams keep row indexes, if that folder exists; NULL: none */
};

/* What each id stands for, and the text between two of them */
struct meanings {
    struct strings words;
    const char *between;
};

/* A data format: one constant per file in core/data/formats/, listed in core/data/meson.build.
 * The first field of type FILES names the files of features, or of all; none: it is a generator. */
struct format {
    struct object object;
    /* NULL: read_stored() is used; if that is NULL, too, it needs data.columns */
    err (*open)(const void *attributes, const struct format_context *, struct dataset *ret);
    /* Reads rows of cells; NULL: data.columns cannot be used */
    err (*read)(const void *attributes, const struct format_context *, struct row_reader **ret);
    /* As open(), but row by row: a reader that has `stored`. NULL: open(), or only data.columns,
     * works */
    err (*read_stored)(const void *attributes, const struct format_context *,
                       struct row_reader **ret);
    /* What the ids of "features" stand for, by id; NULL: unknown */
    err (*meanings)(const void *attributes, const struct format_context *, struct arena *,
                    struct meanings *ret);
    bool scales;       /* it reads numbers as text, and applies data.scale and data.offset before
                          rounding to float */
    size_t label_form; /* offset of the attributes' struct label_form (label.h); 0: none */
};
extern const struct kinds format_kinds; /* key "format" */
bool format_context_has_columns(const struct format_context *);
/* Calls context->wanted->check() the first time. ERR_INPUT: it refuses the columns. */
err format_context_tell(const struct format_context *, const struct column *columns, int count);
/* The default offset is -0.0: adding it changes no number, not even -0.0. */
static inline struct feature_scaling feature_scaling_of(const struct format_context *context)
{
    const struct feature_scaling *given = &context->scaling;
    return (struct feature_scaling){.scale =
                                        given->scale == 0 && given->offset == 0 ? 1 : given->scale,
                                    .offset = given->offset == 0 ? -0.0 : given->offset};
}

/* {"format": "idx", ..., "skip": 5000, "take": 55000}: the common part of a source */
struct source_spec {
    struct variant format;
    int64_t skip, take; /* rows; take 0: all the rest */
    double bad_rows;    /* how many may be left out, or if below 1 what share (bad_rows.h) */

    /* if rows are not all kept in memory: stream/stream.h */
    int stream; /* enum streaming */
    int64_t memory_mb, shuffle_rows, readers;

    /* if files arrive while training runs: follow/followed.h */
    bool follow;
    double settle_secs, silent_secs; /* silent_secs 0: no limit */
    const char *end_marker;
};
enum streaming { STREAM_LARGE, STREAM_ALWAYS, STREAM_NEVER };
extern const struct object source_spec_object;

struct data_spec {
    struct source_spec train, eval; /* eval.format.kind NULL: none */
    struct objects columns;         /* of struct column_spec (columns/column.h) */
    int64_t batch_size;             /* per worker */
    int64_t eval_batch_size; /* 0: chosen automatically (batch_size, at least 100, at most rows) */
    const char *weight;      /* the column with weights of examples; NULL: all weigh 1 */
    bool shuffle;
    double scale, offset; /* feature = scale * stored + offset; 1 and 0: unchanged */
    int64_t prefetch;     /* batches kept ready, 1 to PREFETCH_MAX */
    const char *origin;   /* where to download the files, for messages; NULL: unknown */
};
extern const struct object data_spec_object;

/* How many of `rows` rows skip and take select. ERR_INPUT: they ask for more than there are. */
err source_narrow(const struct source_spec *, const char *name, int64_t rows, int64_t *ret);

/* What ids stand for in its files; directory: base of relative paths. ERR_INPUT: its format does
 * not say. */
err source_meanings(const struct source_spec *, const char *directory, struct arena *,
                    struct meanings *ret);

/* skip and take are applied. ERR_INPUT also if a file has a NaN or infinite feature; names the row.
 */
err dataset_open(const struct source_spec *, const struct format_context *, struct dataset *ret);
void dataset_close(struct dataset *); /* may be zeroed */

/* How stored columns are converted for the graph */
struct transform {
    double scale, offset; /* applied to all but labels and ids */
    struct wanted_label { /* one per loss; if several losses read the same label, the first one's
                             settings convert it */
        int column;
        enum dtype dtype; /* what the loss wants; labels are converted */
        struct shape shape;
        enum label_rule rule;
        int64_t classes;  /* LABELS_CLASSES: labels must be below this */
        bool may_be_none; /* a negative label means no label */
        const char *loss; /* for messages */
    } labels[HEADS_MAX];
    int label_count;
    bool without_labels;            /* labels are missing, and zeros are used */
    const char *weights[HEADS_MAX]; /* per loss, the column of weights; NULL: none */
};
/* Checks all labels; shapes [] and [1] are equivalent. ERR_INPUT: a label that the loss does not
 * take (names the file, the row counted from 1 in the file, the label, and what the loss takes); or
 * a weight below 0. */
err transform_check(const struct transform *, const struct dataset *);

#endif
