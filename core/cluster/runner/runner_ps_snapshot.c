/* runner_ps_snapshot.c - this ps' shard of a checkpoint: copied at once, written by a thread.
 *
 * A ps that shares the chief's folder writes there. Another one writes to a local temporary folder
 * and sends the files to the chief, a piece whenever the link is idle.
 *
 * A checkpoint may be given up while this shard is being written, and the chief may have removed
 * the folder, and ended, before the shard is complete. So the ps removes its shard then, too; the
 * last one also removes the empty folder.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/files/own.h"
#include "core/base/files/url.h"
#include "core/base/log.h"
#include "core/cluster/runner/runner_ps_inside.h"
#include "core/cluster/runner/job.h"
#include "core/train/checkpoint/checkpoints.h"
#include "core/train/checkpoint/delta.h"

enum { PIECE_BYTES = 1 << 20 };

/* The files of the last shard in the chief's folder, until the next one. */
struct snapshot_files {
    uint64_t tag;
    bool is_dropped;
    char prefix[CHECKPOINT_PATH_MAX];
};

struct snapshot_job {
    struct runner_ps *ps;
    struct share *share; /* owns the slices' names */
    struct shard shard;  /* of copies */
    int64_t coverage[COVERAGE_COLUMNS];
    int64_t *data; /* for `shard` */
    float *memory;
    struct runner_ps_tables *tables; /* held */
    struct table_changes *changes;   /* [shard.table_count] of a delta */
    struct shard_table *told;        /* the shard's tables, if `tables` is not held */
    char folder[CHECKPOINT_PATH_MAX], prefix[CHECKPOINT_PATH_MAX];
    struct action_snapshot action;
    struct task_job writing;
    struct snapshot_files *before; /* files of a dropped checkpoint, which the thread removes first;
                                      NULL: none */
    _Atomic bool is_dropped;

    bool is_remote;
    enum shard_file sending; /* remote, after writing */
    int send_fd;             /* -1: none open */
    uint64_t sent;
    char *piece;
};

/* ---- the copy ---- */

static err copy_arrays(struct snapshot_job *job, const struct runner_ps *p)
{
    runner_ps_describe_shard(p, &job->shard);
    const bool is_averaged = job->shard.slot_names[0].is_averaged; /* one slot is the average */
    if (job->action.since && !is_averaged) job->shard.slot_count = 0;
    size_t bytes = runner_ps_block_bytes(p), arrays = 1 + (size_t)job->shard.slot_count;
    job->memory = malloc(bytes * arrays + 1);
    job->shard.ledger =
        calloc((size_t)job->shard.workers * LEDGER_COLUMNS, sizeof *job->shard.ledger);
    if (!job->memory || !job->shard.ledger)
        return fail(ERR_MEMORY, "no memory to copy %zu bytes for a checkpoint", bytes * arrays);
    struct device *d = p->device;
    char *at = (char *)job->memory;
    d->kernels->download(d, at, job->shard.values, bytes);
    job->shard.values = (float *)at;
    for (int i = 0; i < job->shard.slot_count; i++) {
        at += bytes;
        d->kernels->download(d, at, job->shard.slots[i], bytes);
        job->shard.slots[i] = (float *)at;
    }
    return d->kernels->synchronize(d);
}

/* Without memory the identity of the data is left out, as in checkpoints of other programs. */
static void copy_data(struct snapshot_job *job, const struct runner_ps *p)
{
    const struct data_identity *data = &job->share->setup.data;
    int count;
    const int64_t *queue = ps_role_queue(p->task.role, &count);
    if (!data->rows && !count) return;
    int64_t *numbers = malloc((IDENTITY_NUMBERS + (size_t)count) * sizeof *numbers);
    if (!numbers) return;
    numbers[0] = data->rows;
    numbers[1] = data->order;
    if (count) memcpy(numbers + IDENTITY_NUMBERS, queue, (size_t)count * sizeof *numbers);
    job->data = numbers;
    job->shard.data = numbers;
    job->shard.data_count = IDENTITY_NUMBERS + count;
}

static void copy_ledger(struct snapshot_job *job, const struct runner_ps *p)
{
    static_assert((int)COVERAGE_COLUMNS == (int)COVERAGE_NUMBERS, "of a checkpoint and of a role");
    const struct coverage *coverage = ps_role_coverage(p->task.role);
    if (coverage->share.rows) {
        coverage_numbers(coverage, job->coverage);
        job->shard.coverage = job->coverage;
    }
    copy_data(job, p);
    static_assert((int)LEDGER_COLUMNS == (int)LEDGER_NUMBERS, "a row of a checkpoint is a ledger");
    for (int w = 0; w < job->shard.workers; w++)
        ledger_numbers(ps_role_ledger(p->task.role, w),
                       job->shard.ledger + (ptrdiff_t)w * LEDGER_COLUMNS);
}

