/* runner_worker_save.c - the chief's side of a checkpoint: the folder, shards received from other
 * hosts, and publishing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/files/url.h"
#include "core/base/log.h"
#include "core/cluster/runner/greeting.h"
#include "core/cluster/runner/runner_worker_inside.h"
#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/ended.h"
#include "core/train/spec/last_spec.h"

/* ---- the folder ---- */

enum {
    STORAGE_PAUSE_MS = 1000,
    STORAGE_LOOK_MS = 100,
    /* the least time between checkpoints that cannot be published, and how often it is doubled:
     * they displace others in the folder */
    UNPUBLISHED_MS = 60000,
    UNPUBLISHED_TWICE_MAX = 6,
};

/* Pauses before the next attempt; shorter once *gives_up. */
void runner_worker_pause(const _Atomic bool *gives_up)
{
    for (int ms = 0; ms < STORAGE_PAUSE_MS && !*gives_up; ms += STORAGE_LOOK_MS)
        clock_pause(STORAGE_LOOK_MS);
}

bool runner_worker_asks_again(err *e, uint64_t since_ms, uint64_t limit_ms, const char *flag,
                              uint64_t tries)
{
    char why[ERROR_TEXT_MAX];
    const unsigned long long waited_s = (clock_ms() - since_ms) / 1000, limit_s = limit_ms / 1000;
    if (*e != ERR_IO) return false;
    snprintf(why, sizeof why, "%s", error_text());
    if (waited_s >= limit_s) {
        *e = fail(ERR_TIMEOUT, "%s, for %llu s (%s)", why, limit_s, flag);
        return false;
    }
    if (log_again(tries))
        log_line(LOG_WARNING, "%s; tries again, %llu s of %llu s (%s)", why, waited_s, limit_s,
                 flag);
    return true;
}

static uint64_t resizes_of(const struct runner_worker *w)
{
    return w->options.task.cluster->resizes;
}

/* In the loop's thread or the job's */
static err open_once(struct runner_worker *w, struct checkpoints **ret)
{
    const struct train_spec *train = &w->options.spec->train;
    const struct retention retention = {
        .keep_max = train->checkpoint.keep_max,
        .keep_every_hours = train->checkpoint.keep_every_n_hours,
    };
    struct checkpoints *c = NULL;
    TRY(checkpoints_open(w->folder.directory, &retention, clock_unix_s(), &c));
    err e = spec_keep_measured(w->options.spec,
                               w->session.data.features ? w->session.data.features
                                                        : w->options.spec->features,
                               w->folder.directory);
    if (!e) e = last_spec_keep(w->options.spec, w->folder.directory);
    if (!e) e = checkpoints_own(c, w->folder.token, resizes_of(w), clock_unix_s());
    if (!e) e = ended_remove(w->folder.directory);
    if (!e) e = settings_load(w->folder.directory, &w->folder.set.opened);
    if (!e)
        *ret = c;
    else
        checkpoints_close(c);
    return e;
}

static err open_in_time(void *context)
{
    struct runner_worker *w = context;
    struct folder_jobs *j = &w->folder.jobs;
    const uint64_t limit_ms = w->options.task.limits.restart_ms;
    err e = open_once(w, &j->opened);
    for (uint64_t tries = 1; !j->gives_up; tries++) { /* ends: limited in time */
        if (!runner_worker_asks_again(&e, j->opening_since_ms, limit_ms, "--restart_timeout",
                                      tries))
            break;
        runner_worker_pause(&j->gives_up);
        e = open_once(w, &j->opened);
    }
    return e;
}

static err take_opened(struct runner_worker *w, err result)
{
    w->folder.checkpoints = w->folder.jobs.opened;
    w->folder.jobs.opened = NULL;
    if (w->folder.checkpoints)
        snprintf(w->folder.directory, sizeof w->folder.directory, "%s",
                 checkpoints_directory(w->folder.checkpoints));
    return result ? fail_prefix(result, "train.checkpoint_dir") : OK;
}

static void on_opened(void *context, err result)
{
    struct runner_worker *w = context;
    const err e = take_opened(w, result);
    runner_worker_told(w, e);
    if (!e) runner_worker_settings_open(w);
    if (!e) worker_role_folder_is_open(w->task.role, &w->task.outbox);
    task_flush(&w->task);
}

