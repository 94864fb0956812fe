/* reshard.c - `dtrain checkpoint reshard CKPT --ps=N DIR`: the same values in N shards.
 *
 * A tensor that was in slices is cut into N parts along the same axis, part k for shard k. The
 * others go whole to the shard with the fewest bytes, the largest first. Slots lie beside their
 * variable and are cut as it is; the global step lies in shard 0. The result is published in a
 * folder of its own, as a run does it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/checkpoint/checkpoint.h"
#include "core/base/files/url.h"
#include "core/base/clock.h"
#include "core/base/random.h"
#include "core/train/checkpoint/checkpoints.h"
#include "core/train/spec/spec.h"
#include "core/train/variables/place.h"

enum { WHOLE = -1 };

/* Where one tensor goes. */
struct home {
    const struct bundle_entry *entry;
    const struct bundle_entry *owner; /* of a slot: its variable; else NULL */
    enum checkpoint_part part;
    int axis;      /* along which it is cut into one part per shard, or WHOLE */
    int shard;     /* of a WHOLE one */
    int64_t bytes; /* including its slots */
};

struct reshard {
    struct bundle *bundle;
    int shards;
    int count;
    struct home *homes;    /* [count], by name */
    struct home **largest; /* [count] largest bytes first */
    int64_t *load;         /* [shards] bytes */
};

/* ---- placement ---- */

/* The first axis that the stored slices do not span. */
static int cut_axis(const struct bundle *bundle, const struct bundle_entry *entry)
{
    for (int i = 0; i < entry->slice_count; i++) {
        const struct bundle_place place = bundle_place(bundle, entry, i);
        for (int axis = 0; axis < entry->shape.rank; axis++)
            if (place.box.length[axis] < entry->shape.dim[axis]) return axis;
    }
    return WHOLE;
}

