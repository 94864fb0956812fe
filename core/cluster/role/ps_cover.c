/* ps_cover.c - ps/0 counts which rows are in the values (coverage.h), and tells the chief. */
#include "core/cluster/role/ps_inside.h"

static void tell(struct ps_role *p, const struct covered *covered, bool is_over, struct outbox *out)
{
    if (!ps_chief_is_here(p)) return; /* what comes next tells the sums */
    struct message *m = ps_tell_chief(p, MESSAGE_COVERED, out);
    uint64_t *numbers = arena_array(&out->texts, COVERED_NUMBERS, sizeof *numbers);
    covered_pack(covered, numbers);
    m->code = is_over;
    m->body = numbers;
    m->body_bytes = COVERED_NUMBERS * sizeof *numbers;
}

/* That are applied, or were dropped. */
static uint64_t pushes_of(const struct member *m)
{
    return m->push == PUSH_WAITS ? m->before.received : m->ledger.received;
}

static bool is_over(const struct ps_role *p)
{
    for (int w = 0; w < p->options.workers; w++) {
        const struct member *m = &p->members[w];
        if (m->standing != EXCUSED && !coverage_is_past(&p->coverage, w, pushes_of(m)))
            return false;
    }
    return true;
}

static void close_oldest(struct ps_role *p, struct outbox *out)
{
    const struct covered closed = coverage_close(&p->coverage);
    tell(p, &closed, true, out);
}

/* A push brings fewer epochs than are open at a time. */
void ps_cover(struct ps_role *p, int worker, struct outbox *out)
{
    struct coverage *c = &p->coverage;
    const uint64_t sequence = p->members[worker].ledger.taken;
    if (!c->share.rows) return;
    for (int i = 0; i < COVERAGE_EPOCHS && coverage_is_full(c, worker, sequence); i++)
        close_oldest(p, out);
    coverage_apply(c, worker, sequence);
    for (int i = 0; i < COVERAGE_EPOCHS && is_over(p); i++) close_oldest(p, out);
}

static bool is_endless(const struct ps_role *p)
{
    return p->coverage.share.rows == DATA_ROWS_ENDLESS;
}

static void tell_brought(struct ps_role *p, bool is_end, struct outbox *out)
{
    struct covered covered = coverage_of_oldest(&p->coverage);
    covered.rows = 0;
    for (int w = 0; w < p->options.workers; w++)
        covered.rows += coverage_brought(&p->coverage, w, pushes_of(&p->members[w]));
    tell(p, &covered, is_end, out);
}

void ps_tell_coverage(struct ps_role *p, struct outbox *out)
{
    const struct covered open = coverage_of_oldest(&p->coverage);
    if (is_endless(p))
        tell_brought(p, true, out);
    else if (open.rows)
        tell(p, &open, false, out);
}

void ps_tell_coverage_at_cut(struct ps_role *p, struct outbox *out)
{
    if (is_endless(p)) tell_brought(p, false, out);
}
