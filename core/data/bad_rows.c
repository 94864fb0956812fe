/* bad_rows.c - see bad_rows.h. */
#include "core/data/bad_rows.h"

#include <stdio.h>

#include "core/base/log.h"

bool bad_rows_are_allowed(const struct bad_rows *b)
{
    return b && b->limit > 0;
}

err bad_rows_leave_out(struct bad_rows *b, err e)
{
    char text[ERROR_TEXT_MAX];
    if (e != ERR_INPUT || !bad_rows_are_allowed(b)) return e;
    b->count++;
    if (b->count <= BAD_ROWS_SHOWN && b->count <= b->limit)
        log_line(LOG_WARNING, "row left out: %s", error_text());
    if (b->count <= b->limit) return OK;
    snprintf(text, sizeof text, "%s", error_text());
    return fail(e, "%lld rows are broken, \"bad_rows\" is %lld; the last: %s", (long long)b->count,
                (long long)b->limit, text);
}

void bad_rows_report(const struct bad_rows *b, const char *name, int64_t rows)
{
    if (b->count > 0)
        log_line(LOG_WARNING, "%s: %lld of %lld rows are broken and left out", name,
                 (long long)b->count, (long long)(rows + b->count));
}
