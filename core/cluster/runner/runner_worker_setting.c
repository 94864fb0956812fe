/* runner_worker_setting.c - what visitors change of a running job (`dtrain set`): the chief checks
 * it, keeps it beside the checkpoints, and follows it (core/train/spec/settings.h).
 *
 * One change is made at a time. A job of its own thread keeps it: one that does nothing else, or
 * the one that publishes the checkpoint from which it holds. Meanwhile `next` is the job's, and
 * `kept`, what the folder has, does not change. What the visitor is told is what came of the job:
 * where it is joined instead of waited for, what the folder has once it is looked into.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/json_foreign.h"
#include "core/base/log.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/runner/runner_worker_inside.h"

static struct set_so_far *set_of(struct runner_worker *w)
{
    return &w->folder.set;
}

/* ---- telling ---- */

/* Of a change that is kept. */
static void tell(struct runner_worker *w)
{
    const struct setting_change *c = &set_of(w)->change;
    char value[SETTING_VALUE_MAX], said[SETTING_VALUE_MAX];
    setting_text(c, value);
    setting_of_spec(w->options.spec, c->key, said);
    log_line(LOG_INFO, "from step %" PRIu64 " on %s is %s (dtrain set, by %s); the spec says %s",
             c->step, setting_table[c->key].key, value, c->who, said);
}

static void end_request(struct runner_worker *w, int code, const char *why)
{
    const uint64_t request_id = set_of(w)->request_id;
    set_of(w)->request_id = 0;
    if (!request_id) return;
    if (code)
        runner_worker_refuse(w, request_id, code, why);
    else
        runner_worker_reply(w, request_id,
                            json_pack("{sI}", "step", (json_int_t)set_of(w)->change.step));
}

/* What holds where a generation begins. */
static void tell_all(const struct runner_worker *w)
{
    const struct settings *kept = &w->folder.set.kept;
    for (int key = 0; key < SETTING_KEYS; key++) {
        const struct setting_change *c =
            settings_find(kept, w->options.spec, (enum setting_key)key);
        char value[SETTING_VALUE_MAX], said[SETTING_VALUE_MAX];
        if (!c) continue;
        setting_text(c, value);
        setting_of_spec(w->options.spec, (enum setting_key)key, said);
        log_line(LOG_INFO, "%s is %s since step %" PRIu64 " (dtrain set, by %s); the spec says %s",
                 setting_table[key].key, value, c->step, c->who, said);
    }
}

/* ---- keeping ---- */

static void follow(struct runner_worker *w)
{
    settings_apply(&set_of(w)->kept, &set_of(w)->was, w->options.spec);
}

static err find_ours(const struct runner_worker *w)
{
    bool is_ours;
    TRY(checkpoints_token_find(w->folder.directory, w->folder.token, &is_ours));
    return is_ours ? OK : fail(ERR_PEER, "%s: another chief has it by now", w->folder.directory);
}

static err keep_ours(const struct runner_worker *w, const struct settings *s)
{
    TRY(find_ours(w));
    return settings_keep(w->folder.directory, s);
}

/* In a thread: the storage may not answer for long. What fails may be there all the same, and
 * nobody is told that it holds: what was there before is written again. */
static err keep_next(struct runner_worker *w)
{
    struct set_so_far *set = set_of(w);
    char why[ERROR_TEXT_MAX];
    if (set->is_given_up) return OK;
    TRY(find_ours(w));
    const err e = settings_keep(w->folder.directory, &set->next);
    set->is_kept = e == OK;
    if (!e) set->is_unsure = false;
    if (!e) return OK;
    snprintf(why, sizeof why, "%s", error_text());
    set->is_unsure = keep_ours(w, &set->kept) != OK;
    return fail(e, "%s", why);
}

/* The checkpoint is published, whatever comes of this. */
err runner_worker_keep_setting(struct runner_worker *w)
{
    struct set_so_far *set = set_of(w);
    const err e = keep_next(w);
    if (!e || e == ERR_PEER) return e;
    set->failure = e;
    snprintf(set->why, sizeof set->why, "%s", error_text());
    return OK;
}

