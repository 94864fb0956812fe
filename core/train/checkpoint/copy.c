/* copy.c - copies a checkpoint to another folder. */
#include <stdio.h>

#include "core/train/checkpoint/checkpoints_inside.h"

void checkpoints_hold(struct checkpoints *c, const char *prefix)
{
    snprintf(c->held, sizeof c->held, "%s", prefix ? prefix : "");
}

err checkpoints_copy(struct checkpoints *c, const char *from, uint64_t tag, double now_s,
                     char ret_prefix[CHECKPOINT_PATH_MAX])
{
    char folder[CHECKPOINT_PATH_MAX], shard[CHECKPOINT_PATH_MAX], why[ERROR_TEXT_MAX];
    const int64_t step = checkpoint_step(from);
    if (step < 0) return fail(ERR_INPUT, "%s: its name has no step", from);
    TRY(checkpoints_begin(c, (uint64_t)step, tag, folder));
    checkpoint_shard_prefix(folder, 0, 1, shard);
    const err e = bundle_link(from, shard, NULL);
    if (!e) return checkpoints_publish(c, folder, 1, (uint64_t)step, now_s, ret_prefix);
    snprintf(why, sizeof why, "%s", error_text());
    checkpoints_abandon(c, folder);
    return fail(e, "%s", why);
}