static err prove(const struct runner_worker *w)
{
    const char *directory = w->options.spec->train.checkpoint.dir;
    const err e = checkpoints_prove(directory);
    if (e) return fail_prefix(e, "train.checkpoint_dir");
    url_folder_note(directory);
    return published_to_prove(w);
}

/* Puts off a server's denial until this task leads: it is an error if the job only begins, but a
 * job in progress had access before, and expired credentials may be renewed. After url_folder_note
 * such a denial is ERR_IO, which may pass; what only a person can fix is still an error. */
static err put_off(struct runner_worker *w, err e)
{
    char why[ERROR_TEXT_MAX];
    const bool is_url = path_is_url(w->options.spec->train.checkpoint.dir);
    if (e != ERR_INPUT || !is_url || task_is_inside(&w->options.task)) return e;
    snprintf(why, sizeof why, "%s", error_text());
    url_folder_note(w->options.spec->train.checkpoint.dir);
    published_to_note(w);
    const err again = prove(w);
    if (again != ERR_IO) return again;
    snprintf(w->folder.refusal, sizeof w->folder.refusal, "%s", why);
    log_line(LOG_WARNING, "%s; this task ends unless the job is already in progress",
             w->folder.refusal);
    return OK;
}

err runner_worker_prove_checkpoints(struct runner_worker *w)
{
    const char *directory = w->options.spec->train.checkpoint.dir;
    const uint64_t since_ms = clock_ms(), limit_ms = w->options.task.limits.start_ms;
    if (!directory || w->options.task.cluster->task != CHIEF) return OK;
    err e = prove(w);
    const bool may_wait = path_is_url(directory) || checkpoints_has_begun(directory);
    for (uint64_t tries = 1; e && may_wait; tries++) { /* ends: in time */
        if (!runner_worker_asks_again(&e, since_ms, limit_ms, "--start_timeout", tries)) break;
        runner_worker_pause(&w->folder.jobs.gives_up);
        e = prove(w);
    }
    return e ? put_off(w, e) : OK;
}

void runner_worker_end_files(struct runner_worker *w)
{
    task_job_close(&w->folder.jobs.publishing); /* both use the list of checkpoints */
    task_job_close(&w->folder.jobs.removing);
    runner_worker_settings_end(w);
    w->folder.jobs.is_void = false;
}

static err pause_beside(void *context)
{
    const struct runner_worker *w = context;
    runner_worker_pause(&w->folder.jobs.gives_up);
    return OK;
}

static void on_paused(void *context, err result)
{
    struct runner_worker *w = context;
    (void)result;
    worker_role_folder_is_open(w->task.role, &w->task.outbox);
    task_flush(&w->task);
}

bool runner_worker_looks_again(struct runner_worker *w, err *e)
{
    struct folder_jobs *j = &w->folder.jobs;
    const uint64_t limit_ms = w->options.task.limits.restart_ms;
    if (!runner_worker_asks_again(e, w->origin.since_ms, limit_ms, "--restart_timeout", ++j->looks))
        return false;
    j->gives_up = false;
    j->opening = (struct task_job){
        .run = pause_beside, .done = on_paused, .context = w, .loop = w->options.task.loop};
    worker_role_folder_opens(w->task.role);
    *e = task_job_start(&j->opening);
    return *e == OK;
}

/* In a thread, so that a slow disk or server does not delay the chief's messages. Failures are
 * retried: the folder was writable before the job began. */
