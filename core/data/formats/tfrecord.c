/* tfrecord: records of tf.Example, as TensorFlow writes them: features by name, each a list of
 * bytes, of floats or of integers. Plain or packed.
 *
 * A feature is a cell, with as many values as it has. One that a record does not have is missing.
 */
#include "core/data/formats/frames.h"
#include "core/data/formats/named_cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES_FIELD = 1, ENTRY_FIELD = 1, NAME_FIELD = 1, FEATURE_FIELD = 2, VALUES_FIELD = 1 };
enum { BYTES_LIST = 1, FLOAT_LIST, INT64_LIST };

struct tfrecord {
    struct row_reader reader; /* first: what others see */
    const struct named_attributes *attributes;
    struct frames frames;
    struct named_cells cells;
    bool without_labels, takes_cut;
};

/* ---- tf.Example ---- */

static err broken(const char *what)
{
    return fail(ERR_INPUT, "%s is broken", what);
}

static err read_words(struct named_cells *c, struct cell *cell, struct view list)
{
    struct proto_field field;
    while (view_bytes(list)) {
        if (!proto_next(&list, &field)) return broken("a bytes_list");
        if (field.number == VALUES_FIELD && field.wire == WIRE_BYTES)
            named_cells_add_word(c, cell, (const char *)field.bytes.at, view_bytes(field.bytes));
    }
    return OK;
}

static err add_float(struct named_cells *c, struct cell *cell, uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    if (!isfinite(number)) return fail(ERR_INPUT, "%g is no finite number", (double)number);
    named_cells_add_number(c, cell, (double)number);
    return OK;
}

/* Lists of numbers are packed, or by older writers one field each. */
static err read_floats(struct named_cells *c, struct cell *cell, struct view list)
{
    struct proto_field field;
    while (view_bytes(list)) {
        uint32_t bits;
        if (!proto_next(&list, &field)) return broken("a float_list");
        if (field.number != VALUES_FIELD) continue;
        if (field.wire == WIRE_FIXED32) TRY(add_float(c, cell, (uint32_t)field.value));
        if (field.wire != WIRE_BYTES) continue;
        while (view_fixed32(&field.bytes, &bits)) TRY(add_float(c, cell, bits));
        if (view_bytes(field.bytes)) return broken("a float_list");
    }
    return OK;
}

static err read_integers(struct named_cells *c, struct cell *cell, struct view list)
{
    struct proto_field field;
    while (view_bytes(list)) {
        uint64_t id;
        if (!proto_next(&list, &field)) return broken("an int64_list");
        if (field.number != VALUES_FIELD) continue;
        if (field.wire == WIRE_VARINT) named_cells_add_id(c, cell, (int64_t)field.value);
        if (field.wire != WIRE_BYTES) continue;
        while (view_bytes(field.bytes)) {
            if (!view_varint(&field.bytes, &id)) return broken("an int64_list");
            named_cells_add_id(c, cell, (int64_t)id);
        }
    }
    return OK;
}

static err read_feature(struct named_cells *c, struct cell *cell, struct view feature)
{
    struct proto_field list;
    while (view_bytes(feature)) {
        if (!proto_next(&feature, &list)) return broken("a feature");
        if (list.wire != WIRE_BYTES) continue;
        *cell = (struct cell){0};
        if (list.number == BYTES_LIST) TRY(read_words(c, cell, list.bytes));
        if (list.number == FLOAT_LIST) TRY(read_floats(c, cell, list.bytes));
        if (list.number == INT64_LIST) TRY(read_integers(c, cell, list.bytes));
    }
    return OK;
}

static err read_entry(struct named_cells *c, struct view entry)
{
    struct view name = {0}, feature = {0};
    struct proto_field field;
    struct cell *cell;
    while (view_bytes(entry)) {
        if (!proto_next(&entry, &field)) return broken("a feature");
        if (field.number == NAME_FIELD && field.wire == WIRE_BYTES) name = field.bytes;
        if (field.number == FEATURE_FIELD && field.wire == WIRE_BYTES) feature = field.bytes;
    }
    TRY(named_cells_find(c, name.at ? (const char *)name.at : "", view_bytes(name), &cell));
    if (!cell) return OK;
    const err e = read_feature(c, cell, feature);
    return e ? fail_prefix(e, "feature \"%.*s\"", (int)view_bytes(name), (const char *)name.at)
             : OK;
}

static err read_example(struct named_cells *c, struct view example)
{
    struct proto_field features, entry;
    while (view_bytes(example)) {
        if (!proto_next(&example, &features)) return broken("the tf.Example");
        if (features.number != FEATURES_FIELD || features.wire != WIRE_BYTES) continue;
        while (view_bytes(features.bytes)) {
            if (!proto_next(&features.bytes, &entry)) return broken("the tf.Example");
            if (entry.number == ENTRY_FIELD && entry.wire == WIRE_BYTES)
                TRY(read_entry(c, entry.bytes));
        }
    }
    return OK;
}

/* ---- rows ---- */

static err next_example(struct tfrecord *t, bool *ret_found)
{
    struct view record;
    TRY(frames_next(&t->frames, &record, ret_found, &t->reader.is_row_broken));
    if (!*ret_found) return OK;
    TRY(named_cells_clear(&t->cells, view_bytes(record)));
    const err e = read_example(&t->cells, record);
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

static void close_reader(struct row_reader *reader)
{
    struct tfrecord *t = (struct tfrecord *)reader;
    frames_close(&t->frames);
    named_cells_close(&t->cells);
    free(t);
}

/* Names of the first records that are sound, which are then read again */
static err look(struct tfrecord *t, const struct format_context *context, struct looked *ret)
{
    bool found = true;
    while (found && ret->sound < ROWS_LOOKED_AT) {
        const err e = next_example(t, &found);
        const bool is_left_out = t->reader.is_row_broken && bad_rows_are_allowed(context->bad_rows);
        if (e && !is_left_out) return e;
        looked_note(ret, e, found);
    }
    frames_close(&t->frames);
    t->cells.is_looking = false;
    return frames_open(context, context->files[0], &t->frames);
}

static err open_reader(struct tfrecord *t, const struct format_context *context)
{
    static const struct row_calls calls = {next_row, skip_row, seek_row, close_reader};
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
