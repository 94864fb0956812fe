/* worker_save.c - the chief's side of a checkpoint: the folder, shards that come from afar,
 * and publishing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/task/greeting.h"
#include "core/cluster/task/worker_inside.h"
#include "core/train/checkpoint/bundle/file.h"

static err open_folder(struct worker_task *w)
{
    const struct train_spec *train = &w->options.spec->train;
    const struct retention retention = {
        .keep_max = train->keep_checkpoint_max,
        .keep_every_hours = train->keep_checkpoint_every_n_hours,
    };
    TRY(checkpoints_open(train->checkpoint_dir, &retention, clock_unix_s(), &w->checkpoints));
    TRY(spec_keep_measured(w->options.spec,
                           w->session.features ? w->session.features : w->options.spec->features,
                           train->checkpoint_dir));
    w->saving.has_litter = true; /* ps may be writing for the life before, or the chief before */
    return checkpoints_own(w->checkpoints, w->token, clock_unix_s());
}

err worker_prove_checkpoints(const struct worker_task *w)
{
    const char *directory = w->options.spec->train.checkpoint_dir;
    if (!directory || w->options.task.cluster->task != CHIEF) return OK;
    const err e = checkpoints_prove(directory);
    return e ? fail_prefix(e, "train.checkpoint_dir") : OK;
}

err worker_open_checkpoints(struct worker_task *w)
{
    if (!w->options.spec->train.checkpoint_dir) return OK;
    const err e = open_folder(w);
    return e ? fail_prefix(e, "train.checkpoint_dir") : OK;
}

/* A ps makes the folder too, before the chief or after it heard of a failure. It is done with that
 * when it has written its shard of a later checkpoint. */
static void remove_litter(struct worker_task *w)
{
    const bool is_ours = w->checkpoints &&
                         checkpoints_token_is_seen(checkpoints_directory(w->checkpoints), w->token);
    if (w->saving.has_litter && is_ours) checkpoints_sweep(w->checkpoints, clock_unix_s());
    w->saving.has_litter = false;
}

void worker_close_checkpoints(struct worker_task *w)
{
    task_job_close(&w->saving.publishing);
    remove_litter(w);
    worker_origin_close(w);
    if (w->checkpoints) checkpoints_token_remove(w->checkpoints, w->token);
    checkpoints_close(w->checkpoints);
    w->checkpoints = NULL;
}

static void told_saved(struct worker_task *w, const char *prefix, const char *why)
{
    const struct occasion saved = {OCCASION_SAVED, .saved = {prefix, why}};
    worker_told(w, worker_tell(w, w->saving.step, &saved));
}

void worker_begin_files(struct worker_task *w, const struct action_begin *a)
{
    struct saving_files *s = &w->saving;
    s->step = a->step;
    s->tag = a->tag;
    s->shards = a->shards;
    s->result = OK;
    s->began_ns = clock_ns();
    err e = checkpoints_begin(w->checkpoints, a->step, a->tag, s->folder);
    if (e) task_done(&w->task, ACTION_BEGIN, e);
}

/* ---- shards of ps that do not see the folder ---- */

static err write_piece(const struct worker_task *w, int ps, const struct message *m)
{
    char prefix[CHECKPOINT_PATH_MAX], path[CHECKPOINT_PATH_MAX + 32];
    const int shard = worker_role_shard(w->task.role, ps);
    checkpoint_shard_prefix(w->saving.folder, shard, w->saving.shards, prefix);
    snprintf(path, sizeof path, "%s%s", prefix,
             m->code == SHARD_DATA ? ".data-00000-of-00001" : ".index");
    return bundle_file_piece(path, (int64_t)m->offset, m->body, m->body_bytes);
}

void worker_take_shard(struct worker_task *w, int ps, const struct message *m)
{
    struct saving_files *s = &w->saving;
    if (!w->checkpoints || m->sequence != s->tag || !m->body || s->result) return;
    s->result = write_piece(w, ps, m);
    if (s->result) snprintf(s->why, sizeof s->why, "%s", error_text());
}

/* ---- publishing ---- */

static err publish(void *context)
{
    struct worker_task *w = context;
    struct saving_files *s = &w->saving;
    if (s->result) return fail(s->result, "%s", s->why);
    TRY(checkpoints_publish(w->checkpoints, s->folder, s->shards, s->step, clock_unix_s(),
                            s->prefix));
    remove_litter(w);
    return OK;
}

/* From a chief that did not know yet of this one; or this one does not know yet of the next. */
static void take_folder_again(struct worker_task *w)
{
    char why[ERROR_TEXT_MAX];
    snprintf(why, sizeof why, "%s", error_text());
    if (checkpoints_own(w->checkpoints, w->token, clock_unix_s()))
        log_line(LOG_WARNING, "%s", error_text());
    (void)fail(ERR_PEER, "%s", why);
}

static void on_published(void *context, err result)
{
    struct worker_task *w = context;
    if (result == ERR_PEER) take_folder_again(w);
    if (!result) {
        log_line(LOG_INFO, "saved %s in %.2f s", w->saving.prefix,
                 (double)(clock_ns() - w->saving.began_ns) * 1e-9);
        told_saved(w, w->saving.prefix, "");
    }
    task_done(&w->task, ACTION_PUBLISH, result);
    task_flush(&w->task);
}

void worker_publish_files(struct worker_task *w)
{
    w->saving.publishing = (struct task_job){
        .run = publish,
        .done = on_published,
        .context = w,
        .loop = w->options.task.loop,
    };
    err e = task_job_start(&w->saving.publishing);
    if (e) task_done(&w->task, ACTION_PUBLISH, e);
}

void worker_abandon_files(struct worker_task *w, const struct action_abandon *a)
{
    struct saving_files *s = &w->saving;
    task_job_close(&s->publishing);
    s->failures++;
    if (log_again(s->failures))
        log_line(LOG_WARNING,
                 "the checkpoint of step %llu failed: %s (%llu failed since the start)",
                 (unsigned long long)a->step, a->why, (unsigned long long)s->failures);
    if (a->is_begun) checkpoints_abandon(w->checkpoints, s->folder);
    s->has_litter = true;
    s->tag = 0;
    told_saved(w, NULL, a->why);
}
