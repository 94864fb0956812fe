/* evaluator.c - `dtrain --job_name=evaluator ... SPEC.json`: evaluates the checkpoints of a run as
 * they appear, and ends with the job.
 *
 * It takes no part in training: it reads the run's folder, and connects to ps/0 to hear how the job
 * ends. It leases a checkpoint while reading it, so that the chief does not remove it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cmd/run/evaluated_checkpoints.h"
#include "cmd/run/task_parts.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/standard_output.h"
#include "core/cluster/runner/storage.h"
#include "core/cluster/visit/visitor.h"
#include "core/train/checkpoint/ended.h"
#include "core/train/hooks/best_keeper.h"
#include "core/train/hooks/values.h"
#include "core/train/session/session.h"
#include "core/train/spec/day.h"
#include "core/train/summary/events.h"

enum {
    LOOK_MS = 500,   /* between two scans of the folder */
    AGAIN_MS = 5000, /* before a checkpoint is tried again after an I/O error */
};

/* How the job ended, from its folder, when ps/0 was gone before it could say so. */
struct end_in_folder {
    uint64_t before; /* token of the folder's previous job */
    struct visitor_verdict verdict;
};

struct evaluator {
    struct run *run;
    struct device device;
    struct session session;
    struct visitor *visitor;
    char events_folder[CHECKPOINT_PATH_MAX];
    struct events *events; /* NULL: not opened yet, or refused */
    bool has_events;       /* opening was tried */
    struct best_checkpoints best;
    int best_value; /* index for evaluation_value() */
    struct evaluated_checkpoints evaluated;
    uint64_t looked_ms, absent_ms, noted_ms,
        end_looked_ms; /* absent_ms: since when ps/0 is unreachable */
    bool is_up, was_up;
    struct end_in_folder missed;
    bool is_blind; /* the folder could not be listed */
    struct log_limit behind;
    uint64_t failed_ms, failures;
    err last; /* of evaluating the newest checkpoint */
    char last_text[ERROR_TEXT_MAX];
    err check; /* evaluation_check() of the newest evaluation */
    char check_text[ERROR_TEXT_MAX];
};

/* ---- what is reported ---- */

static void print_line(const struct evaluator *v, int64_t step, const struct evaluation *e)
{
    char text[EVALUATION_TEXT_MAX];
    struct result_lines lines;
    fprintf(result_lines_begin(&lines), "%s\n",
            evaluation_text(&v->session, e, (uint64_t)step, "eval", text));
    result_lines_end(&lines);
}

static err open_events(struct evaluator *v)
{
    if (v->has_events) return OK;
    v->has_events = true;
    return events_open(v->events_folder, clock_unix_s(), "", &v->events);
}

static err write_events(struct evaluator *v, int64_t step, const struct evaluation *e)
{
    TRY(open_events(v));
    return v->events ? evaluation_record(&v->session, e, v->events, clock_unix_s(), (uint64_t)step)
                     : OK;
}

/* With train.daily only checkpoints of the current day's files compete: earlier ones were measured
 * with other data. */
static err begin_day(struct evaluator *v)
{
    int64_t step;
    const struct train_spec *train = &v->run->spec.train;
    if (!train->daily) return OK;
    TRY(day_step(train->checkpoint.dir, &step));
    best_checkpoints_begin(&v->best, step);
    return OK;
}

static err keep_best(struct evaluator *v, const struct best_offer *offer)
{
    if (!v->best.keep) return OK;
    TRY(begin_day(v));
    if (offer->entry.step <= v->best.since) return OK;
    return best_keep(&v->best, v->run->spec.train.checkpoint.dir, offer);
}

/* Write errors are logged: a full disk does not end the evaluator. */
static void report(struct evaluator *v, struct bundle *bundle, int64_t step,
                   const struct evaluation *e)
{
    struct best_offer offer = {.entry = {step, evaluation_value(e, v->best_value)}};
    snprintf(offer.prefix, sizeof offer.prefix, "%s", bundle_prefix(bundle));
    print_line(v, step, e);
    if (write_events(v, step, e)) log_line(LOG_WARNING, "summaries: %s", error_text());
    if (keep_best(v, &offer)) log_line(LOG_WARNING, "best checkpoints: %s", error_text());
}

/* ---- one checkpoint ---- */

static err evaluate_bundle(struct evaluator *v, struct bundle *bundle, struct lease *lease)
{
    struct evaluation evaluation;
    TRY(session_restore(&v->session, bundle));
    TRY(session_evaluate(&v->session, &evaluation));
    if (lease_renew(lease)) log_line(LOG_WARNING, "%s", error_text());
    report(v, bundle, checkpoint_step(bundle_prefix(bundle)), &evaluation);
    v->check = evaluation_check(&evaluation);
    snprintf(v->check_text, sizeof v->check_text, "step %lld: %s",
             (long long)checkpoint_step(bundle_prefix(bundle)), v->check ? error_text() : "");
    return OK;
}

