/* newest.c - see newest.h. */
#include "core/train/checkpoint/newest.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/ascending.h"
#include "core/train/checkpoint/checkpoints_inside.h"
#include "core/train/checkpoint/delta.h"
#include "core/train/checkpoint/publication.h"
#include "core/train/variables/table.h"

enum { TRIES_MAX = 3 };

struct laid_rows {
    struct table_changes rows; /* ids ascending, each once */
    struct laid_rows *next;
};

struct newest {
    struct bundle *checkpoint;
    struct bundle *deltas[DELTAS_MAX]; /* [count] */
    int count;
    struct laid_rows *laid; /* of each table that asked */
};

static void close_all(struct newest *n)
{
    while (n->count) bundle_close(n->deltas[--n->count]);
}

void newest_close(struct newest *n)
{
    if (!n) return;
    close_all(n);
    while (n->laid) {
        struct laid_rows *first = n->laid;
        n->laid = first->next;
        table_changes_free(&first->rows);
        free(first);
    }
    free(n);
}

/* ---- what is published ---- */

static err open_delta(const char *folder, const struct published *said, struct bundle **ret)
{
    char prefix[CHECKPOINT_PATH_MAX];
    uint32_t index;
    int64_t step;
    TRY(folder_join(folder, said->name, prefix));
    TRY(published_index(prefix, &index));
    if (index != said->index)
        return fail(ERR_INPUT, "%s: is not what %s says", prefix, PUBLICATION_NAME);
    TRY(bundle_open(prefix, ret));
    err e = delta_read_step(*ret, &step);
    if (!e && step != said->step)
        e = fail(ERR_INPUT, "%s: is of step %lld, not of %lld", prefix, (long long)step,
                 (long long)said->step);
    if (e) bundle_close(*ret);
    return e;
}

static err open_said(struct newest *n, const char *folder, const char *name,
                     struct publication *said)
{
    uint32_t index = 0;
    err e = publication_read(folder, said);
    if (!e && !said->full.name[0])
        e = fail(ERR_INPUT,
                 "%s: there is no %s: no run published there (train.publish), or "
                 "train.publish.to names another folder",
                 folder, PUBLICATION_NAME);
    if (!e) e = published_index(bundle_prefix(n->checkpoint), &index);
    const bool is_said = !e && strcmp(said->full.name, name) == 0 && said->full.index == index;
    for (; is_said && !e && n->count < said->count; n->count += !e)
        e = open_delta(folder, &said->deltas[n->count], &n->deltas[n->count]);
    return e;
}

/* A running job removes deltas as soon as the next checkpoint is published, which may be between
 * reading its list and opening one of them: then there is a new list. */
static err open_all(struct newest *n, const char *folder, const char *name)
{
    struct publication *said = malloc(sizeof *said);
    if (!said) return fail(ERR_MEMORY, "no memory for a list of deltas");
    err e = open_said(n, folder, name, said);
    for (int tries = 1; e == ERR_INPUT && tries < TRIES_MAX; tries++) {
        close_all(n);
        e = open_said(n, folder, name, said);
    }
    free(said);
    return e;
}

err newest_open(struct bundle *checkpoint, struct newest **ret)
{
    char folder[CHECKPOINT_PATH_MAX];
    const char *name = folder_split(bundle_prefix(checkpoint), folder);
    struct newest *n = calloc(1, sizeof *n);
    if (!n) return fail(ERR_MEMORY, "no memory for deltas");
    n->checkpoint = checkpoint;
    const err e = open_all(n, folder, name);
    if (e)
        newest_close(n);
    else
        *ret = n;
    return e;
}

int newest_deltas(const struct newest *n)
{
    return n->count;
}

struct bundle *newest_dense(const struct newest *n)
{
    return n->count ? n->deltas[n->count - 1] : n->checkpoint;
}

/* ---- rows ---- */

static err append(struct table_changes *to, const struct table_changes *more, int64_t width)
{
    const int64_t count = to->count + more->count;
    int64_t *ids = realloc(to->ids, (size_t)count * sizeof *ids + 1);
    if (ids) to->ids = ids;
    float *rows = realloc(to->rows, (size_t)(count * width) * sizeof *rows + 1);
    if (rows) to->rows = rows;
    if (!ids || !rows)
        return fail(ERR_MEMORY, "no memory for %lld rows of deltas", (long long)count);
    if (more->count) {
        memcpy(ids + to->count, more->ids, (size_t)more->count * sizeof *ids);
        memcpy(rows + to->count * width, more->rows, (size_t)(more->count * width) * sizeof *rows);
    }
    to->count = count;
    return OK;
}

/* Takes the last of several values of a row, in the order of ids. */
static void pick(const struct changed_row *places, const struct table_changes *all, int64_t width,
                 struct table_changes *ret)
{
    for (int64_t i = 0; i < all->count; i++) {
        if (i + 1 < all->count && places[i + 1].id == places[i].id) continue;
        ret->ids[ret->count] = places[i].id;
        memcpy(ret->rows + ret->count * width, all->rows + places[i].at * width,
               (size_t)width * sizeof *ret->rows);
        ret->count++;
    }
}

static err put_in_order(const struct table_changes *all, int64_t width, struct table_changes *ret)
{
    struct changed_row *places;
    ret->ids = malloc((size_t)all->count * sizeof *ret->ids + 1);
    ret->rows = malloc((size_t)(all->count * width) * sizeof *ret->rows + 1);
    if (!ret->ids || !ret->rows) return fail(ERR_MEMORY, "no memory for rows of deltas");
    TRY(table_changes_in_order(all, false, &places));
    pick(places, all, width, ret);
    free(places);
    return OK;
}

static err read_rows(const struct newest *n, const struct stored_table *t,
                     struct table_changes *ret)
{
    const struct slice whole = {.name = t->name,
                                .shape = {2, {t->rows, t->width}},
                                .length = t->grows ? INT64_MAX : t->rows};
    struct table_changes all = {0};
    err e = OK;
    for (int i = 0; !e && i < n->count; i++) {
        struct table_changes more = {0};
        e = delta_read_rows(n->deltas[i], &whole, &more);
        if (!e) e = append(&all, &more, t->width);
        table_changes_free(&more);
    }
    if (!e) e = put_in_order(&all, t->width, ret);
    table_changes_free(&all);
    return e;
}

/* Counts how many of the deltas' rows the checkpoint has. */
struct counting {
    const struct table_changes *rows;
    int64_t found;
};

static err count_found(void *context, const int64_t *ids, int64_t count, const float *rows)
{
    struct counting *c = context;
    (void)rows;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = ascending_place(c->rows->ids, c->rows->count, ids[i]);
        c->found += at < c->rows->count && c->rows->ids[at] == ids[i];
    }
    return OK;
}

err newest_lay_over(struct newest *n, struct stored_table *t)
{
    struct laid_rows *laid = n && n->count ? calloc(1, sizeof *laid) : NULL;
    if (!n || !n->count) return OK;
    if (!laid) return fail(ERR_MEMORY, "no memory for rows of deltas");
    laid->next = n->laid;
    n->laid = laid;
    TRY(read_rows(n, t, &laid->rows));
    struct counting c = {&laid->rows, 0};
    if (t->grows) {
        TRY(stored_table_read(t, &(struct stored_rows_taker){&c, count_found}));
        t->rows -= c.found;
        for (int64_t i = 0; i < laid->rows.count; i++)
            t->rows += !stored_row_is_gone(t, laid->rows.rows + i * t->width);
    }
    t->newer = &laid->rows;
    return OK;
}
