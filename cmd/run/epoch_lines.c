/* epoch_lines.c - see epoch_lines.h. */
#include "cmd/run/epoch_lines.h"

#include <stdio.h>

static void write_epochs(const struct epoch_lines *t, char *ret, size_t bytes)
{
    const unsigned long long first = t->from + 1, last = t->end;
    if (t->of.is_endless)
        snprintf(ret, bytes, "of those that came:");
    else if (first < last)
        snprintf(ret, bytes, "epochs %llu to %llu:%s", first, last, t->is_each ? " each" : "");
    else
        snprintf(ret, bytes, "epoch %llu:", first);
}

void epoch_lines_flush(struct epoch_lines *t, uint64_t now_ns)
{
    char epochs[64], left[64] = "", line[EPOCH_LINE_BYTES];
    const struct rows_seen *of = &t->of;
    if (!t->has_some) return;
    const unsigned long long rows = t->is_each ? t->each : of->rows;
    const unsigned long long applied = t->is_each ? t->each : of->applied;
    write_epochs(t, epochs, sizeof epochs);
    if (of->left)
        snprintf(left, sizeof left, "; %llu left, fewer than all push at once",
                 (unsigned long long)of->left);
    snprintf(line, sizeof line, "%s %llu of %llu rows, %llu twice, %llu lost%s", epochs, applied,
             rows, (unsigned long long)t->twice, (unsigned long long)t->lost, left);
    t->say(line);
    t->has_some = false;
    t->has_said = true;
    t->said_ns = now_ns;
}

static void write_open(const struct rows_seen *r, char *ret, size_t bytes)
{
    const unsigned long long first = r->epoch + 1, last = r->epoch + r->epochs;
    const unsigned long long applied = r->applied, rows = r->rows;
    if (r->epochs > 1)
        snprintf(ret, bytes, "epochs %llu to %llu so far: %llu of %llu rows", first, last, applied,
                 rows);
    else
        snprintf(ret, bytes, "epoch %llu so far: %llu of %llu rows", first, applied, rows);
}

void epoch_lines_end(struct epoch_lines *t, const struct rows_seen *open, uint64_t now_ns)
{
    char line[EPOCH_LINE_BYTES];
    epoch_lines_flush(t, now_ns);
    const bool is_begun = !open->is_over && !open->is_endless && open->applied > 0;
    if (!is_begun || open->epoch + open->epochs < 2) return;
    write_open(open, line, sizeof line);
    t->say(line);
}

static void begin(struct epoch_lines *t, const struct rows_seen *r, uint64_t now_ns)
{
    t->has_some = t->is_each = true;
    t->since_ns = now_ns;
    t->from = t->end = r->epoch;
    t->each = r->rows;
    t->of = (struct rows_seen){.is_endless = r->is_endless};
    t->twice = t->lost = 0;
}

static void count(struct epoch_lines *t, const struct rows_seen *r)
{
    t->is_each = t->is_each && r->epochs == 1 && r->rows == t->each && r->applied == r->rows;
    t->end = r->epoch + r->epochs;
    t->of.rows += r->rows;
    t->of.applied += r->applied;
    t->of.left = r->left;
    if (r->applied > r->rows)
        t->twice += r->applied - r->rows;
    else
        t->lost += r->rows - r->applied;
}

void epoch_lines_add(struct epoch_lines *t, const struct rows_seen *r, uint64_t now_ns)
{
    const bool follows = t->has_some && !r->is_endless && !t->of.is_endless && r->epoch == t->end;
    const bool is_said_anew = t->of.is_endless && r->is_endless;
    if (t->has_some && !follows && !is_said_anew) epoch_lines_flush(t, now_ns);
    if (!t->has_some)
        begin(t, r, now_ns);
    else if (is_said_anew)
        t->of.rows = t->of.applied = t->twice = t->lost = 0;
    count(t, r);
    const bool may_say = !t->has_said || now_ns - t->said_ns >= EPOCH_LINES_EVERY_NS;
    const bool is_news = t->twice || t->lost || now_ns - t->since_ns >= EPOCH_LINES_EVERY_NS;
    if (may_say && is_news) epoch_lines_flush(t, now_ns);
}
