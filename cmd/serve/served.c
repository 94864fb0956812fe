/* served.c - see served.h. */
#include "cmd/serve/served.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/serve/following.h"
#include "core/base/clock.h"
#include "core/base/files/file_system.h"
#include "core/base/log.h"
#include "core/train/checkpoint/checkpoints.h"

enum {
    OLD_MAX = 8,   /* old versions with unfinished requests; at this many no newer one is opened */
    OLDER_MAX = 5, /* older checkpoints tried at start if the newest is broken */
    AGAIN_FIRST_MS = 500, /* until one that failed is tried again; twice as long each time, */
    AGAIN_MAX_MS = 60000,
};

/* Identifies the files of a checkpoint */
struct identity {
    char prefix[CHECKPOINT_PATH_MAX];
    struct file_state index;
};

struct held {
    struct version *version; /* NULL: none */
    int users;
};

struct served {
    struct version_options options;
    struct identity known;            /* the last one found, opened or not */
    struct version *coming;           /* being opened; NULL: none */
    uint64_t tries, again_ms;         /* of known: failures, and when it is tried again */
    int older;                        /* older checkpoints that were tried */
    char newest_text[ERROR_TEXT_MAX]; /* why the newest checkpoint could not be opened */
    struct log_limit unseen;
    struct following following; /* with version_options.follows: deltas for `now` */

    pthread_mutex_t lock; /* guards what follows */
    char *name;
    struct held now, old[OLD_MAX];
};

err served_open(const char *name, const struct version_options *options, struct served **ret)
{
    struct served *s = calloc(1, sizeof *s);
    if (!s) return fail(ERR_MEMORY, "no memory for a model");
    s->options = *options;
    if (name) s->name = strdup(name);
    pthread_mutex_init(&s->lock, NULL);
    *ret = s;
    return OK;
}

void served_close(struct served *s)
{
    if (!s) return;
    version_close(s->coming);
    version_close(s->now.version);
    for (int i = 0; i < OLD_MAX; i++) version_close(s->old[i].version);
    pthread_mutex_destroy(&s->lock);
    free(s->name);
    free(s);
}

/* ---- opening the next one ---- */

static err identify(const char *path, struct identity *ret)
{
    char index[CHECKPOINT_PATH_MAX + sizeof ".index"];
    memset(ret, 0, sizeof *ret);
    TRY(checkpoint_find(path, ret->prefix));
    snprintf(index, sizeof index, "%s.index", ret->prefix);
    return file_look(index, &ret->index);
}

static bool is_same(const struct identity *a, const struct identity *b)
{
    return strcmp(a->prefix, b->prefix) == 0 && a->index.bytes == b->index.bytes &&
           a->index.identity == b->index.identity && a->index.changed_s == b->index.changed_s &&
           a->index.changed_ns == b->index.changed_ns;
}

static struct held *free_place(struct served *s)
{
    for (int i = 0; i < OLD_MAX; i++)
        if (!s->old[i].version) return &s->old[i];
    return NULL;
}

/* It may be half copied, or memory may be short: retries with growing pauses. */
static void note_failure(struct served *s, err failure)
{
    s->again_ms = clock_ms() + clock_backoff_ms(AGAIN_FIRST_MS, AGAIN_MAX_MS, s->tries++);
    s->following.name[0] = '\0'; /* it followed the failed one */
    tally_note_version(s->options.tally, 0, failure);
    if (served_is_ready(s) && log_again(s->tries))
        log_line(LOG_WARNING, "the previous version stays in service: %s: %s", s->known.prefix,
                 error_text());
}

/* At start, with a folder: serves an older, intact checkpoint until the newest can be opened. */
static bool start_older(struct served *s)
{
    char **prefixes;
    int count;
    if (s->older == OLDER_MAX ||
        checkpoint_list(s->options.flags->checkpoint, &prefixes, &count) != OK)
        return false;
    const int at = count - 1 - ++s->older;
    const bool begins = at >= 0 && version_start(&s->options, prefixes[at], &s->coming) == OK;
    if (begins)
        log_line(LOG_WARNING, "%s; tries the checkpoint before it, %s", s->newest_text,
                 prefixes[at]);
    free(prefixes);
    return begins;
}

static err start_newest(struct served *s, const struct identity *found)
{
    if (!is_same(found, &s->known)) s->tries = 0, s->older = 0;
    s->known = *found;
    if (s->options.follows && following_begin(&s->following, found->prefix))
        log_line(LOG_WARNING, "only checkpoints are served, no deltas: %s", error_text());
    return version_start(&s->options, found->prefix, &s->coming);
}

