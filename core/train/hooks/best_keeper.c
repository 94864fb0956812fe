/* best_keeper.c - see best_keeper.h. */
#include "core/train/hooks/best_keeper.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/files/file_system.h"
#include "core/base/log.h"
#include "core/base/threads/thread.h"
#include "core/train/spec/spec.h"

/* The thread's until it is joined, except for the queue. */
struct best_copy {
    pthread_t thread;
    struct best_offer offer;
    struct best_checkpoints kept; /* including those that it has brought */
    const char *checkpoint_dir;
    err result; /* of the last one that could not be brought */
    char why[ERROR_TEXT_MAX];

    pthread_mutex_t lock;
    struct best_offer *next; /* behind it, as they came: [keep + 1] */
    int next_count;
    bool is_done; /* it takes no more */
};

static err bring(struct best_checkpoints *kept, const char *checkpoint_dir,
                 const struct best_offer *offer)
{
    TRY(best_checkpoints_offer(kept, offer->prefix, &offer->entry));
    return kept->count ? spec_copy_measured(checkpoint_dir, kept->folder) : OK;
}

err best_keep(struct best_checkpoints *kept, const char *checkpoint_dir,
              const struct best_offer *offer)
{
    struct lease *lease = NULL;
    TRY(lease_take(offer->prefix, BEST_HOLDER, &lease));
    const err e = bring(kept, checkpoint_dir, offer);
    if (!e && kept->count) best_checkpoints_sweep(kept, offer->prefix, clock_unix_s());
    lease_drop(lease);
    return e;
}

static void forget_next(struct best_copy *copy, int index)
{
    copy->next_count--;
    memmove(&copy->next[index], &copy->next[index + 1],
            (size_t)(copy->next_count - index) * sizeof *copy->next);
}

static bool take_next(struct best_copy *copy)
{
    pthread_mutex_lock(&copy->lock);
    const bool ret = copy->next_count > 0;
    if (ret) copy->offer = copy->next[0];
    if (ret) forget_next(copy, 0);
    copy->is_done = !ret;
    pthread_mutex_unlock(&copy->lock);
    return ret;
}

static void *run(void *context)
{
    struct best_copy *copy = context;
    do { /* ends: the owner queues one more each time it calls */
        const err e = best_keep(&copy->kept, copy->checkpoint_dir, &copy->offer);
        lease_let_go(copy->offer.prefix);
        if (!e) continue;
        copy->result = e;
        snprintf(copy->why, sizeof copy->why, "%s", error_text());
    } while (take_next(copy));
    return NULL;
}

static void free_copy(struct best_copy *copy)
{
    pthread_mutex_destroy(&copy->lock);
    free(copy->next);
    free(copy);
}

static err start(struct best_keeper *k, const struct best_offer *offer)
{
    struct best_copy *copy = calloc(1, sizeof *copy);
    if (!copy) return fail(ERR_MEMORY, "no memory to keep %s", offer->prefix);
    pthread_mutex_init(&copy->lock, NULL);
    copy->next = calloc((size_t)k->kept.keep + 1, sizeof *copy->next);
    copy->offer = *offer;
    copy->kept = k->kept;
    copy->checkpoint_dir = k->checkpoint_dir;
    const err e = copy->next ? thread_start(&copy->thread, run, copy)
                             : fail(ERR_MEMORY, "no memory to keep %s", offer->prefix);
    if (e)
        free_copy(copy);
    else
        k->copy = copy;
    return e;
}

/* If more wait than are kept, the worst of them is left out; of equal ones, the latest. */
static int find_worst(const struct best_copy *copy)
{
    int ret = 0;
    for (int i = 1; i < copy->next_count; i++)
        if (!better_is(copy->kept.better, copy->next[i].entry.value, copy->next[ret].entry.value))
            ret = i;
    return ret;
}

/* Behind the one under way. false: the thread is done. */
static bool queue(struct best_copy *copy, const struct best_offer *offer)
{
    pthread_mutex_lock(&copy->lock);
    const bool ret = !copy->is_done;
    if (ret) copy->next[copy->next_count++] = *offer;
    if (copy->next_count > copy->kept.keep) {
        const int worst = find_worst(copy);
        lease_let_go(copy->next[worst].prefix);
        forget_next(copy, worst);
    }
    pthread_mutex_unlock(&copy->lock);
    return ret;
}

void best_keeper_open(struct best_keeper *k, const char *checkpoint_dir)
{
    k->checkpoint_dir = checkpoint_dir;
    k->copy = NULL;
}

void best_keeper_close(struct best_keeper *k)
{
    if (best_keeper_wait(k)) log_line(LOG_WARNING, "%s", error_text());
}

/* What waits is protected from retention. */
err best_keeper_offer(struct best_keeper *k, const struct best_offer *offer)
{
    TRY(lease_hold(offer->prefix));
    if (k->copy && queue(k->copy, offer)) return OK;
    const err before = best_keeper_wait(k), e = start(k, offer);
    if (e) lease_let_go(offer->prefix);
    return e ? e : before;
}

/* An error of the storage is only a warning: it does not end training. */
err best_keeper_wait(struct best_keeper *k)
{
    struct best_copy *copy = k->copy;
    if (!copy) return OK;
    const int64_t since = k->kept.since; /* the owner may have begun another day meanwhile */
    k->copy = NULL;
    pthread_join(copy->thread, NULL);
    k->kept = copy->kept;
    best_checkpoints_begin(&k->kept, since);
    const err e = copy->result ? fail(ERR_IO, "best checkpoints: %s", copy->why) : OK;
    free_copy(copy);
    return e;
}
