/* bucketized: which stretch between boundaries a number falls into; a boundary begins one. They are
 * listed, in the spec or one per line of a file.
 */
#include "core/data/columns/column.h"
#include "core/data/formats/delimited.h"

struct attributes {
    struct column_source source;
    struct floats boundaries;
    const char *file;
};

static const struct field fields[] = {
    SOURCE_FIELDS("null", "1"),
    {.name = "boundaries",
     .type = FIELD_FLOATS,
     .offset = offsetof(struct attributes, boundaries),
     .fallback = "[]",
     .min = -1e30,
     .max = 1e30,
     .count_max = FIELD_LIST_MAX,
     .group = "boundaries",
     .group_is_required = true,
     .help = "rising numbers; n of them make n + 1 buckets, and x at a boundary is in the upper "
             "one"},
    {.name = "file",
     .type = FIELD_STRING,
     .offset = offsetof(struct attributes, file),
     .fallback = "null",
     .group = "boundaries",
     .group_is_required = true,
     .may_differ = true,
     .help = "or the file that has them, one per line, plain or packed"},
    {0},
};

static err check_rise(const struct floats *boundaries)
{
    for (int i = 1; i < boundaries->count; i++)
        if (!(boundaries->at[i - 1] < boundaries->at[i]))
            return fail(ERR_INPUT, "boundaries: expected rising numbers, got %g before %g",
                        boundaries->at[i - 1], boundaries->at[i]);
    return OK;
}

static err read_line(const struct delimited *text, struct floats *boundaries)
{
    char got[CELL_TEXT_MAX];
    if (boundaries->count == FIELD_LIST_MAX)
        return fail(ERR_INPUT, "more than %d boundaries", (int)FIELD_LIST_MAX);
    if (cell_number(&text->cells[0], &boundaries->at[boundaries->count++])) return OK;
    return fail(ERR_INPUT, "line %lld: expected a number, got \"%s\"", (long long)text->line,
                cell_text(&text->cells[0], got));
}

static err read_lines(struct input *in, struct floats *boundaries)
{
    struct delimited text;
    bool found = true;
    TRY(delimited_open(in, LINES, &text));
    err e = delimited_next(&text, &found);
    while (!e && found) {
        e = read_line(&text, boundaries);
        if (!e) e = delimited_next(&text, &found);
    }
    delimited_close(&text);
    if (e || boundaries->count > 0) return e;
    return fail(ERR_INPUT, "no boundary is in it");
}

static err read_file(const char *file, const struct column_context *context,
                     struct floats *boundaries)
{
    struct input *in = NULL;
    boundaries->at = arena_array(context->arena, FIELD_LIST_MAX, sizeof *boundaries->at);
    TRY(input_open(context->format, file, &in));
    const err e = read_lines(in, boundaries);
    const err told = e ? fail_prefix(e, "%s", input_path(in)) : OK;
    input_close(in);
    return told;
}

static err open(struct column_maker *m, const struct column_context *context)
{
    const struct attributes *a = m->attributes;
    struct floats *boundaries = arena_new(context->arena, sizeof *boundaries);
    if (!a->boundaries.count == !a->file)
        return fail(ERR_INPUT, "expected either \"boundaries\" or \"file\"");
    *boundaries = a->boundaries;
    if (a->file) TRY(read_file(a->file, context, boundaries));
    TRY(check_rise(boundaries));
    m->state = boundaries;
    column_makes_ids(m, a->source.max, boundaries->count + 1);
    return OK;
}

static err id(const struct column_maker *m, struct item *item, int64_t *ret)
{
    const struct floats *boundaries = m->state;
    float number;
    if (!item_number(item, &number)) return item_refuse(item, "a number");
    int low = 0, high = boundaries->count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if ((float)boundaries->at[middle] <= number)
            low = middle + 1;
        else
            high = middle;
    }
    *ret = low;
    return OK;
}

const struct column_kind column_bucketized = {
    .object = {"bucketized", "ids of the stretches that numbers fall into", fields,
               sizeof(struct attributes)},
    .open = open,
    .id = id,
};
