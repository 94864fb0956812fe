/* published_to.c - train.publish.to: the folder of who serves has a run's newest checkpoints once
 * more, and there the deltas that follow them.
 */
#include <string.h>

#include "core/base/clock.h"
#include "core/base/files/url.h"
#include "core/base/log.h"
#include "core/cluster/runner/greeting.h"
#include "core/cluster/runner/runner_worker_inside.h"
#include "core/train/spec/last_spec.h"

enum { KEPT = 2 }; /* the newest, and the one before, which somebody may be about to open */

static const char *place(const struct runner_worker *w)
{
    return w->options.spec->train.checkpoint.publish.to;
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

/* A run that has begun trains on without it, until it is there again. */
err published_to_prove(const struct runner_worker *w)
{
    const char *directory = w->options.spec->train.checkpoint.dir;
    const err e = place(w) ? prove(place(w), directory) : OK;
    if (!e) return OK;
    if (e != ERR_IO || !checkpoints_has_begun(directory)) return fail_prefix(e, "train.publish.to");
    log_line(LOG_WARNING, "train.publish.to: %s", error_text());
    return OK;
}

/* Whoever leads has both folders. */
static err open_there(struct runner_worker *w)
{
    struct checkpoints *c = NULL;
    TRY(checkpoints_still_own(w->folder.checkpoints));
    TRY(checkpoints_open(place(w), &(struct retention){.keep_max = KEPT}, clock_unix_s(), &c));
    const err e = checkpoints_own(c, w->folder.token, 0, clock_unix_s());
    if (e)
        checkpoints_close(c);
    else
        w->folder.jobs.there = c;
    return e;
}

static err copy_there(struct runner_worker *w, char prefix[CHECKPOINT_PATH_MAX])
{
    struct folder_jobs *j = &w->folder.jobs;
    if (!j->there) TRY(open_there(w));
    TRY(spec_copy_measured(w->folder.directory, checkpoints_directory(j->there)));
    TRY(last_spec_keep(w->options.spec, checkpoints_directory(j->there)));
    return checkpoints_copy(j->there, j->prefix, greeting_draw_incarnation(), clock_unix_s(),
                            prefix);
}

/* Somebody may have removed what is there, or put something else in its place: after a failure it
 * is looked at anew. */
err published_to_begin(struct runner_worker *w, const struct publishing *is)
{
    struct folder_jobs *j = &w->folder.jobs;
    char prefix[CHECKPOINT_PATH_MAX];
    if (!place(w)) return publication_begin(&j->publication, w->folder.checkpoints, j->prefix, is);
    publication_forget(&j->publication);
    err e = copy_there(w, prefix);
    if (!e) e = publication_begin(&j->publication, j->there, prefix, is);
    if (!e) return OK;
    checkpoints_close(j->there);
    j->there = NULL;
    return fail_prefix(e, "to");
}

err published_to_add(struct runner_worker *w, const struct publishing *is)
{
    struct folder_jobs *j = &w->folder.jobs;
    const struct checkpoints *c = place(w) && j->there ? j->there : w->folder.checkpoints;
    return publication_add(&j->publication, c, j->folder, is, j->prefix);
}

void published_to_close(struct runner_worker *w)
{
    struct folder_jobs *j = &w->folder.jobs;
    if (j->there && !path_is_url(checkpoints_directory(j->there)))
        checkpoints_token_remove(j->there, w->folder.token);
    checkpoints_close(j->there);
    j->there = NULL;
}
