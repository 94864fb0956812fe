/* feed.c - see feed.h. */
#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/json_foreign.h"
#include "core/base/log.h"
#include "core/cluster/runner/feed/feed.h"
#include "core/data/storage.h"

enum { NAME_BYTES_MAX = 256 };

err feed_layout_make(const struct column *columns, int count, const bool *reads, int64_t batch,
                     struct feed_layout *ret)
{
    *ret = (struct feed_layout){0};
    for (int i = 0; i < count; i++) {
        const struct column *c = &columns[i];
        uint64_t bytes;
        if (i != LABELS && !reads[i]) continue;
        TRY(storage_bytes(c->name, batch, &c->shape, c->dtype, &bytes));
        ret->columns[ret->count] = i;
        ret->at[ret->count++] = ret->bytes;
        if (__builtin_add_overflow(ret->bytes, whole_lines(bytes), &ret->bytes))
            return fail(ERR_INPUT, "a batch of %lld rows is more than memory can hold",
                        (long long)batch);
    }
    return OK;
}

/* ---- the description ---- */

struct described_column {
    const char *name;
    int dtype;
    struct ints shape;
    int64_t buckets;
    bool is_weighted, is_label;
};

struct description {
    int64_t rows;
    struct objects columns; /* of struct described_column */
    json_t *measured;
};

static const char *const dtype_names[] = {
    [FLOAT32] = "float32", [INT32] = "int32", [UINT8] = "uint8", [INT64] = "int64", NULL};

/* Exact in a double, too */
static const int64_t NUMBER_MAX = INT64_C(1) << 53;
enum { ANY_BUCKETS = -1 }; /* ANY_ID */

static const struct field column_fields[] = {
    FIELD_OF("name", STRING, struct described_column, name, .help = "of the column"),
    FIELD_OF("dtype", ENUM, struct described_column, dtype, .choices = dtype_names,
             .help = "as it is stored"),
    FIELD_OF("shape", INTS, struct described_column, shape, .min = 1, .max = DBL_MAX,
             .help = "of one row"),
    FIELD_OF("buckets", INT, struct described_column, buckets, .min = ANY_BUCKETS,
             .max = (double)(INT64_C(1) << 53), .help = "of ids"),
    FIELD_OF("weighted", BOOL, struct described_column, is_weighted,
             .help = "the next column is the weights of these ids"),
    FIELD_OF("label", BOOL, struct described_column, is_label, .fallback = "false",
             .help = "one of several labels, which nodes do not read"),
    {0},
};

static const struct object column_object = {"column", "a column of a batch", column_fields,
                                            sizeof(struct described_column)};

static const struct field description_fields[] = {
    FIELD_OF("rows", INT, struct description, rows, .min = 1, .max = (double)(INT64_C(1) << 53),
             .help = "of an epoch"),
    FIELD_OF("columns", OBJECTS, struct description, columns, .count_min = 1,
             .count_max = COLUMNS_MAX, .object = &column_object, .help = "as they are stored"),
    FIELD_OF("measured", JSON, struct description, measured,
             .help = "what the data say of themselves"),
    {0},
};

static const struct object description_object = {"data", "what a chief reads for its workers",
                                                 description_fields, sizeof(struct description)};

static json_t *column_json(const struct column *c)
{
    json_t *shape = json_array();
    for (int i = 0; i < c->shape.rank; i++)
        json_array_append_new(shape, json_integer(c->shape.dim[i]));
    const int64_t buckets = c->buckets == ANY_ID ? ANY_BUCKETS : c->buckets;
    return json_pack("{ss ss so sI sb sb}", "name", c->name, "dtype", dtype_names[c->dtype],
                     "shape", shape, "buckets", (json_int_t)buckets, "weighted", c->is_weighted,
                     "label", c->is_label);
}

err feed_describe(const struct batch_source *source, const struct spec *spec, char **ret)
{
    json_t *measured, *columns = json_array();
    const err e = spec_tell_measured(spec, &measured);
    if (e) {
        json_decref(columns);
        return e;
    }
    for (int i = 0; i < source->column_count; i++)
        json_array_append_new(columns, column_json(&source->columns[i]));
    json_t *json = json_pack("{sI so so}", "rows", (json_int_t)source->rows, "columns", columns,
                             "measured", measured);
    *ret = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return *ret ? OK : fail(ERR_MEMORY, "no memory to describe the data");
}

