/* take_values.c - gives the newest checkpoint the values of another one (train.restore_best).
 *
 * Variables, slots and powers are replaced. The progress of the run stays: the global step, and the
 * ledgers of pushes and rows. So a finished run stays finished, and one that resumes continues
 * where it was, with these values.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/checkpoints_inside.h"
#include "core/train/checkpoint/shard_inside.h"

static bool is_count(const char *name)
{
    return strcmp(name, SHARD_GLOBAL_STEP) == 0 ||
           strncmp(name, SHARD_LEDGERS, strlen(SHARD_LEDGERS)) == 0;
}

static bool is_value(const char *name)
{
    return !is_count(name);
}

static err copy_tensor(struct bundle *from, const struct bundle_entry *entry,
                       struct bundle_writer *to)
{
    const struct bundle_piece piece = {entry->name, entry->dtype, entry->shape, NULL};
    const int64_t count = bundle_count(&entry->shape);
    const size_t bytes = count < 0 ? 0 : (size_t)count * bundle_dtype_size(entry->dtype);
    void *elements = malloc(bytes + 1); /* malloc(0) may be NULL */
    if (!elements) return fail(ERR_MEMORY, "no memory for %s", entry->name);
    err e = bundle_read(from, entry, NULL, elements, bytes);
    if (!e) e = bundle_add(to, &piece, elements);
    free(elements);
    return e;
}

static err write_counts(struct bundle *from, const char *prefix)
{
    struct bundle_writer *writer;
    TRY(bundle_create(prefix, &writer));
    for (int i = 0; i < bundle_entries(from); i++) {
        const struct bundle_entry *entry = bundle_at(from, i);
        const err e = is_count(entry->name) ? copy_tensor(from, entry, writer) : OK;
        if (!e) continue;
        bundle_abandon(writer);
        return e;
    }
    return bundle_finish(writer);
}

static err copy_counts(const char *from, const char *prefix)
{
    struct bundle *bundle;
    TRY(bundle_open(from, &bundle));
    const err e = write_counts(bundle, prefix);
    bundle_close(bundle);
    return e;
}

enum { VALUES, COUNTS, SHARDS };

static err fill(const char *newest, const char *from, const char *folder)
{
    char values[CHECKPOINT_PATH_MAX], counts[CHECKPOINT_PATH_MAX];
    checkpoint_shard_prefix(folder, VALUES, SHARDS, values);
    checkpoint_shard_prefix(folder, COUNTS, SHARDS, counts);
    TRY(bundle_link(from, values, is_value));
    return copy_counts(newest, counts);
}

err checkpoints_take_values(struct checkpoints *c, const char *from, uint64_t tag, double now_s,
                            char ret_prefix[CHECKPOINT_PATH_MAX])
{
    char folder[CHECKPOINT_PATH_MAX], why[ERROR_TEXT_MAX];
    const char *newest = checkpoints_newest(c, 0);
    const int64_t step = newest ? checkpoint_step(newest) : -1;
    if (step < 0) return fail(ERR_INPUT, "%s: there is no checkpoint yet", c->directory);
    TRY(checkpoints_begin(c, (uint64_t)step, tag, folder));
    const err e = fill(newest, from, folder);
    if (!e) return checkpoints_publish(c, folder, SHARDS, (uint64_t)step, now_s, ret_prefix);
    snprintf(why, sizeof why, "%s", error_text());
    checkpoints_abandon(c, folder);
    return fail(e, "%s", why);
}