static void prepare(struct runner_worker *w, uint64_t step)
{
    struct set_so_far *set = set_of(w);
    set->change.step = step;
    set->next = set->kept;
    settings_add(&set->next, &set->change);
    set->is_kept = set->is_given_up = false;
    set->failure = OK;
}

static void adopt(struct runner_worker *w)
{
    struct set_so_far *set = set_of(w);
    set->kept = set->next;
    set->is_unsure = false;
    follow(w);
    tell(w);
}

/* why: of a job that has failed. */
static void end_failed(struct runner_worker *w, int code, const char *why)
{
    char text[ERROR_TEXT_MAX];
    const bool is_unsure = set_of(w)->is_unsure;
    snprintf(text, sizeof text, "it could not be kept: %.300s%s", why,
             is_unsure ? "; it may hold when all begin again: dtrain set shows it then" : "");
    end_request(w, code, text);
}

static err keep(void *context)
{
    return keep_next(context);
}

static void on_kept(void *context, err result)
{
    struct runner_worker *w = context;
    set_of(w)->is_held = false;
    if (result) {
        end_failed(w, exit_code_of(result), error_text());
    } else {
        adopt(w);
        end_request(w, EXIT_DONE, "");
    }
    task_flush(&w->task);
}

static err begin_keeping(struct runner_worker *w)
{
    struct set_so_far *set = set_of(w);
    prepare(w, worker_role_global_step(w->task.role));
    set->keeping =
        (struct task_job){.run = keep, .done = on_kept, .context = w, .loop = w->options.task.loop};
    const err e = task_job_start(&set->keeping);
    set->is_held = e == OK;
    return e;
}

/* ---- of the checkpoint that is made for it ---- */

/* The step at which the run ends where nothing is set; 0: not known. With num_steps a later chief
 * knows it from ps/0 alone, which may have it as it was set. */
static uint64_t end_of_spec(const struct runner_worker *w)
{
    const struct settings *kept = &w->folder.set.kept;
    bool is_sure = w->end.is_known;
    if (w->options.spec->train.last_step) return (uint64_t)w->options.spec->train.last_step;
    for (int i = 0; i < kept->count; i++)
        if (kept->at[i].key == SETTING_LAST_STEP && kept->at[i].number == (double)w->end.unset)
            is_sure = false;
    return is_sure ? w->end.unset : 0;
}

static err check_at(struct runner_worker *w, const struct setting_change *c, uint64_t step)
{
    return setting_check(c, w->options.spec, step, end_of_spec(w));
}

/* The job may be further than when it was asked. */
err runner_worker_setting_at(struct runner_worker *w, uint64_t step)
{
    char why[ERROR_TEXT_MAX];
    const err e = check_at(w, &set_of(w)->change, step);
    if (!e) {
        prepare(w, step);
        return OK;
    }
    snprintf(why, sizeof why, "%s", error_text());
    end_request(w, exit_code_of(e), why);
    return fail(e, "%s", why);
}

void runner_worker_give_setting_up(struct runner_worker *w)
{
    set_of(w)->is_given_up = true;
}

/* The change was kept although its checkpoint was given up: the generation ends, and all resume
 * from where it holds, as with another chief. */
static void outlive(struct runner_worker *w)
{
    const bool is_outlived =
        worker_role_outlive(w->task.role, set_of(w)->change.generation, &w->task.outbox);
    if (is_outlived)
        end_request(w, EXIT_DONE, "");
    else
        end_request(w, EXIT_LOST_PEER, CHANGE_TOO_LATE);
}

/* The checkpoint is there, and what was set is not: nothing begins anew from it. */
static void end_unkept(struct runner_worker *w, bool is_void)
{
    const struct set_so_far *set = set_of(w);
    if (!is_void) worker_role_drop_change(w->task.role);
    if (set->failure)
        end_failed(w, exit_code_of(set->failure), set->why);
    else
        end_failed(w, EXIT_FAILED, "the checkpoint was given up before");
}

