/* published_to.c - train.publish.to: copies a run's newest checkpoints to a folder for servers, and
 * publishes the deltas after them there. A thread of its own copies, during training and later
 * checkpoints: the time for that does not count as a checkpoint's. */
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/files/url.h"
#include "core/base/log.h"
#include "core/cluster/runner/greeting.h"
#include "core/cluster/runner/runner_worker_inside.h"
#include "core/train/spec/last_spec.h"

enum { LOOK_MS = 20 /* interval for checking whether the last copy is done */ };
enum { KEPT = 2 }; /* the newest and the one before, which a server may be about to open */

static const char *place(const struct runner_worker *w) /* NULL: none, also in a replay */
{
    return w->options.task.replay ? NULL : w->options.spec->train.checkpoint.publish.to;
}

bool published_to_is_wanted(const struct runner_worker *w)
{
    return place(w);
}

static err prove(const char *to, const char *directory)
{
    char there[CHECKPOINT_PATH_MAX], here[CHECKPOINT_PATH_MAX];
    TRY(checkpoints_place(to, there));
    TRY(checkpoints_place(directory, here));
    if (strcmp(there, here) == 0)
        return fail(ERR_INPUT, "%s: is train.checkpoint_dir, where deltas go without it", to);
    TRY(checkpoints_prove(to));
    url_folder_note(to);
    return OK;
}

/* A run that has begun continues without the folder until it is available again. */
err published_to_prove(const struct runner_worker *w)
{
    const char *directory = w->options.spec->train.checkpoint.dir;
    const err e = place(w) ? prove(place(w), directory) : OK;
    if (!e) return OK;
    if (e != ERR_IO || !checkpoints_has_begun(directory)) return fail_prefix(e, "train.publish.to");
    log_line(LOG_WARNING, "train.publish.to: %s", error_text());
    return OK;
}

void published_to_note(const struct runner_worker *w)
{
    if (place(w)) url_folder_note(place(w));
}

/* ---- in the thread ---- */

/* The chief owns both folders. */
static err open_there(struct runner_worker *w)
{
    struct checkpoints *c = NULL;
    TRY(checkpoints_still_own(w->folder.checkpoints));
    TRY(checkpoints_open(place(w), &(struct retention){.keep_max = KEPT}, clock_unix_s(), &c));
    const err e = checkpoints_own(c, w->folder.token, 0, clock_unix_s());
    if (e)
        checkpoints_close(c);
    else
        w->folder.jobs.copies.there = c;
    return e;
}

static err copy_there(struct runner_worker *w, char prefix[CHECKPOINT_PATH_MAX])
{
    struct copies *c = &w->folder.jobs.copies;
    if (!c->there) TRY(open_there(w));
    TRY(spec_copy_measured(w->folder.directory, checkpoints_directory(c->there)));
    TRY(last_spec_keep(w->options.spec, checkpoints_directory(c->there)));
    return checkpoints_copy(c->there, c->now.prefix, greeting_draw_incarnation(), clock_unix_s(),
                            prefix);
}

/* After a failure the folder is read again: files in it may have been removed or replaced. */
static err copy_once(struct runner_worker *w)
{
    struct copies *c = &w->folder.jobs.copies;
    char prefix[CHECKPOINT_PATH_MAX];
    publication_forget(&c->made);
    err e = copy_there(w, prefix);
    if (!e) e = publication_begin(&c->made, c->there, prefix, &c->now.is);
    if (!e) return OK;
    checkpoints_close(c->there);
    c->there = NULL;
    return fail_prefix(e, "to");
}

static err copy_in_time(void *context)
{
    struct runner_worker *w = context;
    struct copies *c = &w->folder.jobs.copies;
    const uint64_t limit_ms = w->options.task.limits.publish_ms;
    err e = copy_once(w);
    for (uint64_t tries = 1; !c->gives_up; tries++) { /* ends: in time */
        if (!runner_worker_asks_again(&e, c->since_ms, limit_ms, "--publish_timeout", tries)) break;
        runner_worker_pause(&c->gives_up);
        if (!c->gives_up) e = copy_once(w);
    }
    c->is_done = true;
    return e;
}

/* ---- in the loop's ---- */

static const char *name_of(const char *prefix)
{
    const char *slash = strrchr(prefix, '/');
    return slash ? slash + 1 : prefix;
}