err runner_worker_open_checkpoints(struct runner_worker *w)
{
    struct folder_jobs *j = &w->folder.jobs;
    const char *directory = w->options.spec->train.checkpoint.dir;
    if (!directory) return OK;
    if (w->folder.refusal[0] && !worker_role_is_in_progress(w->task.role))
        return fail(ERR_INPUT, "%s", w->folder.refusal);
    w->folder.refusal[0] = '\0';
    url_folder_note(directory); /* the first chief has proved access */
    const err e = checkpoints_place(directory, w->folder.directory);
    if (e == ERR_IO) /* a disk failure; the folder is created when it is opened */
        snprintf(w->folder.directory, sizeof w->folder.directory, "%s",
                 w->hooks.view.checkpoint_dir);
    else if (e)
        return fail_prefix(e, "train.checkpoint_dir");
    w->saving.has_litter = true; /* ps may still be writing for an earlier incarnation or chief */
    j->gives_up = false;
    j->opening_since_ms = clock_ms();
    j->opening = (struct task_job){
        .run = open_in_time,
        .done = on_opened,
        .context = w,
        .loop = w->options.task.loop,
    };
    worker_role_folder_opens(w->task.role);
    return task_job_start(&j->opening);
}

/* A ps creates the folder too, before the chief or after it heard of a failure. It has finished
 * with that when it has written its shard of a later checkpoint. */
static void remove_litter(struct runner_worker *w)
{
    if (checkpoints_token_is_seen(w->folder.directory, w->folder.token))
        checkpoints_sweep(w->folder.checkpoints, clock_unix_s());
}

/* So that a chief restarted with its first flags learns that tasks of a later membership may exist.
 */
static void note_resize(struct runner_worker *w)
{
    const uint64_t resizes = w->task.resizes_to.resizes;
    if (!checkpoints_token_is_seen(w->folder.directory, w->folder.token)) return;
    if (checkpoints_own(w->folder.checkpoints, w->folder.token, resizes, clock_unix_s()))
        log_line(LOG_WARNING, "%s", error_text());
}

/* Notes the end of the job for tasks that are away. Not if only this worker ends. */
static void write_end(const struct runner_worker *w)
{
    const struct task *t = &w->task;
    struct ended ended = {.token = w->folder.token, .code = t->code};
    if (!t->has_ended || t->ends_with == ENDS_ALONE || worker_role_has_left(t->role)) return;
    if (task_is_inside(&t->options)) return;
    snprintf(ended.text, sizeof ended.text, "%.*s", ERROR_TEXT_MAX - 1, t->text);
    if (ended_write(w->folder.directory, &ended)) log_line(LOG_WARNING, "%s", error_text());
}

/* Does not wait for a server that failed the last time. Then the token stays, as of a chief that
 * was killed: a ps that misses the token while the chief is gone would conclude that the folder is
 * not shared, for which a restart does not help. */
static void leave_folder(struct runner_worker *w)
{
    if (!w->folder.checkpoints || (path_is_url(w->folder.directory) && w->saving.is_away)) return;
    if (w->saving.has_litter) remove_litter(w);
    if (task_has_resized(&w->task)) {
        note_resize(w);
        return;
    }
    write_end(w);
    if (!w->saving.is_looked_for) checkpoints_token_remove(w->folder.checkpoints, w->folder.token);
}

void runner_worker_close_checkpoints(struct runner_worker *w)
{
    struct folder_jobs *j = &w->folder.jobs;
    j->gives_up = true;
    task_job_close(&j->opening);
    task_job_close(&j->publishing);
    task_job_close(&j->removing);
    runner_worker_settings_close(w);
    runner_worker_origin_close(w);
    leave_folder(w);
    published_to_close(w);
    checkpoints_close(w->folder.checkpoints);
    checkpoints_close(j->opened);
    w->folder.checkpoints = j->opened = NULL;
    w->saving.has_litter = w->saving.is_looked_for = j->is_void = false;
    j->looks = 0;
    publication_forget(&j->publication); /* another chief may publish from now on */
    w->folder.directory[0] = '\0';
}

static void told_saved(struct runner_worker *w, const char *prefix, const char *why)
{
    const struct occasion saved = {OCCASION_SAVED, .saved = {prefix, why}};
    runner_worker_told(w, runner_worker_tell(w, w->saving.step, &saved));
}

/* An abandoned one may still be in progress at a server that does not answer. */
static err begin_files(struct runner_worker *w, const struct action_begin *a)
{
    struct saving_files *s = &w->saving;
    TRY(checkpoint_temporary_folder(w->folder.directory, a->step, a->tag, s->folder));
    if (!w->folder.checkpoints)
        return fail(ERR_IO, "%s could not be opened yet", w->folder.directory);
    if (w->folder.jobs.publishing.is_running)
        return fail(ERR_IO, "%s: the checkpoint before is still being written",
                    w->folder.directory);
    return checkpoint_make_folder(s->folder);
}

