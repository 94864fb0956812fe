/* example.c - see example.h. */
#include "core/data/formats/example.h"

#include <math.h>

enum { FEATURES_FIELD = 1, ENTRY_FIELD = 1, NAME_FIELD = 1, FEATURE_FIELD = 2, VALUES_FIELD = 1 };
enum { BYTES_LIST = 1, FLOAT_LIST, INT64_LIST };

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

/* Lists of numbers are packed; older writers use one field per number. */
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

err example_read(struct named_cells *c, struct view example)
{
    struct proto_field features, entry;
    TRY(named_cells_clear(c, view_bytes(example)));
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
