/* disk.c - the folder of checkpoints.
 *
 * The real one makes a checkpoint count by one rename, so that after a crash it is there as a whole
 * or not at all, and the one before it is never touched. That is all that is modelled here.
 */
#include <assert.h>
#include <stdlib.h>

#include "tests/simulate/world.h"

/* Asked before each write. */
static bool disk_fails(struct world *world)
{
    bool fails = world->now_us < world->disk_fails_until_us;
    world->has_failed_to_write |= fails;
    return fails;
}

static struct checkpoint *find(struct world *world, uint64_t step, uint64_t tag)
{
    for (int i = world->folder.count - 1; i >= 0; i--) {
        struct checkpoint *checkpoint = &world->folder.at[i];
        bool is_temporary = !checkpoint->is_published && !checkpoint->is_abandoned;
        bool is_it = checkpoint->tag == tag && checkpoint->step == step;
        if (is_it && is_temporary) return checkpoint;
    }
    return NULL;
}

/* A folder for it, which a ps makes too: it writes as soon as it has made its snapshot. */
static struct checkpoint *make_folder(struct world *world, const struct checkpoint *like)
{
    struct folder *folder = &world->folder;
    struct checkpoint *found = find(world, like->step, like->tag);
    if (found) return found;
    if (!folder->at) folder->at = calloc(CHECKPOINTS_MAX, sizeof *folder->at);
    assert(folder->at);
    if (folder->count == CHECKPOINTS_MAX || like->count < 1 || like->count > world->profile.homes) {
        blame(world, "checkpoint %d with %d shards", folder->count, like->count);
        return NULL;
    }
    folder->at[folder->count] = *like;
    return &folder->at[folder->count++];
}

void disk_lead(struct world *world, struct actor *chief)
{
    world->folder.owner = chief->incarnation;
    chief->led = ++world->folder.led;
}

/* Right before the rename. Whoever finds that it was not the last to come makes it so, and learns
 * from a ps whether it should. */
static bool is_fenced(struct world *world, struct actor *chief)
{
    const bool is_owner = world->folder.owner == chief->incarnation;
    if (is_owner || is_broken(world, DEFECT_FENCE_OPEN)) return false;
    world->counters.fenced++;
    disk_lead(world, chief);
    return true;
}

/* Terms begin again where nobody is left who knows of them. */
static void note_publisher(struct world *world, const struct actor *chief)
{
    struct folder *folder = &world->folder;
    if (chief->led < folder->published_by)
        blame(world, "%s publishes in term %llu, after one who came to lead later",
              actor_name(chief), (unsigned long long)worker_role_term(chief->role));
    folder->published_by = chief->led;
}

err disk_begin(struct world *world, const struct action_begin *action)
{
    if (disk_fails(world)) return ERR_IO;
    TRACE(world, "a checkpoint of step %llu begins, %d shards, tag %llx",
          (unsigned long long)action->step, action->shards, (unsigned long long)action->tag);
    const struct checkpoint checkpoint = {
        .step = action->step, .tag = action->tag, .count = action->shards};
    return make_folder(world, &checkpoint) ? OK : ERR_INPUT;
}

err disk_write(struct world *world, const struct carried_shard *file)
{
    if (disk_fails(world)) return ERR_IO;
    const struct checkpoint checkpoint = {
        .step = file->step, .tag = file->tag, .count = file->count};
    struct checkpoint *made = make_folder(world, &checkpoint);
    if (!made) return ERR_INPUT;
    if (file->number < 0 || file->number >= made->count || made->count != file->count) {
        blame(world, "shard %d of %d", file->number, made->count);
        return ERR_INPUT;
    }
    made->shards[file->number] = file->shard;
    return OK;
}

static bool is_complete(const struct checkpoint *checkpoint)
{
    for (int i = 0; i < checkpoint->count; i++)
        if (!checkpoint->shards[i].is_there) return false;
    return true;
}

/* Who has all that was published before a delta, and takes it, has the values of its step. */
static void note_nodes(struct world *world, const struct checkpoint *checkpoint)
{
    for (int i = 0; i < checkpoint->count; i++) {
        const struct shard *shard = &checkpoint->shards[i];
        int *last = &world->folder.published[shard->home];
        if (checkpoint->is_delta && shard->is_there && shard->from != *last)
            blame(world, "the delta of ps/%d is not of what was published before it", shard->home);
        *last = shard->node;
    }
}

err disk_publish(struct world *world, struct actor *chief, const struct action_publish *action)
{
    struct checkpoint *checkpoint = find(world, action->step, action->tag);
    if (disk_fails(world) || !checkpoint) return ERR_IO;
    if (!is_complete(checkpoint) && !is_broken(world, DEFECT_PUBLISHED_EARLY)) return ERR_IO;
    if (is_fenced(world, chief)) return ERR_PEER;
    note_publisher(world, chief);
    checkpoint->is_published = true;
    checkpoint->is_delta = action->since != 0;
    if (!action->since) world->folder.newest = (int)(checkpoint - world->folder.at);
    if (!action->since) chief->own_tag = action->tag;
    *(action->since ? &world->counters.deltas : &world->counters.published) += 1;
    note_nodes(world, checkpoint);
    TRACE(world, "the checkpoint of step %llu is published", (unsigned long long)checkpoint->step);
    check_publish(world, checkpoint);
    return OK;
}

void disk_drop(struct world *world, const struct actor *ps, uint64_t tag)
{
    for (int i = 0; i < world->folder.count; i++)
        if (world->folder.at[i].tag == tag && world->folder.at[i].is_published)
            blame(world, "%s drops its shard of a checkpoint that is published", actor_name(ps));
}

void disk_abandon(struct world *world, const struct action_abandon *action)
{
    struct checkpoint *checkpoint = find(world, action->step, action->tag);
    if (!checkpoint) return;
    TRACE(world, "the checkpoint of step %llu is abandoned", (unsigned long long)checkpoint->step);
    checkpoint->is_abandoned = true;
}

int disk_readable(const struct world *world)
{
    int i = world->folder.count - 1;
    while (i >= 0 && (!world->folder.at[i].is_published || world->folder.at[i].is_bad ||
                      world->folder.at[i].is_delta))
        i--;
    return i < 0 ? NOTHING : i;
}

int disk_oldest(const struct world *world)
{
    for (int i = 0; i < world->folder.count; i++)
        if (world->folder.at[i].is_published && !world->folder.at[i].is_delta) return i;
    return NOTHING;
}

const struct shard *disk_shard(const struct world *world, int checkpoint, int home)
{
    if (checkpoint == NOTHING) return NULL;
    const struct checkpoint *c = &world->folder.at[checkpoint];
    for (int i = 0; i < c->count; i++)
        if (c->shards[i].is_there && c->shards[i].home == home) return &c->shards[i];
    return NULL;
}
