/* replay.c - see record.h: reading, and up to which step it can be replayed. */
#include "core/cluster/runner/record_inside.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cluster/role/role.h"
#include "core/cluster/role/verdict.h"

enum { TASKS_MOST = 1 << 16 };
static const int64_t BYTES_MAX = INT64_C(16) << 30;

/* One file: its last section, up to a break. */
struct one {
    struct record_section section;
    struct turn *turns;
    int64_t count;
    int code;    /* exit code of the job; -1: not recorded */
    int from;    /* the worker that reported it; NOBODY: this ps */
    int64_t cut; /* turns to replay */
};

static err read_file(const char *name, uint32_t **ret, int64_t *ret_rows)
{
    struct stat found;
    const int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail(ERR_INPUT, "cannot read %s: %s", name, strerror(errno));
    err e = OK;
    char *bytes = NULL;
    int64_t have = 0;
    if (fstat(fd, &found) || !S_ISREG(found.st_mode) || found.st_size > BYTES_MAX)
        e = fail(ERR_INPUT, "%s is no file of a record", name);
    if (!e && !(bytes = malloc((size_t)found.st_size + 1)))
        e = fail(ERR_MEMORY, "no memory for the %lld bytes of %s", (long long)found.st_size, name);
    while (!e && have < found.st_size) { /* ends: each read brings some, or is the last */
        const ssize_t got = read(fd, bytes + have, (size_t)(found.st_size - have));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) e = fail(ERR_IO, "cannot read %s: %s", name, strerror(errno));
        if (got <= 0) break;
        have += got;
    }
    close(fd);
    if (e) free(bytes);
    if (e) return e;
    *ret = (uint32_t *)(void *)bytes;
    *ret_rows = have / (int64_t)(RECORD_NUMBERS * sizeof **ret);
    return OK;
}

static uint32_t number(const uint32_t *rows, int64_t row, int i)
{
    return le32toh(rows[row * RECORD_NUMBERS + i]);
}

static uint64_t long_number(const uint32_t *rows, int64_t row, int i)
{
    return number(rows, row, i) | (uint64_t)number(rows, row, i + 1) << 32;
}

static int kind_of(const uint32_t *rows, int64_t row)
{
    return (int)(number(rows, row, 0) >> 24);
}

/* Finds the begin of the last section: the two rows after its first one are plain numbers, and may
 * look like any row. */
static err find_section(const char *name, const uint32_t *rows, int64_t count, int64_t *ret)
{
    int64_t found = -1;
    for (int64_t row = 0; row < count; row++) {
        if (kind_of(rows, row) != RECORD_SECTION) continue;
        found = row;
        row += RECORD_HEAD_ROWS - 1;
    }
    if (found < 0 || found + RECORD_HEAD_ROWS > count)
        return fail(ERR_INPUT, "%s: not a record, or an empty one", name);
    const uint32_t version = number(rows, found, 0) & 0xffffff;
    if (version != RECORD_VERSION)
        return fail(ERR_INPUT, "%s: a record of version %u; this program reads version %d", name,
                    version, RECORD_VERSION);
    *ret = found;
    return OK;
}

static err read_head(const char *name, const uint32_t *rows, int64_t at, struct record_section *ret)
{
    *ret = (struct record_section){
        .ps = (int)number(rows, at, 1),
        .ps_count = (int)number(rows, at, 2),
        .workers = (int)number(rows, at, 3),
        .generation = long_number(rows, at + 1, 0),
        .step = long_number(rows, at + 1, 2),
        .spec = long_number(rows, at + 2, 0),
    };
    const uint64_t factor = long_number(rows, at + 2, 2);
    memcpy(&ret->rate_factor, &factor, sizeof factor);
    const bool fits = ret->ps_count > 0 && ret->ps_count <= TASKS_MOST && ret->workers > 0 &&
                      ret->workers <= TASKS_MOST && ret->ps >= 0 && ret->ps < ret->ps_count;
    return fits ? OK
                : fail(ERR_INPUT, "%s: not a record: of %d ps and %d workers", name, ret->ps_count,
                       ret->workers);
}