/* The checkpoint failed and nothing is served: tries one that has been published since, or an older
 * one. Otherwise fails with the error of the newest, which has to be repaired. */
static err end_failed(struct served *s, err failure)
{
    struct identity found;
    if (s->older == 0) snprintf(s->newest_text, sizeof s->newest_text, "%s", error_text());
    if (identify(s->options.flags->checkpoint, &found) || is_same(&found, &s->known))
        return start_older(s) ? OK : fail(failure, "%s", s->newest_text);
    log_line(LOG_WARNING, "%s; tries %s, which has been published since", s->newest_text,
             found.prefix);
    return start_newest(s, &found);
}

/* Begins to open the newest checkpoint, if it is a new one, or is to be tried again. */
static err look(struct served *s)
{
    struct identity found;
    const char *path = s->options.flags->checkpoint;
    const err e = identify(path, &found);
    if (e && !served_is_ready(s)) return end_failed(s, e);
    if (e)
        log_limited(&s->unseen, clock_ms(), LOG_WARNING, "no newer checkpoint: %s", error_text());
    if (e) return OK;
    if (is_same(&found, &s->known) && (s->tries == 0 || clock_ms() < s->again_ms)) return OK;
    const err started = start_newest(s, &found);
    if (started && !served_is_ready(s)) return started;
    if (started) note_failure(s, started);
    return OK;
}

static void put(struct served *s, struct version *version)
{
    pthread_mutex_lock(&s->lock);
    const char *name = version_spec(version)->name;
    if (!s->name) s->name = strdup(name && *name ? name : "model");
    if (s->now.version) *free_place(s) = s->now;
    s->now = (struct held){version, 0};
    pthread_mutex_unlock(&s->lock);
}

static err look_at_coming(struct served *s)
{
    err failure;
    const enum version_state state = version_state(s->coming, &failure);
    if (state == VERSION_OPENS) return OK;
    struct version *version = s->coming;
    const bool is_newest = strcmp(version_prefix(version), s->known.prefix) == 0;
    s->coming = NULL;
    if (state == VERSION_SERVES) {
        put(s, version);
        if (is_newest) s->tries = 0;
        tally_note_version(s->options.tally, version_number(version), OK);
        log_line(LOG_INFO, "serves %s, version %lld: %s", s->name,
                 (long long)version_number(version), version_prefix(version));
        return OK;
    }
    if (is_newest) note_failure(s, failure);
    const err e = served_is_ready(s) ? OK : end_failed(s, failure);
    version_close(version);
    return e;
}

/* Closes old versions without users, which nobody can take any more. */
static void close_old(struct served *s)
{
    for (int i = 0; i < OLD_MAX; i++) {
        struct held *old = &s->old[i];
        struct version *done = NULL;
        pthread_mutex_lock(&s->lock);
        if (old->users == 0) {
            done = old->version;
            old->version = NULL;
        }
        pthread_mutex_unlock(&s->lock);
        version_close(done);
    }
}

err served_turn(struct served *s, bool looks)
{
    close_old(s);
    if (looks && s->now.version) version_renew_lease(s->now.version);
    if (s->coming) return look_at_coming(s);
    if (looks && free_place(s)) TRY(look(s));
    if (looks && !s->coming && s->now.version && s->options.follows)
        following_turn(&s->following, s->now.version, s->options.tally);
    return OK;
}

/* ---- using one ---- */

const char *served_name(struct served *s)
{
    pthread_mutex_lock(&s->lock);
    const char *name = s->name; /* never changes once set */
    pthread_mutex_unlock(&s->lock);
    return name;
}

const char *served_label(const struct served *s)
{
    return s->options.label;
}

struct tally *served_tally(const struct served *s)
{
    return s->options.tally;
}

bool served_is_ready(struct served *s)
{
    pthread_mutex_lock(&s->lock);
    const bool is_ready = s->now.version != NULL;
    pthread_mutex_unlock(&s->lock);
    return is_ready;
}

struct version *served_take(struct served *s, int64_t number)
{
    struct version *version = NULL;
    pthread_mutex_lock(&s->lock);
    if (s->now.version && (number < 0 || number == version_number(s->now.version))) {
        version = s->now.version;
        s->now.users++;
    }
    pthread_mutex_unlock(&s->lock);
    return version;
}

void served_give(struct served *s, struct version *version)
{
    pthread_mutex_lock(&s->lock);
    if (s->now.version == version) s->now.users--;
    for (int i = 0; i < OLD_MAX; i++)
        if (s->old[i].version == version) s->old[i].users--;
    pthread_mutex_unlock(&s->lock);
}