static err take_column(const struct described_column *from, struct column *ret)
{
    *ret = (struct column){
        .name = from->name,
        .dtype = (enum dtype)from->dtype,
        .shape = {.rank = from->shape.count},
        .buckets = from->buckets == ANY_BUCKETS ? ANY_ID : from->buckets,
        .is_weighted = from->is_weighted,
        .is_label = from->is_label,
    };
    if (strlen(from->name) > NAME_BYTES_MAX)
        return fail(ERR_INPUT, "a name of %zu bytes", strlen(from->name));
    if (from->shape.count > RANK_MAX) return fail(ERR_INPUT, "rank %d", from->shape.count);
    if (from->buckets > NUMBER_MAX) return fail(ERR_INPUT, "too many buckets");
    for (int i = 0; i < from->shape.count; i++) ret->shape.dim[i] = from->shape.at[i];
    return shape_check(&ret->shape);
}

/* Labels come first; weights have the shape of their ids, and are numbers. */
static err check_columns(const struct feed_description *d)
{
    const enum dtype labels = d->columns[LABELS].dtype;
    if (strcmp(d->columns[LABELS].name, LABELS_NAME) != 0 || (labels != INT32 && labels != FLOAT32))
        return fail(ERR_INPUT, "the first column is no labels");
    for (int i = 1; i < d->column_count; i++) {
        const struct column *c = &d->columns[i], *next = c + 1;
        if (c->dtype == INT32) return fail(ERR_INPUT, "column \"%s\" is int32", c->name);
        if (c->is_label && c->dtype != FLOAT32)
            return fail(ERR_INPUT, "label \"%s\" is no number", c->name);
        if (!c->is_weighted) continue;
        const bool is_fine = i + 1 < d->column_count && next->dtype == FLOAT32 &&
                             c->dtype == INT64 && shape_equal(&c->shape, &next->shape);
        if (!is_fine) return fail(ERR_INPUT, "column \"%s\" has no weights", c->name);
    }
    return OK;
}

static err take_description(json_t *json, struct spec *spec, struct arena *arena,
                            struct feed_description *ret)
{
    struct description d;
    TRY(fields_parse(&description_object, json, "", arena, &d));
    const struct described_column *columns = d.columns.at;
    ret->rows = d.rows;
    ret->columns = arena_array(arena, (size_t)d.columns.count + 1, sizeof *ret->columns);
    ret->column_count = d.columns.count;
    for (int i = 0; i < d.columns.count; i++) {
        const err e = take_column(&columns[i], &ret->columns[i]);
        if (e) return fail_prefix(e, "columns[%d]", i);
    }
    TRY(check_columns(ret));
    return spec_take_measured(spec, d.measured);
}

err feed_read_description(const void *text, size_t bytes, struct spec *spec, struct arena *arena,
                          struct feed_description *ret)
{
    json_t *json;
    if (json_read_foreign(text, bytes, 0, &json))
        return fail_prefix(ERR_PROTOCOL, "a description that is not JSON");
    const err e = take_description(json, spec, arena, ret);
    json_decref(json);
    return e == ERR_INPUT ? fail_prefix(ERR_PROTOCOL, "a description of data") : e;
}

/* ---- what both ends need ---- */

static void on_rung(void *context)
{
    uint64_t count;
    const struct waker *waker = context;
    if (read(waker->fd, &count, sizeof count) < 0 && errno != EAGAIN)
        log_line(LOG_ERROR, "eventfd: %s", strerror(errno));
}

err waker_open(struct waker *waker, struct loop *loop)
{
    *waker = (struct waker){loop, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    if (waker->fd < 0) return fail(ERR_IO, "eventfd: %s", strerror(errno));
    const err e = loop_watch(loop, waker->fd, on_rung, waker);
    if (!e) return OK;
    close(waker->fd);
    waker->fd = -1;
    return e;
}

/* If the counter is full, the write fails, but the waiting thread has been woken. */
void waker_ring(const struct waker *waker)
{
    const uint64_t one = 1;
    if (write(waker->fd, &one, sizeof one) < 0 && errno != EAGAIN)
        log_line(LOG_ERROR, "eventfd: %s", strerror(errno));
}

void waker_close(struct waker *waker)
{
    if (!waker->loop || waker->fd < 0) return;
    loop_unwatch(waker->loop, waker->fd);
    close(waker->fd);
    *waker = (struct waker){0};
}

struct greeter feed_greeter(const struct task_options *options)
{
    return (struct greeter){
        .cluster = options->cluster,
        .fingerprint = options->fingerprint,
        .job = JOB_WORKER,
        .peer_job = JOB_WORKER,
        .index = options->cluster->task,
        .peer_count = options->cluster->hosts[JOB_WORKER].count,
        .incarnation = greeting_draw_incarnation(),
    };
}