static uint64_t back(uint64_t applied, uint32_t behind)
{
    return behind == RECORD_NONE ? TURN_NOTHING : applied - behind;
}

/* false: not a valid turn. */
static bool read_turn(const uint32_t *rows, int64_t row, const struct one *one, uint64_t applied,
                      struct turn *ret)
{
    const uint32_t values = number(rows, row, 1), read = number(rows, row, 2);
    *ret = (struct turn){.kind = (enum turn_kind)(kind_of(rows, row) & ~RECORD_ASKED),
                         .asks_rows = kind_of(rows, row) & RECORD_ASKED,
                         .worker = (int)(number(rows, row, 0) & 0xffffff),
                         .values = back(applied, values),
                         .rows = back(applied, read),
                         .batch = number(rows, row, 3)};
    if (ret->kind < TURN_TAKEN || ret->kind >= TURN_KINDS) return false;
    const uint64_t ends = 2 + (uint64_t)one->section.workers;
    if (ret->kind == TURN_END) return ret->batch >= 1 && ret->batch < ends;
    if (ret->kind == TURN_BREAK) return true;
    return ret->worker < one->section.workers && values <= applied &&
           (read == RECORD_NONE || read <= applied);
}

static err read_turns(const char *name, const uint32_t *rows, int64_t from, int64_t count,
                      struct one *ret)
{
    uint64_t applied = 0;
    ret->code = -1;
    ret->turns = malloc((size_t)(count - from + 1) * sizeof *ret->turns);
    if (!ret->turns) return fail(ERR_MEMORY, "no memory for %s", name);
    for (int64_t row = from; row < count; row++) {
        struct turn turn;
        if (!read_turn(rows, row, ret, applied, &turn))
            return fail(ERR_INPUT, "%s: damaged at byte %lld", name,
                        (long long)row * RECORD_NUMBERS * (long long)sizeof *rows);
        if (turn.kind == TURN_END) ret->code = turn.worker;
        if (turn.kind == TURN_END) ret->from = (int)turn.batch - 1 + NOBODY;
        if (turn.kind == TURN_END || turn.kind == TURN_BREAK) break;
        applied += turn.kind == TURN_TAKEN;
        ret->turns[ret->count++] = turn;
    }
    return OK;
}

static err read_one(const char *path, int ps, struct one *ret)
{
    char name[RECORD_PATH_MAX];
    uint32_t *rows = NULL;
    int64_t count = 0, at = 0;
    TRY(record_path(path, ps, name));
    TRY(read_file(name, &rows, &count));
    err e = find_section(name, rows, count, &at);
    if (!e) e = read_head(name, rows, at, &ret->section);
    if (!e) e = read_turns(name, rows, at + RECORD_HEAD_ROWS, count, ret);
    free(rows);
    return e;
}

/* ---- all ps ---- */

struct all {
    struct one *ps;
    int count, workers;
    int64_t *counts; /* [ps][worker] pushes taken */
    int differ;      /* how many counts differ from those of ps/0 */
};

static err read_all(const char *path, struct all *all)
{
    const struct record_section *first = &all->ps[0].section;
    for (int i = 1; i < all->count; i++) {
        TRY(read_one(path, i, &all->ps[i]));
        const struct record_section *s = &all->ps[i].section;
        if (s->generation != first->generation || s->ps != i || s->ps_count != first->ps_count ||
            s->workers != first->workers)
            return fail(ERR_INPUT,
                        "%s.ps-%d is not of the same run as %s.ps-0: its last section is another "
                        "generation's",
                        path, i, path);
    }
    return OK;
}

static bool differs(const struct all *all, int ps, int worker)
{
    return all->counts[ps * all->workers + worker] != all->counts[worker];
}