void runner_worker_begin_files(struct runner_worker *w, const struct action_begin *a)
{
    struct saving_files *s = &w->saving;
    s->step = a->step;
    s->tag = a->tag;
    s->shards = a->shards;
    s->result = OK;
    s->takes = true;
    memset(s->came, 0, (size_t)w->task.peer_count * sizeof *s->came);
    s->began_ns = clock_ns();
    err e = begin_files(w, a);
    if (e) task_done(&w->task, ACTION_BEGIN, e);
}

/* ---- shards of ps that do not see the folder ---- */

static err write_piece(const struct runner_worker *w, int ps, const struct message *m)
{
    char prefix[CHECKPOINT_PATH_MAX], path[CHECKPOINT_PATH_MAX + 32];
    const int shard = worker_role_shard(w->task.role, ps);
    checkpoint_shard_prefix(w->saving.folder, shard, w->saving.shards, prefix);
    snprintf(path, sizeof path, "%s%s", prefix,
             m->shard.file == SHARD_DATA ? ".data-00000-of-00001" : ".index");
    return bundle_file_piece(path, (int64_t)m->shard.offset, m->body, m->body_bytes);
}

/* Pieces must be consecutive: a peer must not make a sparse file of any size. */
static err take_piece(const struct runner_worker *w, int ps, const struct message *m)
{
    char text[MESSAGE_BREACH_MAX];
    if (message_fault(m, FROM_PS) || !message_is_within(m, &message_ends_of_all, text))
        return fail(ERR_PROTOCOL, "ps/%d sent a piece of no file of its shard", ps);
    uint64_t *came = &w->saving.came[ps][m->shard.file];
    if (m->shard.offset != *came)
        return fail(ERR_PROTOCOL, "ps/%d sent bytes from %llu on of its shard, not from %llu on",
                    ps, (unsigned long long)m->shard.offset, (unsigned long long)*came);
    TRY(write_piece(w, ps, m));
    *came += m->body_bytes;
    return OK;
}

void runner_worker_take_shard(struct runner_worker *w, int ps, const struct message *m)
{
    struct saving_files *s = &w->saving;
    if (!w->folder.checkpoints || !s->takes || m->shard.tag != s->tag || !m->body || s->result)
        return;
    s->result = take_piece(w, ps, m);
    if (s->result) snprintf(s->why, sizeof s->why, "%s", error_text());
}

/* ---- publishing ---- */

/* Takes the folder back from a chief that did not know of this one yet; or this one does not know
 * of the next. */
static err take_folder_again(struct runner_worker *w)
{
    char why[ERROR_TEXT_MAX];
    snprintf(why, sizeof why, "%s", error_text());
    if (checkpoints_own(w->folder.checkpoints, w->folder.token, resizes_of(w), clock_unix_s()))
        log_line(LOG_WARNING, "%s", error_text());
    return fail(ERR_PEER, "%s", why);
}

/* A replay does not publish: servers get the values of the run itself. */
static bool publishes(const struct runner_worker *w)
{
    return w->options.spec->train.checkpoint.publish.every_secs > 0 && !w->options.task.replay;
}

/* On failure the next publication is a whole checkpoint. */
void runner_worker_begun_publication(struct runner_worker *w, err e)
{
    struct folder_jobs *j = &w->folder.jobs;
    if (e) log_line(LOG_WARNING, "train.publish: %s", error_text());
    j->not_published = e ? j->not_published + 1 : 0;
}

static err count_shards(const char *prefix, int *ret)
{
    struct bundle *bundle;
    TRY(bundle_open(prefix, &bundle));
    *ret = bundle_shards(bundle);
    bundle_close(bundle);
    return OK;
}

/* A chief that was stopped may take the folder between a checkpoint and its publication. After the
 * last checkpoint there is no later chance to report that. */