/* Where the role waits for the checkpoint, it says when all is well. */
void runner_worker_setting_kept(struct runner_worker *w, err result, bool is_void)
{
    char why[ERROR_TEXT_MAX];
    set_of(w)->is_held = false;
    if (!result && set_of(w)->is_kept) {
        adopt(w);
        if (is_void) outlive(w);
        return;
    }
    if (!result) {
        end_unkept(w, is_void);
        return;
    }
    snprintf(why, sizeof why, "%s", error_text());
    end_failed(w, exit_code_of(result), why);
    (void)fail(result, "%s", why); /* as who waits for the checkpoint hears it */
}

/* That a checkpoint is given up says nothing of the job that publishes it. */
void runner_worker_changed(struct runner_worker *w, const struct action_changed *a)
{
    if (!set_of(w)->is_held) end_request(w, a->code, a->text);
}

/* ---- requests ---- */

static err read_ask(const struct message *m, json_t **ret, const char **key, const char **value,
                    const char **who)
{
    *key = NULL;
    TRY(json_read_foreign(m->body, m->body_bytes, 0, ret));
    const int failed = json_unpack(*ret, "{s?s s?s s?s}", "key", key, "value", value, "by", who);
    return failed || (*key && (!*value || !*who)) ? fail(ERR_INPUT, "expected a key and its value")
                                                  : OK;
}

/* Of a job that keeps no checkpoints there is nothing set, and nothing to be known first. */
static err check_folder(const struct runner_worker *w)
{
    if (!w->options.spec->train.checkpoint.dir) return OK;
    if (runner_worker_leads(w) && w->folder.checkpoints) return OK;
    return fail(ERR_PEER, "the chief has not opened the folder of its checkpoints yet: "
                          "try again later");
}

static err check(struct runner_worker *w, const char *key, const char *value,
                 struct setting_change *ret)
{
    TRY(setting_read(key, value, ret));
    TRY(check_at(w, ret, worker_role_global_step(w->task.role)));
    TRY(check_folder(w));
    const struct folder_jobs *j = &w->folder.jobs;
    const bool is_publishing = j->publishing.is_running && j->is_change;
    if (set_of(w)->request_id || set_of(w)->keeping.is_running || is_publishing)
        return fail(ERR_PEER, "another change is being made: try again later");
    return OK;
}

static err list(struct runner_worker *w, uint64_t request_id)
{
    TRY(check_folder(w));
    json_t *all = settings_json(&set_of(w)->kept, w->options.spec);
    runner_worker_reply(w, request_id, json_pack("{so*}", "settings", all));
    return OK;
}

static err begin(struct runner_worker *w, uint64_t request_id, struct setting_change change,
                 const char *who)
{
    struct set_so_far *set = set_of(w);
    const bool is_of_values = setting_table[change.key].is_of_values;
    const char *why = is_of_values ? worker_role_change(w->task.role, &w->task.outbox) : NULL;
    if (why) return fail(ERR_PEER, "%s", why);
    change.time_s = clock_unix_s();
    change.generation = is_of_values ? worker_role_generation(w->task.role) : 0;
    setting_note_who(&change, who);
    setting_instead_of(w->options.spec, change.key, change.instead_of);
    set->change = change;
    if (!is_of_values) TRY(begin_keeping(w));
    set->request_id = request_id;
    return OK;
}

void runner_worker_heard_setting(struct runner_worker *w, const struct message *m)
{
    json_t *json = NULL;
    const char *key, *value = NULL, *who = NULL;
    struct setting_change change;
    err e = read_ask(m, &json, &key, &value, &who);
    if (!e && !key) {
        e = list(w, m->request.request_id);
    } else {
        if (!e) e = check(w, key, value, &change);
        if (!e) e = begin(w, m->request.request_id, change, who);
    }
    if (e) runner_worker_refuse(w, m->request.request_id, exit_code_of(e), error_text());
    json_decref(json);
    task_flush(&w->task);
}

/* ---- life ---- */

uint64_t runner_worker_settings_generation(const struct runner_worker *w)
{
    const struct settings *s = &w->folder.set.kept;
    uint64_t last = 0;
    for (int i = 0; i < s->count; i++)
        if (s->at[i].generation) last = s->at[i].generation;
    return last;
}

