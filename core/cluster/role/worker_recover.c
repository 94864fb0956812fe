/* worker_recover.c - a worker comes to lead, or yields, by the terms that it hears of (which ps/0
 * gives out: ps_lead.c); and the chief brings all ps to serve one generation: from a checkpoint, or
 * from the start. */
#include <stdio.h>

#include "core/cluster/role/verdict.h"
#include "core/cluster/role/worker_role_inside.h"

/* ---- who leads ---- */

int worker_chief(const struct worker_role *w)
{
    return term_chief(w->lead.term, w->options.workers);
}

static struct message *say_term(struct worker_role *w, int ps, enum leads_code code,
                                struct outbox *out)
{
    struct message *m = worker_send(w, ps, MESSAGE_LEADS, out);
    m->leads.claims = code;
    m->leads.term = w->lead.term;
    return m;
}

static struct message claim_of(const struct worker_role *w)
{
    return (struct message){
        .type = MESSAGE_LEADS,
        .task = (uint32_t)w->options.task,
        .job = JOB_WORKER,
        .generation = w->generation,
        .leads = {LEADS_CLAIMS, .term = w->lead.term, .lease_ms = w->options.limits.chief_ms},
    };
}

static void claim(struct worker_role *w, int ps, struct outbox *out)
{
    outbox_add_claim(out, (struct action_claim){ps, claim_of(w)});
    w->servers[ps].is_claimed = w->lead.term > 0;
}

void worker_role_folder_opens(struct role *role)
{
    ((struct worker_role *)role)->saving.awaits_folder = true;
}

/* The ps hear where it is, and what waited for it continues: a choice, the last checkpoint. */
void worker_role_folder_is_open(struct role *role, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    const bool sets_up = w->phase < JOINING;
    w->saving.awaits_folder = false;
    for (int ps = 0; ps < w->options.ps_count && w->lead.is_ours; ps++) {
        struct message m = claim_of(w);
        if (sets_up && w->options.limits.chief_ms) m.leads.lease_ms = w->options.limits.start_ms;
        if (w->servers[ps].contact == KNOWN) outbox_add_claim(out, (struct action_claim){ps, m});
    }
    worker_settle(w, out);
    if (w->phase == SAVING_LAST) worker_save_last(w, out);
}

/* Another ps speaks of a term that ps/0 has not given out, or has forgotten. ps/0 is asked for a
 * later one of this chief, which that ps obeys again, and so does a worker that leads by the
 * forgotten one. Until ps/0 has given it out, each link to it begins with this. */
static void outbid(struct worker_role *w, struct outbox *out)
{
    const uint64_t next = term_after(w->lead.rumoured, w->options.task, w->options.workers);
    if (w->lead.rumoured <= w->lead.term || w->servers[0].contact != KNOWN) return;
    if (next > w->lead.term + TERMS_AHEAD_MAX) return;
    say_term(w, 0, LEADS_HEARD, out)->leads.term = next;
}

/* A ps that came back empty knows of no term, nor that the job continues. */
void worker_say_term(struct worker_role *w, int ps, struct outbox *out)
{
    if (w->lead.is_ours)
        claim(w, ps, out);
    else if (!w->options.keeps_chief)
        say_term(w, ps, LEADS_HEARD, out);
    if (w->lead.is_ours && ps == 0) outbid(w, out);
}

/* A ps with few windows reads nothing more on a link whose gradient it has no window for, and the
 * workers that have the windows may wait for what this one is about to say: such a link is made
 * again. */
void worker_make_way(struct worker_role *w, struct outbox *out)
{
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        const struct server *s = &w->servers[ps];
        if (s->contact == GONE || !s->push.unheard) continue;
        outbox_log(out, "makes its link to ps/%d anew, which may not have read its last gradient",
                   ps);
        outbox_add_remake(out, (struct action_remake){ps});
        worker_lose(w, ps, out);
    }
}

static bool may_lead(const struct worker_role *w)
{
    const bool is_heard = w->lead.term > 0 && w->servers[0].contact == KNOWN;
    return worker_chief(w) == w->options.task && (worker_knows_all(w) || is_heard);
}

void worker_try_lead(struct worker_role *w, struct outbox *out)
{
    if (w->lead.is_ours || !may_lead(w)) return;
    w->lead.is_ours = true;
    w->saving.awaits_folder = false;
    w->lead.renewed_ms = w->patience.told_ms;
    if (w->lead.term) outbox_log(out, "leads from now on");
    outbox_add_lead(out, (struct action_lead){w->lead.term});
    if (w->phase == HOLDING || w->phase == JOINING) worker_make_way(w, out);
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (w->servers[ps].contact == KNOWN) claim(w, ps, out);
    if (w->phase == FINISHING) /* the final values may have gone to the chief before */
        worker_say_finished_to_all(w, out);
}

