/* data.h - examples as they are stored: formats, and what the spec says of them.
 *
 * A format opens what the spec names as a dataset: its rows in memory, in columns as they are
 * stored. How they become batches is source.h.
 */
#ifndef CORE_DATA_DATA_H
#define CORE_DATA_DATA_H

#include "core/base/arena.h"
#include "core/base/fields/fields.h"
#include "core/data/bad_rows.h"
#include "core/data/cells.h"
#include "core/graph/batch.h"
#include "core/graph/graph.h"

/* Where a dataset has its labels; the others follow, most often one that is called "features". */
enum { LABELS, FEATURES };
struct dataset {
    int64_t rows;
    /* As stored: labels INT32 or FLOAT32, and nowhere (at NULL) where it was opened without;
     * others UINT8, FLOAT32 or INT64. */
    struct column *columns; /* [column_count]; they live as long as the dataset */
    int column_count;
    int64_t first_row;        /* for messages: rows of the source that were skipped */
    const char *name;         /* for messages: the files, or the generator */
    const char *label_name;   /* the files of the labels */
    struct left_out left_out; /* of the whole source, before rows were skipped */
    struct data_parts *parts; /* where it is made of several files (parts.h); else NULL */
    const char *use;          /* which parts of the file are what; "" or NULL: it says so itself */
    struct strings feature_names; /* of the numbers of "features", in their order; none: no file
                                     names them. They live as long as the dataset */
    int64_t lanes;     /* row r continues where row r - lanes ends; 0: rows are each for itself */
    uint64_t meanings; /* a digest of what its ids stand for; 0: nobody says */
    void *owned;       /* the format's own */
    void (*close)(struct dataset *);
};

/* feature = scale * number + offset */
struct feature_scaling {
    double scale, offset;
};

/* Who is told which columns a source has, once they are known and before it reads its rows, and
 * refuses them; or none is, where only the rows tell. */
struct columns_wanted {
    err (*check)(struct columns_wanted *, const struct column *columns, int count);
    bool is_told; /* or needs not be any more */
    err refused;  /* and the source is not opened */
    char why[ERROR_TEXT_MAX];
};

struct label_seen;
enum { MISSING_WORDS_MAX = 64 };
enum { FILES_OF_PART_MAX = 2 };
struct format_context {
    const char *directory; /* relative paths are relative to it */
    bool only_here;        /* patterns behind URLs stay as they are: no server is asked */
    /* Of the fields of type FILES, in turn, one each: a format reads one part at a time. NULL:
     * labels that are not looked at. */
    const char *files[FILES_OF_PART_MAX];
    const char *only_file;     /* of those that the source means; NULL: all */
    bool has_other_parts;      /* what this one has none of may be in them, rows among it */
    struct label_seen *labels; /* of all of them (formats/label.h), which are read one behind the
                                  other; NULL: of none */
    /* Where rows name their cells: those of the files before; none: this is the first. */
    struct strings cell_names;
    /* Where the numbers of "features" have names in the file, they are found by these, in this
     * order: those of the checkpoint, of data.train, of the files before. None: as the file has
     * them. */
    struct strings feature_names;
    /* Columns that are made of the cells later, and may have a cell that no row has where they have
     * a default; NULL: `columns` */
    const struct objects *later_columns;
    struct feature_scaling
        scaling;               /* of features that a format scales as it reads them; zeros: none */
    bool takes_other_features; /* a file without these names is read in its own order */
    struct bad_rows *bad_rows; /* NULL: none may be */
    struct columns_wanted *wanted; /* NULL: nobody is told; lives as long as the source */
    uint64_t seed;
    bool wants_all_cells; /* to train: of each column some row has the cell, default or not */
    bool without_labels;  /* for predictions: labels need not be there and are not looked at */
    const struct objects
        *columns; /* of struct column_spec; NULL or none: what a format has itself */
    const char
        *index_folder; /* where streams keep what they found, if it is there; NULL: nowhere */
};

/* What each id stands for, and what is between two of them in a text */
struct meanings {
    struct strings words;
    const char *between;
};