/* If a newer checkpoint is to be copied next, no deltas are published after this one. */
static void on_copied(void *context, err result)
{
    struct runner_worker *w = context;
    struct folder_jobs *j = &w->folder.jobs;
    struct copies *c = &j->copies;
    const char *name = name_of(c->now.prefix);
    const double took_s = (double)(clock_ms() - c->since_ms) * 1e-3;
    if (!result) log_line(LOG_DEBUG, "copied %s to %s in %.2f s", name, place(w), took_s);
    if (!c->has_next) {
        if (!result) j->publication = c->made;
        runner_worker_begun_publication(
            w, result ? fail_prefix(result, "%s is not copied to %s", name, place(w)) : OK);
    }
    published_to_go_on(w);
}

static void start(struct runner_worker *w)
{
    struct copies *c = &w->folder.jobs.copies;
    c->now = c->next;
    c->has_next = c->gives_up = c->is_done = false;
    c->since_ms = clock_ms();
    c->copying = (struct task_job){
        .run = copy_in_time, .done = on_copied, .context = w, .loop = w->options.task.loop};
    const err e = task_job_start(&c->copying);
    if (e) runner_worker_begun_publication(w, e);
}

void published_to_go_on(struct runner_worker *w)
{
    const struct folder_jobs *j = &w->folder.jobs;
    if (j->copies.has_next && !j->copies.copying.is_running && !j->publishing.is_running) start(w);
}

void published_to_want(struct runner_worker *w, const char *prefix, const struct publishing *is)
{
    struct folder_jobs *j = &w->folder.jobs;
    if (!place(w)) return;
    publication_forget(&j->publication);
    snprintf(j->copies.next.prefix, sizeof j->copies.next.prefix, "%s", prefix);
    j->copies.next.is = *is;
    j->copies.has_next = j->copies.gives_up = true;
    published_to_go_on(w);
}

bool published_to_is_busy(const struct runner_worker *w)
{
    return w->folder.jobs.copies.copying.is_running || w->folder.jobs.copies.has_next;
}

const char *published_to_reads(const struct runner_worker *w)
{
    const struct copies *c = &w->folder.jobs.copies;
    return c->copying.is_running ? c->now.prefix : NULL;
}

err published_to_add(struct runner_worker *w, const struct publishing *is)
{
    struct folder_jobs *j = &w->folder.jobs;
    const struct checkpoints *c =
        place(w) && j->copies.there ? j->copies.there : w->folder.checkpoints;
    return publication_add(&j->publication, c, j->folder, is, j->prefix);
}

/* ---- the end ---- */

/* At this point a signal ends the process at once. */
static void await(struct runner_worker *w, uint64_t since_ms, uint64_t limit_ms)
{
    struct copies *c = &w->folder.jobs.copies;
    uint64_t said_ms = 0, now_ms = clock_ms();
    for (; !c->is_done && now_ms - since_ms < limit_ms; now_ms = clock_ms()) { /* ends: in time */
        if (log_wait_is_due(since_ms, said_ms, now_ms)) {
            log_line(log_wait_level(now_ms - since_ms),
                     "waits for %s to be copied to %s, %llu s of "
                     "%llu s (--publish_timeout)",
                     name_of(c->now.prefix), place(w),
                     (unsigned long long)(now_ms - since_ms) / 1000,
                     (unsigned long long)limit_ms / 1000);
            said_ms = now_ms;
        }
        clock_pause(LOOK_MS);
    }
    c->gives_up = true;
}

void published_to_end(struct runner_worker *w)
{
    struct copies *c = &w->folder.jobs.copies;
    const struct wait_limits *limits = &w->options.task.limits;
    const bool is_hasty = w->task.code && limits->stop_ms < limits->publish_ms;
    const uint64_t since_ms = clock_ms(), limit_ms = task_has_resized(&w->task) ? 0
                                                     : is_hasty                 ? limits->stop_ms
                                                                : limits->publish_ms;
    runner_worker_end_files(w);
    published_to_go_on(w);
    while (c->copying.is_running) { /* ends: no further copy is begun */
        char why[ACTION_TEXT_MAX];
        await(w, since_ms, limit_ms);
        task_job_close(&c->copying);
        const err e = c->copying.result;
        snprintf(why, sizeof why, "%s", c->copying.text);
        on_copied(w, e ? fail(e, "%s", why) : OK);
    }
}

void published_to_close(struct runner_worker *w)
{
    struct copies *c = &w->folder.jobs.copies;
    c->gives_up = true;
    c->has_next = false;
    task_job_close(&c->copying);
    if (c->there && !path_is_url(checkpoints_directory(c->there)))
        checkpoints_token_remove(c->there, w->folder.token);
    checkpoints_close(c->there);
    c->there = NULL;
}
