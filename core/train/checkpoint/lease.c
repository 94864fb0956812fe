/* lease.c - marks a checkpoint as being read: see checkpoints.h.
 *
 * A lease is an empty file beside the checkpoint, renewed by its modification time. After taking
 * one, a reader checks again that the checkpoint exists: it may have been removed a moment before.
 */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files/file_system.h"
#include "core/base/files/own.h"
#include "core/train/checkpoint/best_checkpoints.h"
#include "core/train/checkpoint/checkpoints_inside.h"

enum { HOLDER_MAX = 64 }; /* characters of a holder's name that count */

struct lease {
    char prefix[CHECKPOINT_PATH_MAX], path[CHECKPOINT_PATH_MAX];
};

/* Sets the modification time to the file system's current time. */
static err touch(const char *path)
{
    if (path_is_url(path)) return file_put(path, "", 0);
    const int file = own_open_or_make(path);
    if (file < 0) return fail(ERR_IO, "%s: %s", path, strerror(errno));
    err e = OK;
    if (futimens(file, NULL) != 0) e = fail(ERR_IO, "%s: %s", path, strerror(errno));
    close(file);
    return e;
}

err lease_renew(struct lease *lease)
{
    TRY(touch(lease->path));
    if (has_index(lease->prefix)) return OK;
    folder_unlink(lease->path);
    return fail(ERR_INPUT, "%s: the checkpoint is gone", lease->prefix);
}

static err name_lease(const char *prefix, const char *holder, struct lease *lease)
{
    char folder[CHECKPOINT_PATH_MAX], plain[HOLDER_MAX + 1], name[CHECKPOINT_PATH_MAX];
    TRY(folder_join(".", prefix, name)); /* not too long */
    snprintf(lease->prefix, sizeof lease->prefix, "%s", prefix);
    snprintf(plain, sizeof plain, "%s", holder);
    for (char *c = plain; *c; c++) {
        if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_') *c = '_';
    }
    const char *base = folder_split(prefix, folder);
    snprintf(name, sizeof name, LEASE_NAME "%s.%s", base, plain);
    return folder_join(folder, name, lease->path);
}

err lease_take(const char *prefix, const char *holder, struct lease **ret)
{
    struct lease *lease = calloc(1, sizeof *lease);
    if (!lease) return fail(ERR_MEMORY, "no memory for a lease");
    err e = name_lease(prefix, holder, lease);
    if (!e) e = lease_renew(lease);
    if (e) {
        free(lease);
        return e;
    }
    *ret = lease;
    return OK;
}

void lease_drop(struct lease *lease)
{
    if (!lease) return;
    folder_unlink(lease->path);
    free(lease);
}

/* ---- held in memory ---- */

struct held_folder {
    struct held_folder *next;
    char prefix[];
};

static struct {
    pthread_mutex_t lock;
    struct held_folder *first;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

err lease_hold(const char *prefix)
{
    const size_t bytes = strlen(prefix) + 1;
    struct held_folder *held = malloc(sizeof *held + bytes);
    if (!held) return fail(ERR_MEMORY, "no memory to hold %s", prefix);
    memcpy(held->prefix, prefix, bytes);
    pthread_mutex_lock(&memory.lock);
    held->next = memory.first;
    memory.first = held;
    pthread_mutex_unlock(&memory.lock);
    return OK;
}

/* The caller holds the lock. */
static struct held_folder **find_held(const char *prefix)
{
    struct held_folder **at = &memory.first;
    while (*at && strcmp((*at)->prefix, prefix) != 0) at = &(*at)->next;
    return at;
}

void lease_let_go(const char *prefix)
{
    pthread_mutex_lock(&memory.lock);
    struct held_folder **at = find_held(prefix), *held = *at;
    if (held) *at = held->next;
    pthread_mutex_unlock(&memory.lock);
    free(held);
}

static bool is_held_here(const char *prefix)
{
    pthread_mutex_lock(&memory.lock);
    const bool ret = *find_held(prefix);
    pthread_mutex_unlock(&memory.lock);
    return ret;
}

/* ---- looked for ---- */

struct lease_search {
    char folder[CHECKPOINT_PATH_MAX];
    char beginning[CHECKPOINT_PATH_MAX]; /* of the file names of this checkpoint's leases */
    double now_s;
    bool is_held;
};

bool lease_is_of_best(const char *name)
{
    static const char ending[] = "." BEST_HOLDER;
    const size_t length = strlen(name);
    return length >= strlen(ending) && strcmp(name + length - strlen(ending), ending) == 0;
}

static void look_at(void *context, const char *name)
{
    struct lease_search *search = context;
    char path[CHECKPOINT_PATH_MAX];
    if (strncmp(name, search->beginning, strlen(search->beginning)) != 0) return;
    if (folder_join(search->folder, name, path)) return;
    const enum file_age age = file_age(path, LEASE_MAX_S, search->now_s);
    search->is_held |= age == FILE_RECENT;
    if (age == FILE_OLD && !lease_is_of_best(name)) folder_unlink(path);
}

bool lease_is_held(const char *prefix, double now_s)
{
    struct lease_search search = {.now_s = now_s};
    if (is_held_here(prefix)) return true;
    const char *base = folder_split(prefix, search.folder);
    snprintf(search.beginning, sizeof search.beginning, LEASE_NAME "%s.", base);
    return folder_visit(search.folder, look_at, &search) || search.is_held;
}
