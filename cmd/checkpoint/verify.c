/* verify.c - `dtrain checkpoint verify CKPT`: is it undamaged, and are its shards consistent?
 *
 * All shards belong to one global step (core/cluster/role/ps_role.h), so every ps must have applied
 * the same number of each worker's pushes. Exception: an asynchronous worker that was gone and not
 * waited for; its last gradient may be on some ps only, and is completed when it returns. That is
 * reported, but is not an error. Numbers received may differ: ps/0 drops gradients that the others
 * never see. So may the step of the last gradient: asynchronously each ps counts what it has
 * applied itself. A ps without variables has no ledger.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/checkpoint/checkpoint.h"
#include "cmd/json_print.h"
#include "core/base/files/url.h"
#include "core/train/checkpoint/shard.h"

enum { RECEIVED, TAKEN, TAKEN_STEP }; /* columns of a ledger (shard.h) */

struct verification {
    struct bundle *bundle;
    int64_t step;
    int ledgers;
    int64_t workers;
    int64_t *first; /* [workers, LEDGER_COLUMNS]: the first ledger */
    int64_t bytes;  /* of all tensors together */
    bool json;      /* --json: one object, no other output */
};

static err check_row(const struct verification *c, const struct bundle_entry *entry, int64_t worker,
                     const int64_t row[LEDGER_COLUMNS])
{
    const char *fault = NULL;
    if (row[TAKEN] < 0 || row[TAKEN_STEP] < 0)
        fault = "a count below zero";
    else if (row[TAKEN] > row[RECEIVED])
        fault = "more gradients taken than received";
    else if (row[TAKEN_STEP] > c->step)
        fault = "a gradient taken for a step after the global step";
    if (!fault) return OK;
    return fail(ERR_INPUT, "%s: %s, worker %lld: %s (received %lld, taken %lld for step %lld)",
                bundle_prefix(c->bundle), entry->name, (long long)worker, fault,
                (long long)row[RECEIVED], (long long)row[TAKEN], (long long)row[TAKEN_STEP]);
}

/* Compares a worker's row with that of the first ledger. */
static void compare_row(const struct verification *c, const struct bundle_entry *entry,
                        int64_t worker, const int64_t row[LEDGER_COLUMNS])
{
    const int64_t *first = c->first + worker * LEDGER_COLUMNS;
    char shown[PATH_BYTES_MAX];
    if (c->json || first[TAKEN] == row[TAKEN]) return;
    printf("%s: note: %s, worker %lld: gradient %lld was the last, of another ps %lld\n",
           path_shown(bundle_prefix(c->bundle), shown), entry->name, (long long)worker,
           (long long)row[TAKEN], (long long)first[TAKEN]);
}

/* Ledgers come in order of ps; the first one's `rows` is kept (ownership moves to c). */
static err check_rows(struct verification *c, const struct bundle_entry *entry, int64_t *rows)
{
    const int64_t workers = entry->shape.dim[0];
    if (c->ledgers++ == 0) {
        c->first = rows;
        c->workers = workers;
    }
    if (workers != c->workers)
        return fail(ERR_INPUT, "%s: %s tells of %lld workers, another ledger of %lld",
                    bundle_prefix(c->bundle), entry->name, (long long)workers,
                    (long long)c->workers);
    for (int64_t w = 0; w < workers; w++) {
        TRY(check_row(c, entry, w, rows + w * LEDGER_COLUMNS));
        compare_row(c, entry, w, rows + w * LEDGER_COLUMNS);
    }
    return OK;
}

static err check_ledger(struct verification *c, const struct bundle_entry *entry)
{
    struct elements elements;
    const char *prefix = bundle_prefix(c->bundle);
    if (entry->dtype != BUNDLE_INT64 || entry->shape.rank != 2 ||
        entry->shape.dim[1] != LEDGER_COLUMNS)
        return fail(ERR_INPUT, "%s: %s is no ledger: expected int64 [workers, %d]", prefix,
                    entry->name, (int)LEDGER_COLUMNS);
    if (c->ledgers == 0 && checkpoint_ledger_ps(entry->name) != 0)
        return fail(ERR_INPUT, "%s: %s is there, the ledger of ps 0 is not", prefix, entry->name);
    TRY(checkpoint_elements(c->bundle, entry, NULL, &elements));
    err e = check_rows(c, entry, elements.at);
    if (elements.at != c->first) free(elements.at);
    return e;
}

/* Checks for damage first, so that the ledgers read later are known to be intact. */
static err check_all(struct verification *c)
{
    TRY(bundle_verify(c->bundle));
    TRY(checkpoint_global_step(c->bundle, &c->step));
    for (int i = 0; i < bundle_entries(c->bundle); i++) {
        const struct bundle_entry *entry = bundle_at(c->bundle, i);
        for (int s = 0; s < (entry->slice_count ? entry->slice_count : 1); s++)
            c->bytes += bundle_place(c->bundle, entry, s).bytes;
        if (checkpoint_part(c->bundle, entry) == PART_LEDGER) TRY(check_ledger(c, entry));
    }
    return OK;
}

static err print_json(const struct verification *c)
{
    return json_print(json_pack("{ss sI si sI si si}", "checkpoint", bundle_prefix(c->bundle),
                                "step", (json_int_t)c->step, "tensors", bundle_entries(c->bundle),
                                "bytes", (json_int_t)c->bytes, "shards", bundle_shards(c->bundle),
                                "ledgers", c->ledgers));
}

static void print(const struct verification *c)
{
    char shown[PATH_BYTES_MAX];
    printf("%s: ok, global step %lld, %d tensors, %lld bytes in %d %s, %d %s\n",
           path_shown(bundle_prefix(c->bundle), shown), (long long)c->step,
           bundle_entries(c->bundle), (long long)c->bytes, bundle_shards(c->bundle),
           bundle_shards(c->bundle) == 1 ? "shard" : "shards", c->ledgers,
           c->ledgers == 1 ? "ledger" : "ledgers");
}

err checkpoint_verify(const struct checkpoint_call *call, int *ret_code)
{
    struct verification c = {.json = call->json};
    TRY(checkpoint_open(call->words[0], &c.bundle));
    err e = check_all(&c);
    if (!e && c.json)
        e = print_json(&c);
    else if (!e)
        print(&c);
    free(c.first);
    bundle_close(c.bundle);
    return e;
}
