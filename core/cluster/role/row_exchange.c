/* row_exchange.c - see row_exchange.h. */
#include "core/cluster/role/row_exchange.h"

/* ---- at a ps ---- */

/* A worker pushes again only after an answer, so one struct for the last push suffices. */
enum rows_turn rows_heard(struct rows_told *told, const struct message *m, bool is_of_this_life)
{
    if (m->rows.flags & ROWS_ASKED) return is_of_this_life ? ROWS_ANSWER : ROWS_REFUSE;
    if (!is_of_this_life) return ROWS_VOID;
    const bool was_brought = told->brought && told->brought + 1 == m->rows.push;
    if (m->rows.flags & ROWS_BROUGHT && !was_brought) return ROWS_WRONG;
    *told = (struct rows_told){m->rows.push, .wants = m->rows.flags & ROWS_AND_NEXT};
    return ROWS_KEEP;
}

bool rows_belong(const struct rows_told *told, const struct message *push)
{
    return told->push == push->push.push;
}

bool rows_are_due(struct rows_told *told)
{
    const bool are_due = told->wants;
    if (are_due) told->brought = told->push;
    told->wants = false;
    return are_due;
}

void rows_told_forget(struct rows_told *told)
{
    *told = (struct rows_told){0};
}

/* ---- at a worker ---- */

uint64_t rows_ask(struct rows_asked *asked)
{
    asked->is_answered = asked->is_refused = false;
    return ++asked->number;
}

bool rows_are_open(const struct rows_asked *asked)
{
    return asked->number && !asked->is_answered;
}

void rows_asked_forget(struct rows_asked *asked)
{
    asked->came = 0;
    asked->is_answered = asked->is_refused = true;
}

/* Rows that answer a push are of the batch after it, whose number is the push's. */
void rows_arrived(struct rows_asked *asked, const struct message *m, bool fit)
{
    const bool is_answer = m->rows.flags == ROWS_ASKED || m->rows.flags == ROWS_NONE;
    if (!is_answer) asked->came = fit ? m->rows.push + 1 : 0;
    if (!is_answer || m->rows.request_id != asked->number) return;
    asked->is_answered = true;
    asked->is_refused = m->rows.flags == ROWS_NONE || !fit;
}

uint64_t rows_with_values(struct rows_asked *asked)
{
    const uint64_t came = asked->came;
    asked->came = 0;
    return came;
}
