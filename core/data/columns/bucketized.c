/* bucketized: the index of the interval between boundaries that contains a number; a boundary
 * belongs to the interval above it. Boundaries are listed in the spec or one per line of a file.
 * Numbers are compared as doubles. */
#include "core/data/columns/column.h"
#include "core/data/formats/delimited.h"

struct attributes {
    struct column_source source;
    struct floats boundaries;
    const char *file;
};

static const struct field fields[] = {
    SOURCE_FIELDS("null", "1"),
    FIELD_OF("boundaries", FLOATS, struct attributes, boundaries, .fallback = "[]", .min = -1e30,
             .max = 1e30, .count_max = FIELD_LIST_MAX, .group = "boundaries",
             .group_is_required = true,
             .help = "increasing numbers; n boundaries make n + 1 buckets, and a value equal to a "
                     "boundary falls into the upper one"),
    FIELD_OF("file", STRING, struct attributes, file, .fallback = "null", .group = "boundaries",
             .group_is_required = true, .may_differ = true,
             .help = "file with one entry per line, plain or compressed, instead of the list"),
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

static err read_file(const char *file, const struct format_context *context, struct arena *arena,
                     struct floats *boundaries)
{
    struct input *in = NULL;
    boundaries->at = arena_array(arena, FIELD_LIST_MAX, sizeof *boundaries->at);
    TRY(input_open(context, file, &in));
    const err e = read_lines(in, boundaries);
    const err told = e ? fail_prefix(e, "%s", input_path(in)) : OK;
    input_close(in);
    return told;
}

static err read_boundaries(const struct attributes *a, const struct format_context *context,
                           struct arena *arena, struct floats *ret)
{
    *ret = a->boundaries;
    if (!a->boundaries.count == !a->file)
        return fail(ERR_INPUT, "expected either \"boundaries\" or \"file\"");
    if (a->file) TRY(read_file(a->file, context, arena, ret));
    return check_rise(ret);
}

/* -0 counts as 0. */
static struct column_content content_of(const struct floats *boundaries)
{
    uint64_t digest = 0;
    for (int i = 0; i < boundaries->count; i++) {
        const double boundary = boundaries->at[i] + 0.0;
        digest = fingerprint_join(digest, fingerprint(&boundary, sizeof boundary));
    }
    return (struct column_content){boundaries->count, digest};
}

static err content(const void *attributes, const struct format_context *context,
                   struct column_content *ret)
{
    struct arena arena = {0};
    struct floats boundaries;
    const err e = read_boundaries(attributes, context, &arena, &boundaries);
    if (!e) *ret = content_of(&boundaries);
    arena_free(&arena);
    return e;
}

static err open(struct column_maker *m, const struct column_context *context)
{
    const struct attributes *a = m->attributes;
    struct floats *boundaries = arena_new(context->arena, sizeof *boundaries);
    TRY(read_boundaries(a, context->format, context->arena, boundaries));
    m->state = boundaries;
    m->content = content_of(boundaries);
    column_makes_ids(m, a->source.max, boundaries->count + 1);
    return OK;
}

static err id(const struct column_maker *m, struct item *item, int64_t *ret)
{
    const struct floats *boundaries = m->state;
    double number;
    if (!item_number(item, &number)) return item_refuse(item, "a number");
    int low = 0, high = boundaries->count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (boundaries->at[middle] <= number)
            low = middle + 1;
        else
            high = middle;
    }
    *ret = low;
    return OK;
}

const struct column_kind column_bucketized = {
    .object = {"bucketized", "bucket index of a number", fields, sizeof(struct attributes)},
    .open = open,
    .content_name = "boundaries",
    .content = content,
    .id = id,
};