/* Counts one more push of this worker as taken by this ps. */
static void count_one(struct all *all, int ps, int worker)
{
    const int begin = ps ? ps : 1, end = ps ? ps + 1 : all->count;
    for (int i = begin; i < end; i++) all->differ -= differs(all, i, worker);
    all->counts[ps * all->workers + worker]++;
    for (int i = begin; i < end; i++) all->differ += differs(all, i, worker);
}

/* Moves on to the next push that this ps has taken; false: none. */
static bool go_on(struct all *all, int ps, int64_t *at)
{
    const struct one *one = &all->ps[ps];
    while (*at < one->count && one->turns[*at].kind != TURN_TAKEN) ++*at;
    if (*at >= one->count) return false;
    count_one(all, ps, one->turns[(*at)++].worker);
    return true;
}

/* Finds a point where all ps have taken the same pushes: the first one with at least `wanted`
 * pushes, else the last one. */
static uint64_t find_cut(struct all *all, int64_t *at, uint64_t wanted)
{
    uint64_t cut = 0;
    for (uint64_t taken = 1;; taken++) { /* ends with the first ps that has no more */
        bool have_all = true;
        for (int i = 0; i < all->count; i++) have_all = go_on(all, i, &at[i]) && have_all;
        if (!have_all) return cut;
        if (all->differ) continue;
        cut = taken;
        for (int i = 0; i < all->count; i++) all->ps[i].cut = at[i];
        if (wanted && taken >= wanted) return cut;
    }
}

static bool fails_by_number(const struct all *all)
{
    for (int i = 0; i < all->count; i++)
        if (all->ps[i].code == EXIT_NUMBER) return true;
    return false;
}

static uint64_t taken_by_first(const struct all *all)
{
    uint64_t taken = 0;
    for (int64_t i = 0; i < all->ps[0].count; i++) taken += all->ps[0].turns[i].kind == TURN_TAKEN;
    return taken;
}

/* The turns for one ps to replay; the caller frees them. A push that ps/0 has dropped was computed,
 * too, from any values of the other ps: there it is put before the worker's next turn. */
static err turns_of(const struct all *all, int ps, struct turns *ret)
{
    const struct one *first = &all->ps[0], *one = &all->ps[ps];
    const int64_t most = first->cut + one->cut;
    struct turn *to = malloc((size_t)(most + 1) * sizeof *to);
    int64_t *at = calloc((size_t)all->workers, sizeof *at); /* index among those of ps/0 */
    if (!to || !at) {
        free(to);
        free(at);
        return fail(ERR_MEMORY, "no memory for %lld turns", (long long)most);
    }
    int64_t count = 0;
    for (int64_t i = 0; i < one->cut; i++) {
        const struct turn turn = one->turns[i];
        for (int64_t *next = &at[turn.worker]; ps && *next < first->cut; ++*next) {
            const struct turn *there = &first->turns[*next];
            if (there->worker != turn.worker) continue;
            if (there->kind != TURN_DROPPED) break;
            to[count++] =
                (struct turn){TURN_DROPPED, turn.worker, TURN_NOTHING, TURN_NOTHING, false, 0};
        }
        if (at[turn.worker] < first->cut) at[turn.worker]++;
        to[count++] = turn;
    }
    free(at);
    *ret = (struct turns){to, count};
    return OK;
}

/* Finds the batch of the worker's push of that number, counting dropped ones, in the record of
 * ps/0. */
static void find_batch(const struct one *first, struct replay *ret)
{
    uint64_t push = 0;
    for (int64_t i = 0; i < first->count; i++) {
        if (first->turns[i].worker != ret->bad.worker) continue;
        if (++push == ret->bad.push) ret->bad.batch = first->turns[i].batch;
    }
}

/* The index of the last push that came, of this worker or of any (NOBODY); -1: none */
static int64_t last_that_came(const struct turns *turns, int worker)
{
    int64_t i = turns->count - 1;
    for (; i >= 0; i--) {
        const struct turn *turn = &turns->at[i];
        const bool came = turn->kind == TURN_TAKEN || turn->kind == TURN_BAD;
        if (worker == NOBODY ? came : turn->kind != TURN_OPEN && turn->worker == worker) break;
    }
    return i;
}

