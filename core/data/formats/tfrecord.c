/* tfrecord: TensorFlow's records of tf.Example (core/data/formats/example.h). Plain or packed. */
#include <stdlib.h>

#include "core/data/formats/example.h"
#include "core/data/formats/frames.h"

struct tfrecord {
    struct row_reader reader; /* first: the public part */
    const struct named_attributes *attributes;
    struct frames frames;
    struct named_cells cells;
    bool without_labels, takes_cut;
};

/* ---- rows ---- */

static err next_example(struct tfrecord *t, bool *ret_found)
{
    struct view record;
    TRY(frames_next(&t->frames, &record, ret_found, &t->reader.is_row_broken));
    if (!*ret_found) return OK;
    const err e = example_read(&t->cells, record);
    return e == ERR_INPUT ? frames_fail(&t->frames, e) : e;
}

static err next_row(struct row_reader *reader, struct row *ret, bool *ret_found)
{
    struct tfrecord *t = (struct tfrecord *)reader;
    TRY(next_example(t, ret_found));
    if (!*ret_found)
        return label_check_seen(&t->attributes->label_form, &t->cells.seen, t->reader.name);
    *ret = (struct row){.cells = t->cells.cells, .number = t->frames.number};
    const err e = named_cells_label(&t->cells, t->attributes, t->without_labels, &ret->label);
    return e ? frames_fail(&t->frames, e) : OK;
}

static err skip_row(struct row_reader *reader, struct row_place *ret, bool *ret_found)
{
    struct tfrecord *t = (struct tfrecord *)reader;
    struct frames *frames = &t->frames;
    TRY(frames_skip(frames, t->takes_cut, ret_found));
    *ret = (struct row_place){frames->begin, frames->number};
    return OK;
}

static err seek_row(struct row_reader *reader, const struct row_place *place)
{
    return frames_seek(&((struct tfrecord *)reader)->frames, place->byte, place->number);
}

static err narrow(struct row_reader *reader, const int *cells, int count)
{
    return named_cells_narrow(&((struct tfrecord *)reader)->cells, cells, count);
}

static void close_reader(struct row_reader *reader)
{
    struct tfrecord *t = (struct tfrecord *)reader;
    frames_close(&t->frames);
    named_cells_close(&t->cells);
    free(t);
}

/* Finds names in the first good records. Then the file is opened again, so that all records are
 * read as rows and broken ones reported. */
static err look(struct tfrecord *t, const struct format_context *context, struct looked *ret)
{
    bool found = true;
    while (found && ret->sound < ROWS_LOOKED_AT) {
        const err e = next_example(t, &found);
        if (e && !t->reader.is_row_broken) return e;
        looked_note(ret, e, found);
    }
    frames_close(&t->frames);
    t->cells.is_looking = false;
    return frames_open(context, context->files[0], &t->frames);
}

static err open_reader(struct tfrecord *t, const struct format_context *context)
{
    static const struct row_calls calls = {next_row, skip_row, seek_row, close_reader, narrow};
    struct looked looked = {0};
    t->takes_cut = bad_rows_are_allowed(context->bad_rows);
    TRY(frames_open(context, context->files[0], &t->frames));
    TRY(named_cells_open(&t->cells, t->attributes, context));
    const bool is_looking = t->cells.is_looking;
    if (is_looking) TRY(look(t, context, &looked));
    t->reader = (struct row_reader){
        .calls = &calls,
        .name = input_path(t->frames.input),
        .numbered = "record",
        .is_empty = is_looking && looked_is_empty(&looked),
        .is_all_broken = looked_is_broken(&looked),
        .input = t->frames.input,
    };
    named_cells_describe(&t->cells, t->attributes, &t->reader);
    return OK;
}

static err read_tfrecord(const void *attributes, const struct format_context *context,
                         struct row_reader **ret)
{
    struct tfrecord *t = calloc(1, sizeof *t);
    if (!t) return fail(ERR_MEMORY, "no memory to read %s", context->files[0]);
    t->attributes = attributes;
    t->without_labels = context->without_labels;
    const err e = open_reader(t, context);
    if (e)
        close_reader(&t->reader);
    else
        *ret = &t->reader;
    return e;
}

static const struct field fields[] = {
    NAMED_FIELDS("TFRecord files of tf.Example, plain or packed"),
    {0},
};

const struct format format_tfrecord = {
    .object = {"tfrecord", "TensorFlow's records of tf.Example; data.columns reads their features",
               fields, sizeof(struct named_attributes)},
    .read = read_tfrecord,
    .label_form = offsetof(struct named_attributes, label_form),
};