void runner_worker_settings_open(struct runner_worker *w)
{
    struct set_so_far *set = set_of(w);
    set->kept = set->opened;
    set->is_unsure = false;
    if (!set->is_followed) set->was = w->options.spec->train;
    set->is_followed = true;
    follow(w);
    worker_role_outlive(w->task.role, runner_worker_settings_generation(w), &w->task.outbox);
}

/* The spec is as it was read: another life of the task reads it, and may not lead. */
void runner_worker_settings_close(struct runner_worker *w)
{
    struct set_so_far *set = set_of(w);
    task_job_close(&set->keeping);
    end_request(w, EXIT_LOST_PEER,
                "this worker does not lead any more: dtrain set shows whether it holds");
    set->is_held = set->is_unsure = false;
    set->kept = (struct settings){0};
    if (set->is_followed) follow(w);
    set->is_followed = false;
}

void runner_worker_settings_end(struct runner_worker *w)
{
    task_job_close(&set_of(w)->keeping);
}

/* Of a job that was joined: what the folder has is what came of it. */
static void settle(struct runner_worker *w)
{
    struct set_so_far *set = set_of(w);
    if (!set->is_held) return;
    set->is_held = false;
    const bool holds = settings_hold(&set->kept, &set->change);
    end_request(w, holds ? EXIT_DONE : EXIT_LOST_PEER,
                holds ? "" : "all began again before it was kept: try again");
}

static void tell_forgotten(int forgotten, uint64_t step)
{
    if (!forgotten) return;
    log_line(LOG_WARNING,
             "%d change%s by dtrain set after step %" PRIu64
             " %s undone: all go back to before them",
             forgotten, forgotten == 1 ? "" : "s", step, forgotten == 1 ? "is" : "are");
}

/* Another chief that has just taken the folder has it asked for once more. */
static err keep_chosen(struct runner_worker *w, const struct settings *s)
{
    const err e = keep_ours(w, s);
    return e == ERR_PEER ? fail_prefix(ERR_IO, "what is set") : e;
}

err runner_worker_settings_choose(struct runner_worker *w, uint64_t step)
{
    struct set_so_far *set = set_of(w);
    struct settings there = set->kept;
    if (!set->is_unsure) TRY(settings_load(w->folder.directory, &there));
    const int forgotten = settings_forget_after(&there, step);
    if (forgotten || set->is_unsure) TRY(keep_chosen(w, &there));
    tell_forgotten(forgotten, step);
    set->is_unsure = false;
    set->kept = there;
    follow(w);
    tell_all(w);
    settle(w);
    return OK;
}

err runner_worker_settings_begin_day(struct runner_worker *w)
{
    struct settings there = set_of(w)->kept;
    if (!settings_forget_key(&there, SETTING_LAST_STEP)) return OK;
    TRY(keep_chosen(w, &there));
    set_of(w)->kept = there;
    log_line(LOG_INFO,
             "%s was set while other files were trained on: the value of the spec holds again "
             "(train.daily)",
             setting_table[SETTING_LAST_STEP].key);
    return OK;
}

bool runner_worker_set_last_step(const struct runner_worker *w, uint64_t *ret)
{
    const struct setting_change *c =
        settings_find(&w->folder.set.kept, w->options.spec, SETTING_LAST_STEP);
    if (c) *ret = (uint64_t)c->number;
    return c != NULL;
}

/* ---- as ps/0 says ---- */

void runner_worker_note_settings(struct runner_worker *w, const struct message *m)
{
    struct set_so_far *set = set_of(w);
    double factor;
    if (m->state.state != PS_SERVING) return;
    memcpy(&factor, &m->state.rate_factor, sizeof factor);
    set->rate_factor = isfinite(factor) && factor > 0 ? factor : 1;
    const bool is_another = set->generation != m->generation;
    if (is_another && w->end.is_known && !runner_worker_leads(w)) w->end.step = m->state.last_step;
    set->generation = m->generation;
}

double runner_worker_rate_factor(const struct runner_worker *w)
{
    return w->folder.set.rate_factor > 0 ? w->folder.set.rate_factor : 1;
}