static err begin_publication(struct runner_worker *w, const char *prefix,
                             const struct publishing *is)
{
    struct folder_jobs *j = &w->folder.jobs;
    const err e = publication_begin(&j->publication, w->folder.checkpoints, prefix, is);
    if (e != ERR_PEER) return e;
    TRY(checkpoints_take_again(w->folder.checkpoints));
    return publication_begin(&j->publication, w->folder.checkpoints, prefix, is);
}

err runner_worker_publish_made(struct runner_worker *w, const char *prefix)
{
    struct publishing is = {.step = (uint64_t)checkpoint_step(prefix), .time_s = clock_unix_s()};
    if (!publishes(w)) return OK;
    TRY(count_shards(prefix, &is.shards));
    published_to_want(w, prefix, &is);
    if (published_to_is_wanted(w)) return OK;
    return begin_publication(w, prefix, &is);
}

static err publish_checkpoint(struct runner_worker *w)
{
    struct folder_jobs *j = &w->folder.jobs;
    const struct publishing is = {j->shards, j->step, j->taken_s};
    TRY(checkpoints_publish(w->folder.checkpoints, j->folder, j->shards, j->step, clock_unix_s(),
                            j->prefix));
    if (j->is_change) TRY(runner_worker_keep_setting(w));
    if (j->publishes && !published_to_is_wanted(w))
        runner_worker_begun_publication(w, begin_publication(w, j->prefix, &is));
    return OK;
}

static err publish_changes(struct runner_worker *w)
{
    struct folder_jobs *j = &w->folder.jobs;
    const struct publishing is = {j->shards, j->step, j->taken_s};
    return published_to_add(w, &is);
}

static err publish(void *context)
{
    struct runner_worker *w = context;
    struct folder_jobs *j = &w->folder.jobs;
    const err e = j->since ? publish_changes(w) : publish_checkpoint(w);
    if (e == ERR_PEER) return take_folder_again(w);
    if (!e && j->has_litter) remove_litter(w);
    return e;
}

static void count_saved(struct runner_worker *w, uint64_t step)
{
    double *const at = w->task.counting.counters.at;
    w->saving.own_step = step;
    w->saving.own_tag = w->folder.jobs.tag;
    at[COUNTER_CHECKPOINTS]++;
    at[COUNTER_CHECKPOINT_STEP] = (double)step;
    at[COUNTER_CHECKPOINT_TIME] = clock_unix_s();
    at[COUNTER_CHECKPOINT_SECONDS] = (double)(clock_ns() - w->saving.began_ns) * 1e-9;
}

static void count_published(struct runner_worker *w)
{
    double *const at = w->task.counting.counters.at;
    const struct folder_jobs *j = &w->folder.jobs;
    const struct published *last = &j->publication.deltas[j->publication.count - 1];
    at[COUNTER_DELTAS]++;
    at[COUNTER_DELTA_BYTES] += (double)last->bytes;
    log_line(LOG_DEBUG, "published %s, %lld bytes, in %.2f s", j->prefix, (long long)last->bytes,
             (double)(clock_ns() - w->saving.began_ns) * 1e-9);
}

static void on_published(void *context, err result)
{
    struct runner_worker *w = context;
    struct folder_jobs *j = &w->folder.jobs;
    w->saving.has_litter |= result && j->has_litter;
    if (result == ERR_PEER) w->saving.own_step = w->saving.own_tag = 0;
    if (j->is_change) runner_worker_setting_kept(w, result, j->is_void);
    if (!result && j->since) {
        w->saving.is_away = false;
        count_published(w);
    } else if (!result) {
        w->saving.is_away = false;
        log_line(LOG_INFO, "saved %s in %.2f s", j->prefix,
                 (double)(clock_ns() - w->saving.began_ns) * 1e-9);
        count_saved(w, j->step);
        if (publishes(w))
            published_to_want(w, j->prefix, &(struct publishing){j->shards, j->step, j->taken_s});
        told_saved(w, j->prefix, "");
    }
    published_to_go_on(w);
    if (!j->is_void) task_done(&w->task, ACTION_PUBLISH, result);
    j->is_void = false;
    task_flush(&w->task);
}