/* A data format: one constant per file in core/data/formats/, listed in core/data/meson.build.
 * The first field of type FILES names the files of features, or of all; none: it is a generator. */
struct format {
    struct object object;
    /* NULL: read_stored() is; where both are, only columns can be made of it */
    err (*open)(const void *attributes, const struct format_context *, struct dataset *ret);
    /* NULL: its rows have no cells that columns could be made of */
    err (*read)(const void *attributes, const struct format_context *, struct row_reader **ret);
    /* The same row by row: a reader that has `stored`. NULL: open() is, or is a generator */
    err (*read_stored)(const void *attributes, const struct format_context *,
                       struct row_reader **ret);
    /* What the ids of "features" stand for, in their order; NULL: it does not say */
    err (*meanings)(const void *attributes, const struct format_context *, struct arena *,
                    struct meanings *ret);
    bool scales; /* numbers of text: data.scale and data.offset count before they are rounded */
    size_t label_form; /* offset of the attributes' struct label_form (label.h); 0: none */
};
extern const struct kinds format_kinds; /* key "format" */
bool format_context_has_columns(const struct format_context *);
/* ERR_INPUT: they are not wanted. */
err format_context_tell(const struct format_context *, const struct column *columns, int count);
/* Minus 0 is the offset that changes no number, minus 0 included. */
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
    int64_t skip, take; /* rows; take 0: all that are left */
    double bad_rows;    /* that may be left out: how many, or below 1 which share (bad_rows.h) */

    /* of rows that are not all in memory: stream/stream.h */
    int stream; /* enum streaming */
    int64_t memory_mb, shuffle_rows, readers;

    /* of files that come while they are read: follow/followed.h */
    bool follow;
    double settle_secs, silent_secs; /* silent_secs 0: for ever */
    const char *end_marker;
};
enum streaming { STREAM_LARGE, STREAM_ALWAYS, STREAM_NEVER };
extern const struct object source_spec_object;

struct data_spec {
    struct source_spec train, eval; /* eval.format.kind NULL: none */
    struct objects columns;         /* of struct column_spec (columns/column.h) */
    int64_t batch_size;             /* per worker */
    int64_t eval_batch_size; /* 0: a size that suits (batch_size, at least 100, at most rows) */
    const char *weight;      /* the column of what an example counts; NULL: 1 */
    bool shuffle;
    double scale, offset; /* feature = scale * stored + offset; 1 and 0: as stored */
    int64_t prefetch;     /* batches kept ready, 1 to PREFETCH_MAX */
    const char *origin;   /* NULL: not said */
};
extern const struct object data_spec_object;

/* How many rows are left where a source has this many: ERR_INPUT where skip and take ask for more.
 */
err source_narrow(const struct source_spec *, const char *name, int64_t rows, int64_t *ret);

/* What ids stand for in its files, which lie in that directory. ERR_INPUT: it does not say. */
err source_meanings(const struct source_spec *, const char *directory, struct arena *,
                    struct meanings *ret);

/* skip/take applied. Of a file all features are finite, else ERR_INPUT names the row. */
err dataset_open(const struct source_spec *, const struct format_context *, struct dataset *ret);
void dataset_close(struct dataset *); /* a zeroed one is fine */

/* What becomes of the columns, as the graph reads them */
struct transform {
    double scale, offset; /* of all but labels and ids */
    struct wanted_label { /* of each loss; of losses that read the same one the first converts it */
        int column;
        enum dtype dtype; /* what the loss wants; labels are converted */
        struct shape shape;
        enum label_rule rule;
        int64_t classes;  /* LABELS_CLASSES: labels are below */
        bool may_be_none; /* and a negative one is none */
        const char *loss; /* for messages */
    } labels[HEADS_MAX];
    int label_count;
    bool without_labels;            /* they are not there, and are zeros */
    const char *weights[HEADS_MAX]; /* of each loss the column of weights; NULL: none */
};
/* One pass over all labels; of their shapes [] and [1] are the same. ERR_INPUT names the file, the
 * row (from 1, of all that the file has), the label, and what the loss takes; or a weight below 0.
 */
err transform_check(const struct transform *, const struct dataset *);

#endif
