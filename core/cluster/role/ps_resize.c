/* ps_resize.c - a ps asks the chief for another membership, and continues in it (membership.h). */
#include "core/cluster/role/ps_role_inside.h"
#include "core/cluster/role/verdict.h"

/* ---- requests ---- */

static const char *why_not(const struct ps_role *p)
{
    if (p->scaling.is_asked) return "it is being resized already";
    if (p->stopping.is_on) return "it is to end";
    if (p->phase != SERVING) return "it has not begun to train, or begins again";
    return ps_chief_is_here(p) ? NULL : "its chief is not here";
}

const char *ps_role_scale(struct role *role, const int count[JOB_COUNT], struct outbox *out)
{
    struct ps_role *p = (struct ps_role *)role;
    const char *why = why_not(p);
    if (why) return why;
    struct membership wanted = p->options.membership;
    for (int job = 0; job < JOB_COUNT; job++)
        if (count[job]) wanted.count[job] = count[job];
    p->scaling = (struct scaling){true, p->config.generation, p->lead.term};
    message_say_membership(ps_tell_chief(p, MESSAGE_SCALE, out), &wanted, out);
    return NULL;
}

static void answer(struct ps_role *p, int code, const char *text, struct outbox *out)
{
    if (!p->scaling.is_asked) return;
    p->scaling.is_asked = false;
    outbox_add_scaled(out, (struct action_scaled){code, outbox_text(out, text)});
}

void ps_scaled(struct ps_role *p, const struct message *m, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    const int code = message_verdict(m, m->scaled.exit_code, text);
    answer(p, code ? code : EXIT_LOST_PEER, text, out);
}

/* A request to the chief ends with its term, and with the generation. */
void ps_watch_scaling(struct ps_role *p, struct outbox *out)
{
    const struct scaling *s = &p->scaling;
    const bool is_same = s->generation == p->config.generation && s->term == p->lead.term;
    if (is_same && ps_chief_is_here(p)) return;
    answer(p, EXIT_LOST_PEER, "the chief was lost, or all began again, before the resize", out);
}

/* ---- resizing ---- */

bool ps_has_resized(const struct ps_role *p)
{
    return p->verdict.resizes_to.count[JOB_PS] > 0;
}

void ps_tell_resize(struct ps_role *p, int worker, struct outbox *out)
{
    struct message *m = ps_send(p, worker, MESSAGE_RESIZE, out);
    m->resize.step = p->verdict.resizes_at;
    message_say_membership(m, &p->verdict.resizes_to, out);
}

/* Workers, including the chief, continue in it by themselves. */
void ps_resize(struct ps_role *p, const struct membership *membership, uint64_t step,
               struct outbox *out)
{
    if (p->phase == ENDED || membership->resizes <= p->options.membership.resizes) return;
    ps_take_back(p, out);
    ps_set_phase(p, ENDED);
    p->verdict.resizes_to = *membership;
    p->verdict.resizes_at = step;
    for (int w = 0; w < p->options.workers; w++)
        if (member_is_here(&p->members[w])) ps_tell_resize(p, w, out);
    outbox_add_resize(out, (struct action_resize){*membership, step});
}

void ps_heard_resize(struct ps_role *p, const struct message *m, struct outbox *out)
{
    struct membership membership;
    if (membership_unpack(m, &membership)) ps_resize(p, &membership, m->resize.step, out);
}