/* As a worker like others it waits for what the new chief makes of the job. */
static void yield(struct worker_role *w, struct outbox *out)
{
    outbox_log(out, "worker/%d leads from now on", worker_chief(w));
    w->lead.is_ours = false;
    w->served = w->outlived = w->lead.gone.absent = 0; /* for the other one to say */
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        server_set_setup(&w->servers[ps], NOT_READY);
        w->servers[ps].is_claimed = false;
    }
    if (w->phase == DESCRIBING || w->phase == STARTING) worker_begin_phase(w, HOLDING);
    if (w->phase == SAVING_LAST || w->phase == EVALUATING) {
        worker_begin_phase(w, FINISHING);
        worker_say_finished_to_all(w, out); /* a ps that was joined again has not heard it */
    }
    worker_abandon(w, "another worker leads", out);
    worker_forget_change(w, out);
    outbox_add_yield(out, (struct action_yield){w->lead.term});
}

/* Then it is for ps/0 to say whether there is a later one. */
static bool hears_of_terms(const struct worker_role *w)
{
    const struct server *s = &w->servers[0];
    return w->lead.is_ours || (s->contact == KNOWN && s->said.state == PS_SERVING);
}

void worker_heard_term(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    if (ps > 0 && m->leads.term > w->lead.term && hears_of_terms(w)) {
        if (w->lead.is_ours && m->leads.term > w->lead.rumoured) {
            w->lead.rumoured = m->leads.term;
            outbid(w, out);
        }
        return;
    }
    if (m->leads.term < w->lead.term && w->servers[ps].contact == KNOWN)
        worker_say_term(w, ps, out);
    if (m->leads.term <= w->lead.term) return;
    w->lead.term = m->leads.term;
    if (w->lead.is_ours) yield(w, out);
    worker_try_lead(w, out);
    worker_settle(w, out);
}

/* A lease lasts for several of these, and so does the end of a job that a signal ends. */
enum { RENEWALS = 4 };

static uint64_t renewal_ms(const struct wait_limits *limits)
{
    const bool is_end_shorter = limits->stop_ms && limits->stop_ms < limits->chief_ms;
    return ((is_end_shorter ? limits->stop_ms : limits->chief_ms) + RENEWALS - 1) / RENEWALS;
}

static void renew(struct worker_role *w, uint64_t hold_ms, struct outbox *out)
{
    const uint64_t least_ms = w->options.limits.chief_ms;
    if (!w->lead.is_ours || w->servers[0].contact != KNOWN) return;
    w->lead.renewed_ms = w->patience.told_ms;
    w->lead.is_lease_long = hold_ms > least_ms;
    say_term(w, 0, LEADS_CLAIMS, out)->leads.lease_ms = w->lead.is_lease_long ? hold_ms : least_ms;
}

/* By the clock: for ps/0 this task may be late though it could not say anything meanwhile. Reading
 * a checkpoint may take long, and is waited for as for the start. A lease that was made
 * long is as short as ever with the next tick. */
void worker_watch_lease(struct worker_role *w, struct outbox *out)
{
    const uint64_t every_ms = renewal_ms(&w->options.limits);
    const bool sets_up = w->phase < JOINING, is_too_long = w->lead.is_lease_long && !sets_up;
    const bool is_due = is_too_long || w->patience.told_ms - w->lead.renewed_ms >= every_ms;
    if (every_ms && is_due) renew(w, sets_up ? w->options.limits.start_ms : 0, out);
}

void worker_role_hold_lease(struct role *role, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    renew(w, w->options.limits.end_ms, out);
}

/* ---- what a generation begins from ---- */

static void choose(struct worker_role *w, const char *why_again, struct outbox *out)
{
    const struct action_choose choose = {
        .generation = w->participation != IN_NONE || w->served ? w->generation : 0,
        .why_again = outbox_text(out, why_again),
    };
    outbox_add_choose(out, choose);
}

/* Those that have nothing: "ps/1, ps/3" */
static void name_empty(const struct worker_role *w, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int ps = 0; ps < w->options.ps_count && used + TASK_NAME_MAX < size; ps++)
        if (w->servers[ps].said.state == PS_EMPTY)
            used += (size_t)snprintf(text + used, size - used, "%sps/%d", used ? ", " : "", ps);
}

