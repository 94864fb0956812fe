/* given.c - see given.h. */
#include "cmd/export/given.h"

#include <string.h>

struct finding_given {
    const struct cells *cells;
    bool of_texts;
    struct given_cells *to;
};

const char *given_separator(const struct column_spec *spec, bool of_texts)
{
    const struct column_source *source = spec->column.attributes;
    const bool is_one = cells_is(spec, "date") || (cells_is(spec, "ids") && !of_texts);
    return is_one ? NULL : source->separator;
}

/* Such cells ("7:0.5") have to be text. */
static bool has_weights(const struct column_spec *spec)
{
    return cells_is(spec, "ids") && *(const bool *)cells_attribute(spec, "weights");
}

static enum given type_of(const struct column_spec *spec)
{
    const bool is_whole = cells_is(spec, "identity") || cells_is(spec, "ids");
    const bool is_number =
        cells_is(spec, "numeric") || cells_is(spec, "bucketized") || cells_is(spec, "date");
    if (has_weights(spec)) return GIVEN_TEXT;
    return is_number ? GIVEN_NUMBER : is_whole ? GIVEN_WHOLE : GIVEN_TEXT;
}

static void want(const struct finding_given *f, int cell, enum given type)
{
    if (type > f->to->types[cell]) f->to->types[cell] = type;
}

static void want_cell(const struct finding_given *f, const struct column_spec *spec)
{
    const struct column_source *source = spec->column.attributes;
    const bool splits = given_separator(spec, f->of_texts);
    const int cell = cells_of_column(f->cells, spec);
    const bool is_image = f->cells->pixels[cell].rank;
    want(f, cell, is_image ? GIVEN_PIXELS : splits ? GIVEN_TEXT : type_of(spec));
    f->to->is_list[cell] |= !splits && source->max > 1 && !f->of_texts;
    f->to->is_time[cell] |= cells_is(spec, "date");
}

static void want_keys(const struct finding_given *f, const struct column_spec *spec)
{
    const struct cells *c = f->cells;
    const struct strings *keys = cells_attribute(spec, "keys");
    for (int i = 0; i < keys->count; i++) {
        const int of = cells_column_named(c, keys->at[i]);
        const int cell =
            of < 0 ? cells_named(c, keys->at[i]) : cells_of_column(c, cells_column(c, of));
        if (cells_crosses_words(c, keys->at[i])) want(f, cell, GIVEN_TEXT);
        if (of >= 0) want_cell(f, cells_column(c, of));
    }
}

void given_find(const struct cells *c, bool of_texts, struct given_cells *ret)
{
    const struct finding_given f = {c, of_texts, ret};
    *ret = (struct given_cells){0};
    for (int i = 0; i < c->columns->count; i++) {
        const struct column_spec *spec = cells_column(c, i);
        if (!c->is_read[i]) continue;
        if (cells_is(spec, "crossed"))
            want_keys(&f, spec);
        else
            want_cell(&f, spec);
    }
}