/* ---- where to ---- */

static err choose_folder(struct snapshot_job *job)
{
    const struct action_snapshot *a = &job->action;
    const char *temporary = getenv("TMPDIR");
    if (!job->is_remote) {
        TRY(checkpoint_temporary_folder(job->share->setup.directory, a->step, a->tag, job->folder));
        /* Other ps are asked after the folder was created: if it is missing, the checkpoint was
         * given up. */
        if (job->ps->task.index == 0) TRY(checkpoint_make_folder(job->folder));
    } else {
        snprintf(job->folder, sizeof job->folder, "%s/dtrain-XXXXXX",
                 temporary && temporary[0] ? temporary : "/tmp");
        if (!mkdtemp(job->folder))
            return fail(ERR_IO, "%s (TMPDIR): %s", job->folder, strerror(errno));
    }
    checkpoint_shard_prefix(job->folder, a->shard, a->shards, job->prefix);
    return OK;
}

/* ---- the end of a job ---- */

static void close_job(struct snapshot_job *job)
{
    struct runner_ps *p = job->ps;
    task_job_close(&job->writing);
    if (job->send_fd >= 0) close(job->send_fd);
    if (job->is_remote && job->prefix[0]) {
        if (bundle_remove(job->prefix)) log_line(LOG_WARNING, "%s", error_text());
        rmdir(job->folder);
    }
    runner_ps_tables_release(job->tables);
    runner_ps_changes_free(job->changes, job->shard.table_count);
    free(job->told);
    free(job->before);
    share_release(job->share);
    free(job->memory);
    free(job->shard.ledger);
    free(job->data);
    free(job->piece);
    free(job);
    p->saving.job = NULL;
}

/* The chief logs step, reason and ps of the failure: if it is connected, this ps logs it at debug
 * level only. */
static void tell_failure(struct runner_ps *p, const struct snapshot_job *job)
{
    const bool is_heard = p->task.peers[ps_role_chief(p->task.role)].link != NULL;
    log_line(is_heard ? LOG_DEBUG : LOG_WARNING, "the checkpoint of step %llu failed: %s",
             (unsigned long long)job->action.step, error_text());
}

static void keep_files(struct runner_ps *p, const struct snapshot_job *job)
{
    struct snapshot_files *last = calloc(1, sizeof *last); /* without memory the chief removes them
                                                            */
    if (!last) return;
    last->tag = job->action.tag;
    last->is_dropped = job->is_dropped;
    memcpy(last->prefix, job->prefix, sizeof last->prefix);
    p->saving.last = last;
}

static void finish(struct snapshot_job *job, err result)
{
    struct runner_ps *p = job->ps;
    if (!job->is_remote) keep_files(p, job);
    if (result && log_again(++p->saving.failed)) tell_failure(p, job);
    task_done(&p->task, ACTION_SNAPSHOT, result);
    close_job(job);
    task_flush(&p->task);
}

/* Not on a server, which may have just failed: there the chief removes leftovers. */
static void remove_here(const char *prefix)
{
    if (!path_is_url(prefix)) checkpoint_remove_shard(prefix);
}

/* Removes this shard of a checkpoint that was given up. After a mere failure it stays: the chief
 * removes the folder when it is told the reason. If the folder were removed here, another ps could
 * fail first for lack of it, and hide the cause. Keeps the error text of e. */
static void remove_dropped(const struct snapshot_job *job, err e)
{
    char said[ERROR_TEXT_MAX];
    if (job->is_remote || !job->is_dropped) return;
    snprintf(said, sizeof said, "%s", error_text());
    remove_here(job->prefix);
    if (e) (void)fail(e, "%s", said);
}

/* If another ps could not write its shard, the chief removes the files, then the folder. */
static err write_shard(void *context)
{
    struct snapshot_job *job = context;
    if (job->before) remove_here(job->before->prefix);
    TRY(choose_folder(job));
    err e = job->action.since ? delta_write(&job->shard, job->changes, job->prefix)
                              : shard_write(&job->shard, job->prefix);
    remove_dropped(job, e);
    if (e != ERR_IO || !strstr(error_text(), strerror(ENOENT))) return e;
    return fail(e, "the checkpoint of step %llu was given up, and its folder is removed",
                (unsigned long long)job->shard.global_step);
}

static void on_written(void *context, err result)
{
    struct snapshot_job *job = context;
    if (result || !job->is_remote) finish(job, result);
}

/* The ps may be set up anew, with other tables, while a delta is being written. */
static err copy_changes(struct snapshot_job *job, struct runner_ps *p)
{
    const size_t bytes = (size_t)job->shard.table_count * sizeof *job->told;
    job->told = malloc(bytes + 1);
    if (!job->told) return fail(ERR_MEMORY, "no memory for a delta");
    if (bytes) memcpy(job->told, job->shard.tables, bytes);
    job->shard.tables = job->told;
    return runner_ps_tables_take(p, job->action.since, job->action.tag, &job->changes);
}