static err evaluate(struct evaluator *v, const char *prefix)
{
    struct lease *lease;
    struct bundle *bundle;
    TRY(lease_take(prefix, "evaluator", &lease));
    err e = bundle_open(prefix, &bundle);
    if (!e) {
        e = evaluate_bundle(v, bundle, lease);
        bundle_close(bundle);
    }
    lease_drop(lease);
    return e;
}

/* Notes the error: at the end it counts whether the newest checkpoint could be evaluated. Only a
 * failed GPU (ERR_LOST) ends the evaluator. */
static err evaluate_noted(struct evaluator *v, const char *prefix)
{
    v->last = evaluate(v, prefix);
    if (!v->last) return OK;
    if (v->last == ERR_LOST) return fail_prefix(ERR_LOST, "%s", prefix);
    snprintf(v->last_text, sizeof v->last_text, "%s: %s", prefix, error_text());
    v->failed_ms = clock_ms();
    if (log_again(++v->failures)) log_line(LOG_WARNING, "not evaluated: %s", v->last_text);
    return OK;
}

/* If the checkpoint is gone, it was removed and does not count; but the newest one is tried again,
 * as storage may have failed or the file may reappear. */
static err evaluate_if_there(struct evaluator *v, const char *prefix, bool is_newest)
{
    const err before = v->last;
    TRY(evaluate_noted(v, prefix));
    if (v->last != ERR_INPUT || evaluated_checkpoints_has(prefix)) return OK;
    v->last = is_newest ? ERR_IO : before;
    return OK;
}

/* ---- the folder ---- */

static bool has_step(char **prefixes, int count, int64_t step)
{
    for (int i = 0; i < count; i++)
        if (checkpoint_step(prefixes[i]) == step) return true;
    return false;
}

/* Warns of checkpoints that were removed before they could be evaluated. */
static void note_missed(struct evaluator *v, char **prefixes, int count)
{
    int missed = 0;
    int64_t last = 0;
    for (int i = 0; i < v->evaluated.count; i++) {
        const struct evaluated_checkpoint *one = &v->evaluated.at[i];
        if (one->is_tried || has_step(prefixes, count, one->step)) continue;
        missed++;
        last = one->step;
    }
    if (missed)
        log_limited(&v->behind, clock_ms(), LOG_WARNING,
                    "falls behind: %d checkpoint%s removed before it came to %s, the last of step "
                    "%lld: keep more (train.keep_checkpoint_max), save less often, or evaluate "
                    "fewer rows (data.eval)",
                    missed, missed == 1 ? " was" : "s were", missed == 1 ? "it" : "them",
                    (long long)last);
}

/* Evaluates new ones, oldest first. */
static err evaluate_new(struct evaluator *v, char **prefixes, int count)
{
    note_missed(v, prefixes, count);
    TRY(evaluated_checkpoints_follow(&v->evaluated, prefixes, count));
    for (int i = 0; i < count; i++) {
        const bool is_newest = i == count - 1;
        if (v->evaluated.at[i].is_tried) continue;
        if (!is_newest && !evaluated_checkpoints_has(prefixes[i])) continue;
        if (is_newest && v->last == ERR_IO && clock_ms() - v->failed_ms < AGAIN_MS) return OK;
        TRY(evaluate_if_there(v, prefixes[i], is_newest));
        if (is_newest && v->last == ERR_IO) return OK;
        if (evaluated_checkpoints_note(&v->evaluated, i, !v->last))
            log_line(LOG_WARNING, "%s", error_text());
    }
    return OK;
}

/* A folder that is missing or has no checkpoint yet is no error. */
static err look(struct evaluator *v)
{
    char **prefixes;
    int count;
    v->looked_ms = clock_ms();
    err e = checkpoint_list(v->run->spec.train.checkpoint.dir, &prefixes, &count);
    v->is_blind = e == ERR_IO;
    if (e) return OK;
    e = evaluate_new(v, prefixes, count);
    free(prefixes);
    return e;
}

/* ---- the job ---- */

/* Whether to look in the folder for the job's end: ps/0 has been unreachable for a while. */
static bool looks_for_end(struct evaluator *v, double waited_s, uint64_t now_ms)
{
    enum { GONE_S = 3, END_LOOK_MS = 5000 };
    if (!v->was_up || waited_s < GONE_S || now_ms - v->end_looked_ms < END_LOOK_MS) return false;
    v->end_looked_ms = now_ms;
    return true;
}

