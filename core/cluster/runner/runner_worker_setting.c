/* runner_worker_setting.c - settings that visitors change in a running job (`dtrain set`): the
 * chief checks them, stores them beside the checkpoints, and applies them
 * (core/train/spec/settings.h).
 *
 * One change is made at a time. A thread stores it: one of its own, or the one that publishes the
 * checkpoint from which the change applies. Meanwhile `next` belongs to the thread, and `kept`,
 * what the folder has, does not change. The visitor is told the result; if the thread was joined
 * before its result was handled, what the folder has when it is read next.
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

/* Answers after a change was stored. */
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

/* Logs the settings at the begin of a generation. */
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

/* In a thread, as storage may be slow. A failed write may still have taken effect, although the
 * visitor is told that it failed: so the previous settings are written again. */
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

/* The checkpoint is published even if this fails. */
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

/* why: the error. */
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

/* The last step by the spec, without settings; 0: not known. With num_steps a later chief has it
 * only from ps/0, whose value may already include a setting. */
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

/* Checks again, as the job may have progressed since the request. */
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

/* The change was stored although its checkpoint was given up: the generation ends, and all resume
 * from where it applies, as after a change of chief. */
static void outlive(struct runner_worker *w)
{
    const bool is_outlived =
        worker_role_outlive(w->task.role, set_of(w)->change.generation, &w->task.outbox);
    if (is_outlived)
        end_request(w, EXIT_DONE, "");
    else
        end_request(w, EXIT_LOST_PEER, CHANGE_TOO_LATE);
}

/* The checkpoint was made, but the change was not stored: the generation continues. */
static void end_unkept(struct runner_worker *w, bool is_void)
{
    const struct set_so_far *set = set_of(w);
    if (!is_void) worker_role_drop_change(w->task.role);
    if (set->failure)
        end_failed(w, exit_code_of(set->failure), set->why);
    else
        end_failed(w, EXIT_FAILED, "the checkpoint was given up before");
}

/* If the role waits for the checkpoint, it reports success. */
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
    (void)fail(result, "%s", why); /* the error text for the code that waits for the checkpoint */
}

/* A checkpoint that was given up may still be published by the running thread. */
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

/* A job without checkpoints has no settings, and need not read any first. */
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

/* Restores the spec as read: the task may run it again, and may not be the chief then. */
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

/* After a joined job: the folder shows its result. */
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

/* If another chief has just taken the folder: ERR_IO in place of ERR_PEER, so that it is retried.
 */
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
