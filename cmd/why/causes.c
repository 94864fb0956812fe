/* causes.c - see causes.h. */
#include "cmd/why/causes.h"

#include <math.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/fields/help.h"
#include "core/cluster/role/verdict.h"

/* Thresholds */
static const double stood_still = 10, /* times as long as a usual step, and */
    stood_still_s = 5, outside = 0.3, outside_s = 10, worse = 1.2;
enum { LINES_LEAST = 4 /* of metrics, for gaps to mean anything */ };

/* ---- how it ended ---- */

static void end(const struct evidence *e, struct findings *f)
{
    const struct result_seen *r = &e->result;
    const struct logs_seen *l = &e->logs;
    const char *meaning = exit_code_text(r->code);
    if (r->is_there && r->code == EXIT_DONE)
        findings_say(f, FINDING_NOTE, "it was done at step %.0f (%s)", r->step, r->verdict.where);
    else if (r->is_there)
        findings_say(f, FINDING_WARNING, "it ended with code %d, %s%s: %s (%s)", r->code,
                     meaning ? meaning : "which no task has",
                     exit_code_is_retryable(r->code) ? ", worth another try" : "", r->verdict.text,
                     r->verdict.where);
    else if (l->cut.where[0] && !l->has_end)
        findings_say(
            f, FINDING_WARNING,
            "no log tells of an end: it runs still, or was killed (memory? dmesg) or its host is "
            "gone; the last line: %s (%s)",
            l->cut.text, l->cut.where);
    if (l->errors)
        findings_say(f, FINDING_WARNING, "the first of %d error%s: %s (%s)", l->errors,
                     l->errors == 1 ? "" : "s", l->error.text, l->error.where);
}

static void one_was_cut(const struct evidence *e, struct findings *f)
{
    const struct logs_seen *l = &e->logs;
    if (l->has_failed && l->cut.where[0])
        findings_say(
            f, FINDING_WARNING,
            "one task says nothing of an end, as the others do: was it killed? its last line: %s "
            "(%s)",
            l->cut.text, l->cut.where);
}

static void one_was_not_read(const struct evidence *e, struct findings *f)
{
    if (e->unread.where[0])
        findings_say(f, FINDING_WARNING,
                     "%s: read up to there only: what is behind in it is of lines too long to be "
                     "looked at",
                     e->unread.where);
}

/* ---- what is kept ---- */

static double last_step(const struct evidence *e)
{
    return e->result.is_there ? e->result.step : e->metrics.lines ? e->metrics.last_step : -1;
}

static void kept(const struct evidence *e, struct findings *f)
{
    const struct checkpoints_seen *k = &e->checkpoints;
    const double last = last_step(e);
    if (!k->is_there) return;
    if (k->trouble.text[0])
        findings_say(f, FINDING_WARNING, "a checkpoint is damaged: %s (%s)", k->trouble.text,
                     k->trouble.where);
    if (k->step < 0)
        findings_say(f, FINDING_WARNING, "no checkpoint can be opened: the run would start over");
    else if (last > k->step)
        findings_say(f, FINDING_WARNING,
                     "the newest checkpoint is of step %.0f: %.0f steps are lost (see "
                     "train.save_checkpoint_secs)",
                     k->step, last - k->step);
    else
        findings_say(f, FINDING_NOTE,
                     "the newest checkpoint is of step %.0f: it continues from there", k->step);
}

/* ---- lost time ---- */

static void outside_of_steps(const struct evidence *e, struct findings *f)
{
    const struct result_seen *r = &e->result;
    const double rest_s = r->wall_seconds - r->seconds;
    if (r->is_there && r->trained > 0 && rest_s > outside_s && rest_s > outside * r->wall_seconds)
        findings_say(
            f, FINDING_WARNING,
            "%.0f of %.0f s were before the first step or behind the last one: reading data, "
            "restoring, evaluating (%s)",
            rest_s, r->wall_seconds, r->verdict.where);
}

static void standing_still(const struct evidence *e, struct findings *f)
{
    const struct metrics_seen *m = &e->metrics;
    const double steps = m->last_step - m->first_step - m->gap_steps;
    if (m->lines < LINES_LEAST || m->begun_again || !(steps > 0)) return;
    const double usual_s = (m->seconds - m->gap_s) / steps * m->gap_steps;
    if (m->gap_s > stood_still_s && m->gap_s > stood_still * usual_s)
        findings_say(
            f, FINDING_WARNING,
            "for %.0f s there were %.0f steps, which take %.2g s else: logs of that time say why "
            "(%s)",
            m->gap_s, m->gap_steps, usual_s, m->gap.where);
}

static void steps_again(const struct evidence *e, struct findings *f)
{
    const struct metrics_seen *m = &e->metrics;
    if (m->begun_again && m->steps_again > 0)
        findings_say(
            f, FINDING_WARNING,
            "%.0f steps were made again after %d restart%s: checkpoints that are nearer to each "
            "other save that (%s)",
            m->steps_again, m->begun_again, m->begun_again == 1 ? "" : "s", m->path);
}