/* Finds the end of this job in the folder, not of the previous one. ERR_IO: to be tried again */
static err find_end(struct evaluator *v)
{
    struct ended ended;
    struct visitor_verdict *verdict = &v->missed.verdict;
    const char *folder = v->run->spec.train.checkpoint.dir;
    TRY(ended_find(folder, 0, &ended));
    verdict->has_come = ended.token && ended.token != v->missed.before;
    if (!verdict->has_come) {
        verdict->has_come = job_had_ended(v->run); /* with the code EXIT_DONE */
        return OK;
    }
    log_line(LOG_INFO, "no other task answers, and %s says how the job ended", folder);
    verdict->code = ended.code;
    snprintf(verdict->text, sizeof verdict->text, "%s", ended.text);
    return OK;
}

/* Logs now and then that ps/0 is unreachable, and fails at the limit. */
static err watch_ps(struct evaluator *v)
{
    uint64_t now_ms = clock_ms();
    if (visitor_is_up(v->visitor, 0)) {
        if (!v->is_up) log_line(LOG_DEBUG, "ps/0 is here");
        v->is_up = v->was_up = true;
        v->absent_ms = v->noted_ms = now_ms;
        return OK;
    }
    v->is_up = false;
    const char *flag = v->was_up ? "--restart_timeout" : "--start_timeout";
    const struct wait_limits *limits = &v->run->flags.limits;
    double limit = (double)(v->was_up ? limits->restart_ms : limits->start_ms) / 1000;
    double waited = (double)(now_ms - v->absent_ms) / 1000;
    char address[ADDRESS_MAX];
    cluster_find(&v->run->cluster, JOB_PS, 0, address);
    const char *trouble = visitor_trouble(v->visitor, 0);
    if ((waited >= limit || looks_for_end(v, waited, now_ms)) && find_end(v))
        log_line(LOG_DEBUG, "%s", error_text());
    if (v->missed.verdict.has_come) return OK;
    if (waited >= limit)
        return fail(ERR_TIMEOUT, "ps/0 at %s did not come within %.3g s (%s): %s", address, limit,
                    flag, trouble);
    if (!log_wait_is_due(v->absent_ms, v->noted_ms, now_ms)) return OK;
    v->noted_ms = now_ms;
    log_line(log_wait_level(now_ms - v->absent_ms), "waiting for ps/0 at %s: %s, %.0f s of %.0f s",
             address, trouble, waited, limit);
    return OK;
}

/* Evaluates the last checkpoints; retries I/O errors until --restart_timeout. */
static err look_at_last(struct evaluator *v)
{
    const uint64_t since_ms = clock_ms(), limit_ms = v->run->flags.limits.restart_ms;
    TRY(look(v));
    while (v->is_blind || v->last == ERR_IO) { /* ends: it has a limit in time */
        if (clock_ms() - since_ms >= limit_ms)
            return fail(ERR_TIMEOUT, "%s, for %llu s (--restart_timeout)",
                        v->is_blind ? error_text() : v->last_text,
                        (unsigned long long)limit_ms / 1000);
        clock_pause(LOOK_MS);
        TRY(look(v));
    }
    return OK;
}

/* *ret_code: the job's. Fails if the job is done but its last checkpoint could not be evaluated. */
static err end(struct evaluator *v, int *ret_code)
{
    const struct visitor_verdict *verdict =
        v->missed.verdict.has_come ? &v->missed.verdict : visitor_verdict(v->visitor);
    TRY(look_at_last(v));
    if (!v->evaluated.count)
        log_line(LOG_WARNING, "the job has ended without a checkpoint in %s",
                 v->run->spec.train.checkpoint.dir);
    *ret_code = verdict->code;
    report_end(verdict->code, verdict->text);
    if (verdict->code != EXIT_DONE) return OK;
    if (v->last) return fail(v->last, "%s", v->last_text);
    return v->check ? fail(v->check, "the last evaluation: %s", v->check_text) : OK;
}

/* On SIGUSR1: logs what it does and waits for. */
static void report_state(const struct evaluator *v)
{
    const bool is_up = visitor_is_up(v->visitor, 0);
    task_report_memory("evaluator");
    log_line(LOG_INFO, "ps/0: %s", is_up ? "here" : visitor_trouble(v->visitor, 0));
    const struct evaluated_checkpoints *evaluated = &v->evaluated;
    if (evaluated->count > 0)
        log_line(LOG_INFO, "waits for the next checkpoint in %s, after step %lld",
                 v->run->spec.train.checkpoint.dir,
                 (long long)evaluated->at[evaluated->count - 1].step);
    else
        log_line(LOG_INFO, "waits for a first checkpoint in %s", v->run->spec.train.checkpoint.dir);
}