static uint64_t pause_ms(const struct folder_jobs *j, uint64_t every_ms)
{
    const int twice = j->not_published - 1;
    const uint64_t rest_ms =
        twice < 0 ? 0
                  : (uint64_t)UNPUBLISHED_MS
                        << (twice < UNPUBLISHED_TWICE_MAX ? twice : UNPUBLISHED_TWICE_MAX);
    return rest_ms > every_ms ? rest_ms : every_ms;
}

void runner_worker_publish_in_time(struct runner_worker *w, uint64_t now_ms)
{
    const struct folder_jobs *j = &w->folder.jobs;
    const double every_secs = w->options.spec->train.checkpoint.publish.every_secs;
    if (!publishes(w) || !w->folder.checkpoints || !runner_worker_leads(w)) return;
    if (j->publishing.is_running || j->opening.is_running || published_to_is_busy(w)) return;
    if (now_ms < w->folder.published_ms + pause_ms(j, (uint64_t)(every_secs * 1000))) return;
    const bool is_begun = publication_wants_full(&j->publication)
                              ? worker_role_save(w->task.role, &w->task.outbox)
                              : worker_role_save_changes(w->task.role, &w->task.outbox);
    if (is_begun) w->folder.published_ms = now_ms;
}

void runner_worker_publish_files(struct runner_worker *w, const struct action_publish *a)
{
    const struct saving_files *s = &w->saving;
    struct folder_jobs *j = &w->folder.jobs;
    snprintf(j->folder, sizeof j->folder, "%s", s->folder);
    j->shards = s->shards;
    j->step = s->step;
    j->tag = a->tag;
    j->since = a->since;
    j->taken_s = clock_unix_s() - (double)(clock_ns() - s->began_ns) * 1e-9;
    j->has_litter = s->has_litter;
    j->is_change = a->is_change;
    j->publishes = publishes(w);
    w->saving.has_litter = w->saving.takes =
        false; /* leftovers from now on are for the next sweep */
    j->publishing = (struct task_job){
        .run = publish,
        .done = on_published,
        .context = w,
        .loop = w->options.task.loop,
    };
    checkpoints_hold(w->folder.checkpoints, published_to_reads(w));
    err e = s->result ? fail(s->result, "%s", s->why) : OK;
    if (!e && j->is_change) e = runner_worker_setting_at(w, s->step);
    if (!e) e = task_job_start(&j->publishing);
    if (!e) w->folder.set.is_held |= j->is_change;
    if (e) task_done(&w->task, ACTION_PUBLISH, e);
}

static err remove_files(void *context)
{
    struct runner_worker *w = context;
    checkpoints_abandon(w->folder.checkpoints, w->folder.jobs.removed);
    return OK;
}

static void on_removed(void *context, err result)
{
    (void)context, (void)result;
}

/* If the job cannot be started, the next sweep removes them. */
static void remove_beside(struct runner_worker *w)
{
    struct folder_jobs *j = &w->folder.jobs;
    if (j->removing.is_running || !w->folder.checkpoints) return;
    snprintf(j->removed, sizeof j->removed, "%s", w->saving.folder);
    j->removing = (struct task_job){
        .run = remove_files,
        .done = on_removed,
        .context = w,
        .loop = w->options.task.loop,
    };
    if (task_job_start(&j->removing)) log_line(LOG_WARNING, "%s", error_text());
}

/* Does not wait for one that is being published: that continues to its end. */
void runner_worker_abandon_files(struct runner_worker *w, const struct action_abandon *a)
{
    struct saving_files *s = &w->saving;
    const uint64_t failures = a->since ? ++s->delta_failures : ++s->failures;
    s->is_away = true;
    if (log_again(failures))
        log_line(LOG_WARNING, "the %s of step %llu failed: %s (%llu failed since the start)",
                 a->since ? "delta" : "checkpoint", (unsigned long long)a->step, a->why,
                 (unsigned long long)failures);
    if (w->folder.jobs.publishing.is_running) {
        w->folder.jobs.is_void = true;
        if (w->folder.jobs.is_change) runner_worker_give_setting_up(w);
    } else if (a->is_begun) {
        remove_beside(w);
    }
    s->has_litter = true;
    s->takes = false;
    s->tag = 0;
    if (!a->since) told_saved(w, NULL, a->why);
}
