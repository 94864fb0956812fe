/* following.c - see following.h. */
#include "cmd/serve/following.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"

err following_begin(struct following *f, const char *prefix)
{
    const char *slash = strrchr(prefix, '/'), *name = slash ? slash + 1 : prefix;
    const int folder = slash ? (int)(slash - prefix) : 1;
    *f = (struct following){.unseen = f->unseen};
    TRY(published_index(prefix, &f->index));
    if (strlen(name) >= sizeof f->name) return fail(ERR_INPUT, "%s: too long a name", prefix);
    snprintf(f->folder, sizeof f->folder, "%.*s", folder, slash ? prefix : ".");
    snprintf(f->name, sizeof f->name, "%s", name);
    return OK;
}

/* Whether the publication names this checkpoint, and begins with the deltas that were applied. */
static bool goes_on(const struct following *f)
{
    const struct publication *p = &f->said;
    if (strcmp(p->full.name, f->name) != 0 || p->full.index != f->index || p->count < f->count)
        return false;
    return f->count == 0 || p->deltas[f->count - 1].index == f->taken.index;
}

static err take(struct following *f, const struct published *next, struct version *version)
{
    char prefix[CHECKPOINT_PATH_MAX + PUBLISHED_NAME_MAX];
    uint32_t index;
    snprintf(prefix, sizeof prefix, "%s/%s", f->folder, next->name);
    TRY(published_index(prefix, &index));
    if (index != next->index)
        return fail(ERR_INPUT, "%s: is not what %s says", prefix, PUBLICATION_NAME);
    return version_freshen(version, prefix, next->step);
}

/* Whether the delta is still published, or that is unknown. It may have been removed while it was
 * being read, because a newer checkpoint was published. */
static bool is_named(struct following *f, const struct published *next)
{
    if (publication_read(f->folder, &f->said)) return true;
    return goes_on(f) && f->count < f->said.count && f->said.deltas[f->count].index == next->index;
}

static void lose(struct following *f, const struct published *next, const char *why,
                 struct tally *tally)
{
    f->is_lost = true;
    tally_note_lost(tally);
    log_line(
        LOG_WARNING,
        "cannot apply the delta of step %lld: %s; step %lld is served until the next checkpoint",
        (long long)next->step, why,
        (long long)(f->count ? f->taken.step : checkpoint_step(f->name)));
}

/* Applies all new deltas. ERR_IO is retried in the next turn. */
static void take_next(struct following *f, struct version *version, struct tally *tally)
{
    while (f->count < f->said.count) {
        const struct published next = f->said.deltas[f->count];
        const err e = take(f, &next, version);
        if (e == ERR_INPUT || e == ERR_MEMORY) {
            char why[ERROR_TEXT_MAX];
            snprintf(why, sizeof why, "%s", error_text());
            if (is_named(f, &next)) lose(f, &next, why, tally);
        }
        if (e == ERR_IO)
            log_limited(&f->unseen, clock_ms(), LOG_WARNING, "a delta cannot be read yet: %s",
                        error_text());
        if (e) return;
        f->taken = next;
        f->count++;
        tally_note_fresh(tally, next.step, next.time_s);
    }
}

void following_turn(struct following *f, struct version *version, struct tally *tally)
{
    if (!f->name[0] || f->is_lost) return;
    if (publication_read(f->folder, &f->said)) {
        log_limited(&f->unseen, clock_ms(), LOG_WARNING, "what is published cannot be read: %s",
                    error_text());
        return;
    }
    if (!goes_on(f)) return; /* another checkpoint is published, or about to be */
    if (f->count == 0) tally_note_fresh(tally, f->said.full.step, f->said.full.time_s);
    take_next(f, version, tally);
}