static err follow(struct evaluator *v, int *ret_code)
{
    v->absent_ms = v->noted_ms = clock_ms();
    task_watch_report();
    while (!visitor_verdict(v->visitor)->has_come) {
        if (task_report_is_wanted()) report_state(v);
        TRY(visitor_refusal(v->visitor));
        TRY(watch_ps(v));
        if (v->missed.verdict.has_come) break;
        if (clock_ms() - v->looked_ms >= LOOK_MS) TRY(look(v));
        visitor_poll(v->visitor, LOOK_MS);
    }
    return end(v, ret_code);
}

/* ---- life ---- */

/* Finds the value of an evaluation that --best_metric names. */
static err find_metric(struct evaluator *v)
{
    const char *names[HOOK_VALUES_MAX], *wanted = v->run->flags.best.metric;
    int count = evaluation_names(&v->session, names);
    v->best_value = text_find(names, count, wanted);
    if (v->best_value >= 0) return OK;
    const struct suggestion near = suggest(wanted, names, count);
    return fail(ERR_INPUT, "--best_metric=%.64s: the spec has no such metric%s", wanted, near.text);
}

/* Opens what it writes: summaries, the list of evaluated checkpoints, the best ones. ERR_INPUT,
 * which is not retried: no permission to create the folder. */
static err open_kept(struct evaluator *v)
{
    const struct run_flags *flags = &v->run->flags;
    const int keep = (int)flags->best.count;
    const err e = events_own_folder(v->events_folder);
    struct ended before;
    if (e) return errno == EACCES ? ERR_INPUT : e;
    TRY(ended_find(v->run->spec.train.checkpoint.dir, 0, &before));
    v->missed.before = before.token;
    TRY(evaluated_checkpoints_open(&v->evaluated, v->events_folder, keep));
    return best_checkpoints_open(&v->best, v->run->spec.train.checkpoint.dir, flags->best.metric,
                                 evaluation_better(&v->session, v->best_value), keep);
}

static err open_files(struct evaluator *v)
{
    const struct train_spec *train = &v->run->spec.train;
    const char *folder = train->summary.dir ? train->summary.dir : train->checkpoint.dir;
    TRY(folder_join(folder, "eval", v->events_folder));
    const uint64_t since_ms = clock_ms();
    err e = open_kept(v);
    while (storage_is_asked_again(e, v->events_folder, &v->run->flags.limits, since_ms))
        e = open_kept(v); /* ends: it has a limit */
    if (!e) url_folder_note(train->checkpoint.dir);
    return e;
}

static err open_session(struct evaluator *v)
{
    const struct run *run = v->run;
    const struct session_options options = {
        .spec = &run->spec,
        .device = &v->device,
        .workers = run->cluster.hosts[JOB_WORKER].count,
        .ps_count = 1,
        .batches_per_push = 1,
        .only_evaluates = true,
    };
    if (!run->spec.train.checkpoint.dir)
        return fail(ERR_INPUT, "an evaluator needs train.checkpoint_dir");
    if (!run->spec.data.eval.format.kind) return fail(ERR_INPUT, "an evaluator needs data.eval");
    if (run->flags.best.count && run->spec.train.evaluation.keep_best)
        return fail(ERR_INPUT, "--keep_best: the run itself keeps the best (train.keep_best); use "
                               "one of the two");
    TRY(session_open(&options, &v->session));
    TRY(find_metric(v));
    return open_files(v);
}

static err serve(struct evaluator *v, struct loop *loop, int *ret_code)
{
    const struct visitor_options options = {.loop = loop,
                                            .ps_hosts = &v->run->cluster.hosts[JOB_PS],
                                            .cluster = &v->run->cluster,
                                            .only_first = true};
    err e = open_session(v);
    if (!e) e = visitor_open(&options, &v->visitor);
    if (!e) e = follow(v, ret_code);
    visitor_close(v->visitor);
    events_close(v->events);
    session_close(&v->session);
    evaluated_checkpoints_close(&v->evaluated);
    return e;
}

int run_evaluator(struct run *run)
{
    struct evaluator evaluator = {.run = run};
    struct loop *loop;
    int code = EXIT_DONE;
    err e = run_open_loop(run, &loop);
    if (e) return report_error(e);
    e = open_device(run, &evaluator.device);
    if (!e) {
        e = serve(&evaluator, loop, &code);
        device_close(&evaluator.device);
    }
    loop_close(loop);
    return e ? report_error(e) : code;
}