/* For a checkpoint tables are read while they are written out; for a delta their changes are
 * copied. */
static err copy_tables(struct snapshot_job *job, struct runner_ps *p)
{
    const struct action_snapshot *a = &job->action;
    if (a->since) return copy_changes(job, p);
    job->tables = runner_ps_tables_hold(p);
    if (job->share->setup.publishes) runner_ps_tables_note(p, a->tag);
    return OK;
}

static err start(struct snapshot_job *job, struct runner_ps *p, const struct action_snapshot *a)
{
    job->is_remote = !p->saving.sees_folder;
    job->action = *a;
    if (!job->share->setup.directory) return fail(ERR_INPUT, "there is no checkpoint_dir");
    TRY(copy_arrays(job, p));
    job->shard.global_step = a->step;
    copy_ledger(job, p);
    TRY(copy_tables(job, p));
    if (p->saving.last && p->saving.last->is_dropped)
        job->before = p->saving.last;
    else
        free(p->saving.last);
    p->saving.last = NULL;
    job->writing = (struct task_job){
        .run = write_shard,
        .done = on_written,
        .context = job,
        .loop = p->task.options.loop,
    };
    return task_job_start(&job->writing);
}

err runner_ps_snapshot(struct runner_ps *p, const struct action_snapshot *a)
{
    struct snapshot_job *job = calloc(1, sizeof *job);
    if (!job) return fail(ERR_MEMORY, "no memory for a checkpoint");
    job->ps = p;
    job->share = p->share;
    job->share->users++;
    job->send_fd = -1;
    err e = start(job, p, a);
    p->saving.job = job;
    if (e) close_job(job);
    return e;
}

/* ---- to a chief with a folder of its own ---- */

static err open_file(struct snapshot_job *job)
{
    char path[CHECKPOINT_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s%s", job->prefix,
             job->sending == SHARD_DATA ? ".data-00000-of-00001" : ".index");
    job->send_fd = own_open(path, O_RDONLY);
    job->sent = 0;
    return job->send_fd >= 0 ? OK : fail(ERR_IO, "%s: %s", path, strerror(errno));
}

static err send_piece(struct snapshot_job *job, struct link *link, bool *ret_is_sent)
{
    if (!job->piece) job->piece = malloc(PIECE_BYTES);
    if (!job->piece) return fail(ERR_MEMORY, "no memory for a piece of a checkpoint");
    if (job->send_fd < 0) TRY(open_file(job));
    ssize_t got = pread(job->send_fd, job->piece, PIECE_BYTES, (off_t)job->sent);
    if (got < 0) return fail(ERR_IO, "%s: %s", job->prefix, strerror(errno));
    const struct message m = {
        .type = MESSAGE_SHARD,
        .task = (uint32_t)job->ps->task.index,
        .job = JOB_PS,
        .generation = job->share->setup.config.generation,
        .shard = {job->sending, .tag = job->action.tag, .offset = job->sent},
        .body = job->piece,
        .body_bytes = (uint32_t)got,
    };
    if (got) TRY(link_send(link, &m));
    job->sent += (uint64_t)got;
    *ret_is_sent = got > 0;
    return OK;
}

void runner_ps_snapshot_pump(struct runner_ps *p)
{
    struct snapshot_job *job = p->saving.job;
    struct link *link = p->task.peers[ps_role_chief(p->task.role)].link;
    if (!job || job->writing.is_running || !job->is_remote) return;
    if (!link) {
        finish(job, fail(ERR_PEER, "the chief is gone"));
        return;
    }
    if (!link_is_idle(link)) return;
    bool is_sent = false;
    err e = send_piece(job, link, &is_sent);
    if (!e && is_sent) return;
    if (job->send_fd >= 0) close(job->send_fd);
    job->send_fd = -1;
    if (e || job->sending == SHARD_INDEX)
        finish(job, e);
    else
        job->sending = SHARD_INDEX;
}

void runner_ps_snapshot_drop(struct runner_ps *p, uint64_t tag)
{
    if (p->saving.job && p->saving.job->action.tag == tag) p->saving.job->is_dropped = true;
    if (p->saving.last && p->saving.last->tag == tag) p->saving.last->is_dropped = true;
}

/* Removes a shard that was not reported to the chief: it belongs to no checkpoint. */
void runner_ps_snapshot_close(struct runner_ps *p)
{
    struct snapshot_job *job = p->saving.job;
    if (job) {
        job->is_dropped = true;
        task_job_close(&job->writing);
        if (!job->is_remote) remove_here(job->prefix);
        close_job(job);
    }
    if (p->saving.last && p->saving.last->is_dropped) remove_here(p->saving.last->prefix);
    free(p->saving.last);
    p->saving.last = NULL;
}
