/* best_keeper.c - see best_keeper.h. */
#include "core/train/hooks/best_keeper.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/files/file_system.h"
#include "core/base/threads/thread.h"
#include "core/train/spec/spec.h"

/* The thread's until is_done. */
struct best_copy {
    pthread_t thread;
    struct best_offer offer;
    struct best_checkpoints kept; /* and with this one */
    const char *checkpoint_dir;
    atomic_bool is_done;
    err result;
    char why[ERROR_TEXT_MAX];
};

static err keep(struct best_checkpoints *kept, const char *checkpoint_dir,
                const struct best_offer *offer)
{
    TRY(best_checkpoints_offer(kept, offer->prefix, &offer->entry));
    return kept->count ? spec_copy_measured(checkpoint_dir, kept->folder) : OK;
}

/* Nobody removes what is being copied. */
static err keep_leased(struct best_copy *copy)
{
    struct lease *lease = NULL;
    TRY(lease_take(copy->offer.prefix, "best", &lease));
    const err e = keep(&copy->kept, copy->checkpoint_dir, &copy->offer);
    lease_drop(lease);
    return e;
}

static void *run(void *context)
{
    struct best_copy *copy = context;
    copy->result = keep_leased(copy);
    if (copy->result) snprintf(copy->why, sizeof copy->why, "%s", error_text());
    atomic_store(&copy->is_done, true);
    return NULL;
}

static err start(struct best_keeper *k, const struct best_offer *offer)
{
    struct best_copy *copy = calloc(1, sizeof *copy);
    if (!copy) return fail(ERR_MEMORY, "no memory to keep %s", offer->prefix);
    copy->offer = *offer;
    copy->kept = k->kept;
    copy->checkpoint_dir = k->checkpoint_dir;
    const err e = thread_start(&copy->thread, run, copy);
    if (e) {
        free(copy);
        return e;
    }
    k->copy = copy;
    return OK;
}

/* Whatever the storage says is a warning: training does not end by it. */
static err collect(struct best_keeper *k)
{
    struct best_copy *copy = k->copy;
    k->copy = NULL;
    pthread_join(copy->thread, NULL);
    if (!copy->result) k->kept = copy->kept;
    const err e = copy->result ? fail(ERR_IO, "best checkpoints: %s", copy->why) : OK;
    free(copy);
    return e;
}

/* Collects what is done, and begins with the next. */
static err go_on(struct best_keeper *k)
{
    const err before = k->copy && atomic_load(&k->copy->is_done) ? collect(k) : OK;
    if (k->copy || !k->has_next) return before;
    k->has_next = false;
    const err e = start(k, &k->next);
    return e ? e : before;
}

/* Behind the one under way; the better of two. */
static void queue(struct best_keeper *k, const struct best_offer *offer,
                  struct best_checkpoint *ret_missed)
{
    const bool takes =
        !k->has_next || better_is(k->kept.better, offer->entry.value, k->next.entry.value);
    if (k->has_next) *ret_missed = takes ? k->next.entry : offer->entry;
    if (takes) k->next = *offer;
    k->has_next = true;
}

void best_keeper_open(struct best_keeper *k, const char *checkpoint_dir)
{
    k->checkpoint_dir = checkpoint_dir;
    k->copy = NULL;
    k->has_next = false;
}

void best_keeper_close(struct best_keeper *k)
{
    if (k->copy) (void)collect(k);
}

err best_keeper_offer(struct best_keeper *k, const struct best_offer *offer,
                      struct best_checkpoint *ret_missed)
{
    *ret_missed = (struct best_checkpoint){.step = -1};
    if (!path_is_url(k->kept.folder)) return keep(&k->kept, k->checkpoint_dir, offer);
    const err before = go_on(k);
    queue(k, offer, ret_missed);
    const err e = go_on(k);
    return before ? before : e;
}

err best_keeper_wait(struct best_keeper *k)
{
    err e = OK;
    while (k->copy || k->has_next) {
        err one = go_on(k);
        if (!one && k->copy) one = collect(k);
        if (one) e = one;
    }
    return e;
}