/* Finds the bad push: a ps found it in its last push, a worker in the one that it had not pushed
 * yet. Pushes that ps/0 has dropped are counted, too. */
static void find_push(const struct turns *turns, int from, struct replay *ret)
{
    const int64_t last = last_that_came(turns, from);
    if (from == NOBODY && last < 0) return;
    ret->bad.worker = from == NOBODY ? turns->at[last].worker : from;
    ret->bad.push = from != NOBODY;
    for (int64_t i = 0; i <= last; i++) ret->bad.push += turns->at[i].worker == ret->bad.worker;
}

/* A ps that has found it itself takes precedence over reports. */
static err find_bad(const struct all *all, struct replay *ret)
{
    ret->bad.worker = NOBODY;
    for (int i = 0; i < all->count; i++) {
        const struct one *one = &all->ps[i];
        struct turns turns;
        if (one->code != EXIT_NUMBER) continue;
        if (one->from != NOBODY && ret->bad.worker != NOBODY) continue;
        TRY(turns_of(all, i, &turns));
        find_push(&turns, one->from, ret);
        free((struct turn *)turns.at);
    }
    find_batch(&all->ps[0], ret);
    return OK;
}

/* A run that ended by NaN or infinity is replayed to its end, to see the error again. */
static err choose(struct all *all, int64_t *at, uint64_t to_step, struct replay *ret)
{
    const struct record_section *first = &all->ps[0].section;
    if (to_step && to_step <= first->step)
        return fail(ERR_INPUT, "--to_step=%llu: the record begins at step %llu",
                    (unsigned long long)to_step, (unsigned long long)first->step);
    const uint64_t wanted = to_step ? to_step - first->step : 0, all_taken = taken_by_first(all);
    const uint64_t taken = find_cut(all, at, wanted);
    const bool is_reached = wanted && taken >= wanted;
    ret->section = *first;
    ret->fails = !is_reached && fails_by_number(all);
    ret->left_out = ret->fails ? 0 : all_taken - taken;
    ret->end = first->step + (ret->fails ? all_taken : taken);
    ret->bad.worker = NOBODY;
    for (int i = 0; i < all->count && ret->fails; i++) all->ps[i].cut = all->ps[i].count;
    return ret->fails ? find_bad(all, ret) : OK;
}

static err read_and_choose(const char *path, int ps, uint64_t to_step, struct all *all,
                           struct replay *ret)
{
    int64_t *at = calloc((size_t)all->count, sizeof *at);
    all->counts = calloc((size_t)all->count * (size_t)all->workers, sizeof *all->counts);
    err e = at && all->counts ? read_all(path, all) : fail(ERR_MEMORY, "no memory for a record");
    if (!e) e = choose(all, at, to_step, ret);
    free(at);
    return e ? e : turns_of(all, ps, &ret->turns);
}

err replay_read(const char *path, int ps, uint64_t to_step, struct replay *ret)
{
    struct one first = {0};
    struct all all = {0};
    *ret = (struct replay){0};
    err e = read_one(path, 0, &first);
    if (!e && ps >= first.section.ps_count)
        e = fail(ERR_INPUT, "%s is a record of %d ps", path, first.section.ps_count);
    if (!e && !(all.ps = calloc((size_t)first.section.ps_count, sizeof *all.ps)))
        e = fail(ERR_MEMORY, "no memory for a record");
    if (e) {
        free(first.turns);
        return e;
    }
    all.ps[0] = first;
    all.count = first.section.ps_count;
    all.workers = first.section.workers;
    e = read_and_choose(path, ps, to_step, &all, ret);
    for (int i = 0; i < all.count; i++) free(all.ps[i].turns);
    free(all.ps);
    free(all.counts);
    if (e) replay_free(ret);
    return e;
}

void replay_free(struct replay *r)
{
    free((struct turn *)r->turns.at);
    r->turns = (struct turns){0};
}
