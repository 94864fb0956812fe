/* ps_task_line.c - who is at the other end of a ps' links. */
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/ps_task_inside.h"

/* A link of a single process is no guest: there are none. */
struct line *line_new(struct ps_task *p, struct link *link)
{
    struct line *line = calloc(1, sizeof *line);
    if (!line) return NULL;
    *line = (struct line){.ps = p,
                          .link = link,
                          .worker = LINE_UNKNOWN,
                          .visitor = LINE_UNKNOWN,
                          .since_ms = clock_ms()};
    line->next = p->lines;
    if (p->lines) p->lines->previous = line;
    p->lines = line;
    p->strangers++;
    link_set_context(link, line);
    link_set_body_max(link, TASK_GREETING_BYTES_MAX);
    return line;
}

bool line_is_stranger(const struct line *line)
{
    return line->worker == LINE_UNKNOWN && line->visitor == LINE_UNKNOWN;
}

void line_become_worker(struct line *line, int worker)
{
    line->worker = worker;
    line->ps->strangers--;
    link_set_body_max(line->link, MESSAGE_BODY_MAX);
    link_set_guest(line->link, false);
}

void line_become_visitor(struct line *line, int visitor)
{
    line->visitor = visitor;
    line->ps->strangers--;
    link_set_body_max(line->link, VISIT_ASK_BYTES_MAX);
}

struct line *line_of_oldest_stranger(const struct ps_task *p)
{
    struct line *oldest = NULL;
    for (struct line *line = p->lines; line; line = line->next) /* the newest is first */
        if (line_is_stranger(line)) oldest = line;
    return oldest;
}

void line_drop(struct line *line)
{
    struct ps_task *p = line->ps;
    if (line_is_stranger(line)) p->strangers--;
    if (line->visitor != LINE_UNKNOWN) visits_leave(p->visits, line->visitor);
    if (line->previous) line->previous->next = line->next;
    if (line->next) line->next->previous = line->previous;
    if (p->lines == line) p->lines = line->next;
    free(line);
}

void line_hang_up(struct line *line)
{
    link_close(line->link);
    line_drop(line);
}