/* Binary search: homes are sorted by name, and every entry has one. */
static struct home *home_of(const struct reshard *r, const struct bundle_entry *entry)
{
    int low = 0, high = r->count - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (strcmp(r->homes[middle].entry->name, entry->name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return &r->homes[low];
}

/* Checks that every tensor can be read before any file is created. */
static err make_homes(struct reshard *r)
{
    for (int i = 0; i < r->count; i++) {
        const struct bundle_entry *entry = bundle_at(r->bundle, i);
        const int64_t bytes = checkpoint_tensor_bytes(entry);
        if (bytes < 0)
            return fail(ERR_INPUT, "%s: %s: elements of type %s cannot be read",
                        bundle_prefix(r->bundle), entry->name, bundle_dtype_name(entry->dtype));
        const enum checkpoint_part part = checkpoint_part(r->bundle, entry);
        r->homes[i] = (struct home){
            .entry = entry,
            .owner = part == PART_SLOT ? checkpoint_owner(r->bundle, entry) : NULL,
            .part = part,
            .axis = cut_axis(r->bundle, entry),
            .bytes = bytes,
        };
        r->largest[i] = &r->homes[i];
    }
    return OK;
}

/* Follows owners to the variable, also for the slot of a slot ("w/Adam/Adam"). */
static struct home *final_owner(const struct reshard *r, struct home *home)
{
    while (home->owner) home = home_of(r, home->owner); /* names get shorter */
    return home;
}

/* Adds the bytes of slots to their variable's. */
static void add_slots(struct reshard *r)
{
    for (int i = 0; i < r->count; i++) {
        struct home *owner = final_owner(r, &r->homes[i]);
        if (owner != &r->homes[i]) owner->bytes += checkpoint_tensor_bytes(r->homes[i].entry);
    }
}

static int compare_sizes(const void *a, const void *b)
{
    const struct home *x = *(struct home *const *)a, *y = *(struct home *const *)b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->entry->name, y->entry->name);
}

static int lightest(const struct reshard *r)
{
    int best = 0;
    for (int i = 1; i < r->shards; i++)
        if (r->load[i] < r->load[best]) best = i;
    return best;
}

/* The part of a cut tensor in a shard; with fewer rows than shards the last ones get none. */
static struct bundle_box part_box(const struct reshard *r, const struct home *home, int shard)
{
    struct bundle_box box = bundle_whole(&home->entry->shape);
    const int64_t rows = home->entry->shape.dim[home->axis];
    box.start[home->axis] = partition_start(rows, r->shards, shard);
    box.length[home->axis] = partition_start(rows, r->shards, shard + 1) - box.start[home->axis];
    return box;
}

/* Cut tensors first, since they have a fixed place; the others then balance the load. */
static void place_variables(struct reshard *r)
{
    for (int i = 0; i < r->count; i++) {
        const struct home *home = &r->homes[i];
        if (home->part != PART_VARIABLE || home->axis == WHOLE) continue;
        const int64_t rows = home->entry->shape.dim[home->axis];
        for (int k = 0; k < r->shards; k++)
            r->load[k] += home->bytes / rows * part_box(r, home, k).length[home->axis];
    }
    for (int i = 0; i < r->count; i++) {
        struct home *home = r->largest[i];
        if (home->part != PART_VARIABLE || home->axis != WHOLE) continue;
        home->shard = lightest(r);
        r->load[home->shard] += home->bytes;
    }
}

/* After the variables. Powers lie where TensorFlow puts them: with the variable of the smallest
 * name. */
static void place_others(struct reshard *r)
{
    const struct home *smallest = NULL;
    for (int i = r->count - 1; i >= 0; i--)
        if (r->homes[i].part == PART_VARIABLE) smallest = &r->homes[i];
    for (int i = 0; i < r->count; i++) {
        struct home *home = &r->homes[i];
        const struct home *owner = final_owner(r, home);
        if (home->part == PART_SLOT) {
            home->axis = owner->axis;
            home->shard = owner->shard;
        } else if (home->part == PART_POWER && smallest) {
            home->shard = smallest->shard;
        } else if (home->part == PART_LEDGER) {
            home->shard = checkpoint_ledger_ps(home->entry->name) % r->shards;
        }
    }
}

/* ---- writing ---- */

struct appender {
    struct bundle_writer *writer;
    size_t row_bytes;
};

static err append_rows(void *context, int64_t first_row, int64_t rows, const void *elements)
{
    const struct appender *a = context;
    return bundle_append(a->writer, 0, elements, (size_t)rows * a->row_bytes);
}

/* Columns are cut from slices that are read from end to end, which rows would do again for every
 * stretch. */
static err append_columns(struct reshard *r, const struct bundle_piece *piece,
                          const struct bundle_entry *entry, struct bundle_writer *writer)
{
    struct elements elements;
    TRY(checkpoint_elements(r->bundle, entry, piece->box, &elements));
    err e = bundle_append(writer, 0, elements.at, elements.bytes);
    free(elements.at);
    return e;
}

static err append(struct reshard *r, const struct home *home, const struct bundle_piece *piece,
                  struct bundle_writer *writer)
{
    const struct bundle_entry *entry = home->entry;
    if (home->axis > 0 || cut_axis(r->bundle, entry) > 0)
        return append_columns(r, piece, entry, writer);
    const int64_t rows = entry->shape.rank ? entry->shape.dim[0] : 1;
    struct appender appender = {writer, rows ? (size_t)(checkpoint_tensor_bytes(entry) / rows) : 0};
    return bundle_read_rows(r->bundle, entry, piece->box,
                            &(struct bundle_taker){&appender, append_rows});
}

static err write_piece(struct reshard *r, const struct home *home, int shard,
                       struct bundle_writer *writer)
{
    const struct bundle_entry *entry = home->entry;
    struct bundle_piece piece = {entry->name, entry->dtype, entry->shape, NULL};
    struct bundle_box box;
    if (home->axis == WHOLE && home->shard != shard) return OK;
    if (home->axis != WHOLE) {
        box = part_box(r, home, shard);
        if (box.length[home->axis] == 0) return OK;
        piece.box = &box;
    }
    TRY(bundle_begin(writer, &piece, 1));
    TRY(append(r, home, &piece, writer));
    return bundle_end(writer);
}

static err write_shard(struct reshard *r, const char *folder, int shard)
{
    char prefix[CHECKPOINT_PATH_MAX];
    struct bundle_writer *writer;
    checkpoint_shard_prefix(folder, shard, r->shards, prefix);
    TRY(bundle_create(prefix, &writer));
    for (int i = 0; i < r->count; i++) {
        err e = write_piece(r, &r->homes[i], shard, writer);
        if (!e) continue;
        bundle_abandon(writer);
        return e;
    }
    return bundle_finish(writer);
}

static err write_all(struct reshard *r, struct checkpoints *to, int64_t step)
{
    char folder[CHECKPOINT_PATH_MAX], prefix[CHECKPOINT_PATH_MAX], shown[PATH_BYTES_MAX];
    err e = OK;
    const uint64_t tag = random_u64((uint64_t)getpid(), clock_ns());
    TRY(checkpoints_begin(to, (uint64_t)step, tag, folder));
    for (int i = 0; !e && i < r->shards; i++) e = write_shard(r, folder, i);
    if (!e) e = checkpoints_publish(to, folder, r->shards, (uint64_t)step, clock_unix_s(), prefix);
    if (e) {
        checkpoints_abandon(to, folder);
        return e;
    }
    for (int i = 0; i < r->shards; i++)
        printf("shard %d: %lld bytes of variables and slots\n", i, (long long)r->load[i]);
    printf("%s: %d tensors in %d %s\n", path_shown(prefix, shown), r->count, r->shards,
           r->shards == 1 ? "shard" : "shards");
    return OK;
}

/* Refuses a folder that has checkpoints: the run that it belongs to would use this one. */
static err write_folder(struct reshard *r, const char *source, const char *directory, int64_t step)
{
    static const struct retention keep_all = {0};
    char there[CHECKPOINT_PATH_MAX];
    struct checkpoints *to;
    if (!checkpoint_find(directory, there))
        return fail(ERR_INPUT, "%s: there is a checkpoint already: %s", directory, there);
    TRY(checkpoints_open(directory, &keep_all, clock_unix_s(), &to));
    err e = spec_copy_measured(source, directory);
    if (!e) e = write_all(r, to, step);
    checkpoints_close(to);
    return e;
}

static err reshard(struct reshard *r, const struct checkpoint_call *call)
{
    int64_t step;
    r->count = bundle_entries(r->bundle);
    r->shards = (int)call->ps;
    const size_t count = (size_t)r->count + 1;
    r->homes = arena_array(call->arena, count, sizeof *r->homes);
    r->largest = arena_array(call->arena, count, sizeof *r->largest);
    r->load = arena_array(call->arena, (size_t)r->shards, sizeof *r->load);
    TRY(checkpoint_global_step(r->bundle, &step));
    TRY(make_homes(r));
    add_slots(r);
    qsort(r->largest, (size_t)r->count, sizeof *r->largest, compare_sizes);
    place_variables(r);
    place_others(r);
    return write_folder(r, checkpoint_folder(r->bundle, call->arena), call->words[1], step);
}

err checkpoint_reshard(const struct checkpoint_call *call, int *ret_code)
{
    struct reshard r = {0};
    TRY(checkpoint_open(call->words[0], &r.bundle));
    err e = reshard(&r, call);
    bundle_close(r.bundle);
    return e;
}