void worker_recover(struct worker_role *w, struct outbox *out)
{
    if (w->options.limits.chief_ms) renew(w, w->options.limits.start_ms, out);
    choose(w, "", out);
}

static bool some_ps_has_values(const struct worker_role *w)
{
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (w->servers[ps].said.state == PS_SERVING) return true;
    return false;
}

static bool is_any_outlived(const struct worker_role *w)
{
    for (int ps = 0; ps < w->options.ps_count && w->outlived; ps++)
        if (w->servers[ps].said.generation == w->outlived) return true;
    return false;
}

/* A chief that has just come back knows of the training before it only that some ps have values of
 * it, which are of no use without the others'. */
static void note_choice(const struct worker_role *w, const struct choice *choice,
                        struct outbox *out)
{
    char empty[TASKS_TEXT_MAX];
    const unsigned long long step = choice->step;
    const unsigned long long lost = w->global_step > step ? w->global_step - step : 0;
    if (is_any_outlived(w) || worker_begins_where_it_was(w)) {
        const char *with = !w->lead.gone.take_part_again ? "what has been set"
                           : w->lead.gone.absent         ? "all ps that are here"
                                                         : "all ps";
        char text[64] = "";
        if (lost)
            snprintf(text, sizeof text, ", %llu step%s lost", lost, lost == 1 ? " is" : "s are");
        outbox_log(out, "all continue from step %llu with %s%s", step, with, text);
        return;
    }
    name_empty(w, empty, sizeof empty);
    const char *who = empty[0] ? empty : "a ps";
    if (w->participation == IN_NONE && !some_ps_has_values(w)) return;
    const char *why = choice->is_saved ? "" : "; there is no checkpoint";
    if (w->participation == IN_NONE)
        outbox_log(out, "%s came back empty: all go back to step %llu%s", who, step, why);
    else
        outbox_log(out, "%s came back empty: all go back to step %llu, %llu step%s are lost%s", who,
                   step, lost, lost == 1 ? "" : "s", why);
}

void worker_role_chosen(struct role *role, const struct choice *choice, struct outbox *out)
{
    struct worker_role *w = (struct worker_role *)role;
    if (w->phase == ENDED) return;
    if (choice->result) {
        worker_end(w, exit_code_of(choice->result), choice->text, out);
        return;
    }
    worker_note_absent(w);
    note_choice(w, choice, out);
    worker_abandon(w, "the ps begin again", out);
    w->generation = choice->generation;
    if (w->options.homes < w->options.ps_count)
        outbox_add_stand_in(out, (struct action_stand_in){0});
    w->arrays = choice->arrays;
    w->saving.has_saved = choice->is_saved;
    w->saving.saved_step = choice->step;
    worker_begin_phase(w, DESCRIBING);
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        server_set_setup(&w->servers[ps], NOT_READY);
        if (!worker_is_absent(w, ps)) outbox_add_describe(out, (struct action_describe){ps});
    }
}

static void fill(struct worker_role *w, int ps, uint64_t array, struct outbox *out)
{
    outbox_add_fill(out, (struct action_fill){ps, (int)array});
    struct message *m = worker_send(w, ps, MESSAGE_INIT, out);
    m->init.array = (uint32_t)array;
    m->range.end = w->servers[ps].block.block;
}

static void serve_when_ready(struct worker_role *w, struct outbox *out)
{
    for (int ps = 0; ps < w->options.ps_count; ps++)
        if (w->servers[ps].setup != IS_READY && !worker_is_absent(w, ps)) return;
    worker_begin_phase(w, STARTING);
    if (!w->lead.gone.absent) worker_save_first(w, out);
    w->served = w->generation;
    for (int ps = 0; ps < w->options.ps_count; ps++) {
        if (worker_is_absent(w, ps)) continue;
        worker_send(w, ps, MESSAGE_SERVE, out);
        server_set_setup(&w->servers[ps], WAS_TOLD);
    }
}

void worker_ready(struct worker_role *w, int ps, const struct message *m, struct outbox *out)
{
    char text[ACTION_TEXT_MAX];
    if (w->phase != DESCRIBING || w->servers[ps].setup == IS_READY) return;
    if (m->ready.outcome == READY_FAILED) {
        message_text(m, text);
        worker_begin_phase(w, HOLDING);
        choose(w, text[0] ? text : "cannot be read", out);
        return;
    }
    if (m->ready.outcome == READY_WANTS && m->ready.arrays < (uint64_t)w->arrays) {
        fill(w, ps, m->ready.arrays, out);
        return;
    }
    server_set_setup(&w->servers[ps], IS_READY);
    serve_when_ready(w, out);
}
