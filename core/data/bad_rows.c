/* bad_rows.c - see bad_rows.h. */
#include "core/data/bad_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fingerprint.h"
#include "core/base/log.h"
#include "core/data/said_once.h"

enum { LEFT_OUT_GROW = 64 };

err bad_rows_begin(double given, struct bad_rows *ret)
{
    *ret = (struct bad_rows){0};
    if (given >= 1 && given != floor(given))
        return fail(ERR_INPUT,
                    "\"bad_rows\": expected a number of rows, or a share below 1, got %g", given);
    if (given < 1)
        ret->share = given;
    else
        ret->limit = (int64_t)given;
    return OK;
}

int64_t left_out_number(const struct left_out *l, int64_t kept)
{
    int64_t from = 0, to = l->count;
    while (from < to) {
        const int64_t middle = from + (to - from) / 2;
        if (l->before[middle] <= kept)
            from = middle + 1;
        else
            to = middle;
    }
    return kept + from;
}

void left_out_free(struct left_out *l)
{
    free(l->before);
    *l = (struct left_out){0};
}

static err left_out_add(struct left_out *l)
{
    if (l->count == l->room) {
        const int64_t room = 2 * l->room + LEFT_OUT_GROW;
        int64_t *before = realloc(l->before, (size_t)room * sizeof *before);
        if (!before) return fail(ERR_MEMORY, "no memory for the numbers of rows left out");
        l->before = before;
        l->room = room;
    }
    l->before[l->count++] = l->kept;
    return OK;
}

void bad_rows_keep(struct bad_rows *b)
{
    if (b) b->left_out.kept++;
}

bool bad_rows_are_allowed(const struct bad_rows *b)
{
    return b && (b->limit > 0 || b->share > 0);
}

static void show(const char *what)
{
    if (said_first(SAID_LEFT_OUT, fingerprint(what, strlen(what))))
        log_line(LOG_WARNING, "row left out: %s", what);
}

err bad_rows_leave_out(struct bad_rows *b, err e)
{
    char text[ERROR_TEXT_MAX];
    if (e != ERR_INPUT || !bad_rows_are_allowed(b)) return e;
    b->count++;
    const bool fits = b->share > 0 || b->count <= b->limit;
    if (b->count <= BAD_ROWS_SHOWN && fits && !b->is_quiet) show(error_text());
    if (fits) return left_out_add(&b->left_out);
    snprintf(text, sizeof text, "%s", error_text());
    return fail(e, "%lld rows are broken, \"bad_rows\" is %lld; the last: %s", (long long)b->count,
                (long long)b->limit, text);
}

err bad_rows_end(const struct bad_rows *b, const char *name, int64_t rows)
{
    const int64_t all = rows + b->count;
    if (b->count == 0) return OK;
    if (b->share > 0 && (double)b->count > b->share * (double)all)
        return fail(ERR_INPUT,
                    "%s: %lld of %lld rows are broken, more than the share \"bad_rows\" %g", name,
                    (long long)b->count, (long long)all, b->share);
    if (!b->is_ahead)
        log_line(LOG_WARNING, "%s: %lld of %lld rows are broken and left out", name,
                 (long long)b->count, (long long)all);
    return OK;
}