static void lines(const struct evidence *e, struct findings *f)
{
    const struct logs_seen *l = &e->logs;
    for (int kind = 0; kind < LINES; kind++)
        if (l->counts[kind])
            findings_say(f, line_rows[kind].level, "%s, in %d line%s: %s (%s)",
                         line_rows[kind].meaning, l->counts[kind], l->counts[kind] == 1 ? "" : "s",
                         l->first[kind].text, l->first[kind].where);
}

static void rows(const struct evidence *e, struct findings *f)
{
    const struct result_seen *r = &e->result;
    if (r->rows_lost > 0 || r->rows_twice > 0)
        findings_say(f, FINDING_WARNING,
                     "of the data %.0f rows are missing, %.0f counted twice (%s)", r->rows_lost,
                     r->rows_twice, r->verdict.where);
}

static void loss(const struct evidence *e, struct findings *f)
{
    const struct metrics_seen *m = &e->metrics;
    if (m->lines && isnan(m->last_loss))
        findings_say(f, FINDING_WARNING, "the last loss is no number (%s)", m->path);
    else if (m->lines >= LINES_LEAST && m->last_loss > m->first_loss)
        findings_say(f, FINDING_WARNING,
                     "the loss rose from %.4g to %.4g: a smaller learning rate? (%s)",
                     m->first_loss, m->last_loss, m->path);
    else if (m->lines >= LINES_LEAST && m->best_loss > 0 && m->last_loss > worse * m->best_loss)
        findings_say(f, FINDING_NOTE, "the loss was %.4g, and is %.4g at the end (%s)",
                     m->best_loss, m->last_loss, m->path);
}

/* ---- where steps spent their time ---- */

static void shares(const struct evidence *e, struct findings *f)
{
    static const char *const names[] = {"computing",          "waiting for data", "pushing",
                                        "waiting for others", "pulling",          "hooks"};
    double at[COUNTER_TIME_HOOKS - COUNTER_TIME_COMPUTE + 1] = {0}, all = 0;
    const struct job_status *s = &e->result.tasks;
    for (int i = 0; i < s->count; i++)
        for (int k = COUNTER_TIME_COMPUTE; k <= COUNTER_TIME_HOOKS && !s->tasks[i].is_ps; k++) {
            at[k - COUNTER_TIME_COMPUTE] += s->tasks[i].counters.at[k];
            all += s->tasks[i].counters.at[k];
        }
    if (!(all > 0)) return;
    findings_say(
        f, FINDING_NOTE,
        "of the workers' time %s was %.0f %%, %s %.0f %%, %s %.0f %%, %s %.0f %%, %s %.0f %%, %s "
        "%.0f %% (%s)",
        names[0], 100 * at[0] / all, names[1], 100 * at[1] / all, names[2], 100 * at[2] / all,
        names[3], 100 * at[3] / all, names[4], 100 * at[4] / all, names[5], 100 * at[5] / all,
        e->result.verdict.where);
}

/* Applies the rules of `dtrain status`, except for silent or missing tasks: the job has ended. */
static void as_status_says(const struct evidence *e, struct findings *f)
{
    struct finding found[FINDINGS_MAX];
    const struct job_status *s = &e->result.tasks;
    const struct job_facts facts = {.tasks = s->tasks, .count = s->count};
    for (int i = 0; i < s->count; i++) s->tasks[i].heard_ms = 0;
    const int count = rules_apply(&facts, found);
    for (int i = 0; i < count && f->count < f->most; i++)
        if (strcmp(found[i].rule, "missing") != 0) f->at[f->count++] = found[i];
}

static const struct {
    const char *name, *help;
    void (*find)(const struct evidence *, struct findings *);
} causes[] = {
    {"end", "how it ended, by its result, the first error, or a log that is cut", end},
    {"cut", "a task's log has no end where others have one with a code", one_was_cut},
    {"unread", "a file whose lines are too long was not read to its end", one_was_not_read},
    {"kept", "steps behind the newest checkpoint, damaged checkpoints", kept},
    {"outside", "more than 30 % of the time, and 10 s, was not in steps", outside_of_steps},
    {"stood_still", "10 times as long between two lines of metrics as usual, and 5 s",
     standing_still},
    {"again", "steps that were made again", steps_again},
    {"lines", "lines of logs: tasks lost, waited for, killed; checkpoints that failed", lines},
    {"rows", "rows of the data that are missing or counted twice", rows},
    {"loss", "a loss that is no number, or worse at the end", loss},
    {"shares", "where the time of steps went", shares},
    {"status", "what dtrain status finds in the counters of the result", as_status_says},
};

int causes_find(const struct evidence *e, struct finding ret[CAUSES_MAX])
{
    struct findings f = {.at = ret, .most = CAUSES_MAX};
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        f.rule = causes[i].name;
        causes[i].find(e, &f);
    }
    return f.count;
}

void causes_help(FILE *out)
{
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        help_row(out, causes[i].name, causes[i].help, HELP_SHORT_NAMES);
}
