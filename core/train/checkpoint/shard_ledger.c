/* shard_ledger.c - which pushes of each worker are in the restored values.
 *
 * If the number of ps is the same as in the checkpoint, each takes its own ledger. If it changed,
 * values of several old ps meet in one new ps: all ps then take the largest counts of all ledgers,
 * so that no gradient is applied twice to any value. A bundle without ledgers is TensorFlow's:
 * every worker is at the global step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/shard_inside.h"

enum { RECEIVED, TAKEN, STEP }; /* columns */

/* NULL: the bundle has no ledger of this ps. */
static const struct bundle_entry *find_ledger(const struct bundle *bundle, int ps)
{
    char name[BUNDLE_NAME_MAX];
    snprintf(name, sizeof name, SHARD_LEDGER, ps);
    return bundle_find(bundle, name);
}

static int count_ledgers(const struct bundle *bundle)
{
    int count = 0;
    while (count < PS_MAX && find_ledger(bundle, count)) count++;
    return count;
}

static err check(const struct bundle *bundle, const struct bundle_entry *entry)
{
    const struct bundle_shape *shape = &entry->shape;
    bool is_ledger = entry->dtype == BUNDLE_INT64 && shape->rank == 2 && shape->dim[0] >= 0 &&
                     shape->dim[0] <= WORKERS_MAX && shape->dim[1] == LEDGER_COLUMNS;
    if (is_ledger) return OK;
    return fail(ERR_INPUT, "%s: %s is no ledger: expected int64 [workers, %d], at most %d workers",
                bundle_prefix(bundle), entry->name, (int)LEDGER_COLUMNS, (int)WORKERS_MAX);
}

/* Takes over a worker's row if it has more pushes than the current one. */
static err take_larger(const int64_t *from, int64_t *to, const struct bundle_entry *entry)
{
    if (from[TAKEN] > from[RECEIVED])
        return fail(ERR_INPUT, "%s: more gradients taken than received", entry->name);
    for (int i = RECEIVED; i <= STEP; i++) {
        if (from[i] < 0 || from[i] > SHARD_COUNT_MAX)
            return fail(ERR_INPUT, "%s: a count of %lld", entry->name, (long long)from[i]);
        if (from[i] > to[i]) to[i] = from[i];
    }
    return OK;
}

err shard_stored_ledger(struct bundle *bundle, struct arena *arena, int ps, int64_t **ret,
                        int *ret_workers)
{
    const struct bundle_entry *entry = find_ledger(bundle, ps);
    *ret = NULL;
    *ret_workers = 0;
    if (!entry) return OK;
    TRY(check(bundle, entry));
    const size_t numbers = (size_t)entry->shape.dim[0] * LEDGER_COLUMNS;
    *ret = arena_array(arena, numbers, sizeof **ret);
    *ret_workers = (int)entry->shape.dim[0];
    return bundle_read(bundle, entry, NULL, *ret, numbers * sizeof **ret);
}

/* Merges it into the rows that both ledgers have; ret_rows: how many. */
static err merge_ledger(struct bundle *bundle, const struct bundle_entry *entry,
                        struct shard *shard, int *ret_rows)
{
    TRY(check(bundle, entry));
    const int64_t there = entry->shape.dim[0];
    const size_t bytes = (size_t)there * LEDGER_COLUMNS * sizeof(int64_t);
    int64_t *rows = malloc(bytes + 1); /* malloc(0) may be NULL */
    if (!rows) return fail(ERR_MEMORY, "no memory for %s", entry->name);

    err e = bundle_read(bundle, entry, NULL, rows, bytes);
    const int count = there < shard->workers ? (int)there : shard->workers;
    for (int w = 0; !e && w < count; w++) {
        e = take_larger(rows + w * LEDGER_COLUMNS, shard->ledger + w * LEDGER_COLUMNS, entry);
        if (e) e = fail_prefix(e, "%s", bundle_prefix(bundle));
    }
    free(rows);
    if (!e) *ret_rows = count;
    return e;
}

err shard_read_ledger(struct bundle *bundle, struct shard *shard)
{
    const size_t bytes = (size_t)shard->workers * LEDGER_COLUMNS * sizeof(int64_t);
    const int there = count_ledgers(bundle);
    const bool is_same = there == shard->ps_count;
    int known = 0; /* rows that some ledger had */
    memset(shard->ledger, 0, bytes);
    for (int ps = 0; ps < there; ps++) {
        int rows = 0;
        if (is_same && ps != shard->ps) continue;
        TRY(merge_ledger(bundle, find_ledger(bundle, ps), shard, &rows));
        if (rows > known) known = rows;
    }
    /* workers that the writer did not know */
    for (int w = known; w < shard->workers; w++) {
        int64_t *row = shard->ledger + w * LEDGER_COLUMNS;
        row[RECEIVED] = row[TAKEN] = row[STEP] = (int64_t)shard->global_step;
    }
    return OK;
}

err shard_read_coverage(struct bundle *bundle, struct shard *shard)
{
    const struct bundle_entry *entry = bundle_find(bundle, SHARD_COVERAGE);
    if (!entry || !shard->coverage) return OK;
    const struct bundle_shape *shape = &entry->shape;
    if (entry->dtype != BUNDLE_INT64 || shape->rank != 1 || shape->dim[0] != COVERAGE_COLUMNS)
        return fail(ERR_INPUT, "%s: %s is no count of rows: expected int64 [%d]",
                    bundle_prefix(bundle), entry->name, (int)COVERAGE_COLUMNS);
    return bundle_read(bundle, entry, NULL, shard->coverage, COVERAGE_COLUMNS * sizeof(int64_t));
}

err shard_read_data(struct bundle *bundle, struct arena *arena, const int64_t **ret, int *ret_count)
{
    const struct bundle_entry *entry = bundle_find(bundle, SHARD_DATA_ORDER);
    *ret = NULL;
    *ret_count = 0;
    if (!entry) return OK;
    const struct bundle_shape *shape = &entry->shape;
    if (entry->dtype != BUNDLE_INT64 || shape->rank != 1 || shape->dim[0] < 1 ||
        shape->dim[0] > DATA_NUMBERS_MAX)
        return fail(ERR_INPUT, "%s: %s tells of no data: expected int64 [n], n at most %d",
                    bundle_prefix(bundle), entry->name, (int)DATA_NUMBERS_MAX);
    int64_t *numbers = arena_array(arena, (size_t)shape->dim[0], sizeof *numbers);
    *ret = numbers;
    *ret_count = (int)shape->dim[0];
    return bundle_read(bundle, entry, NULL, numbers, (size_t)*ret_count * sizeof *numbers);
}
