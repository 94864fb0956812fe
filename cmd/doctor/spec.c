/* spec.c - checks the spec, and the folders that its run writes to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "cmd/doctor/doctor.h"
#include "core/base/clock.h"
#include "core/base/files/file_system.h"
#include "core/base/files/own.h"

enum {
    PIECE_BYTES = 1 << 20,
    LOCAL_PIECES = 32,
    URL_PIECES = 4,
    PATH_MAX_BYTES = 4096,
    PARENTS_MAX = 256, /* of a path */
};

static const double MEGA = 1e6, GIGA = 1e9, NANO = 1e-9;

static void name_trial(const char *folder, char ret[PATH_MAX_BYTES])
{
    char host[64] = "host";
    gethostname(host, sizeof host - 1);
    snprintf(ret, PATH_MAX_BYTES, "%s/.dtrain-doctor-%s-%d", folder, host, (int)getpid());
}

/* ---- how fast a folder takes bytes ---- */

static err write_here(const char *path, const char *piece)
{
    const int file = own_make(path);
    if (file < 0) return fail(ERR_IO, "%s", strerror(errno));
    bool is_written = true;
    for (int i = 0; is_written && i < LOCAL_PIECES; i++)
        is_written = own_write(file, piece, PIECE_BYTES);
    is_written = is_written && fsync(file) == 0;
    const err e = is_written ? OK : fail(ERR_IO, "%s", strerror(errno));
    close(file);
    unlink(path);
    return e;
}

static err write_behind_url(const char *path, const char *piece)
{
    struct file_writer *writer = NULL;
    err e = file_create(path, &writer);
    for (int i = 0; !e && i < URL_PIECES; i++) e = file_append(writer, piece, PIECE_BYTES);
    if (!e) e = file_finish(writer);
    file_drop(writer);
    const err removed = e ? OK : file_remove(path);
    return e ? e : removed;
}

static err measure(const char *folder, double *ret_bytes_s)
{
    char path[PATH_MAX_BYTES];
    const bool is_url = path_is_url(folder);
    char *piece = calloc(1, PIECE_BYTES);
    if (!piece) return fail(ERR_MEMORY, "no memory to try it");
    name_trial(folder, path);
    const uint64_t begin_ns = clock_ns();
    const err e = is_url ? write_behind_url(path, piece) : write_here(path, piece);
    const double took_s = (double)(clock_ns() - begin_ns) * NANO;
    free(piece);
    const double bytes = (double)PIECE_BYTES * (is_url ? URL_PIECES : LOCAL_PIECES);
    *ret_bytes_s = took_s > 0 ? bytes / took_s : 0;
    return e;
}

/* ---- folders ---- */

/* The folder itself, or its nearest existing parent. */
static bool find_there(const char *folder, char ret[PATH_MAX_BYTES])
{
    snprintf(ret, PATH_MAX_BYTES, "%s", folder);
    for (int i = 0; i < PARENTS_MAX; i++) {
        if (access(ret, F_OK) == 0) return true;
        char *slash = strrchr(ret, '/');
        if (!slash) return snprintf(ret, PATH_MAX_BYTES, "."), access(".", F_OK) == 0;
        slash[slash == ret] = '\0';
    }
    return false;
}

/* What the folder's file system means for checkpoints kept there; NULL: nothing special. */
static const char *meaning_of(const char *folder)
{
    struct statfs found;
    if (statfs(folder, &found)) return NULL;
    switch ((unsigned long)found.f_type) {
    case TMPFS_MAGIC:
        return "it is memory: gone with the host, and counts as memory of the task";
    case OVERLAYFS_SUPER_MAGIC:
        return "it is in the container itself: gone with it";
    default:
        return NULL;
    }
}

static void look_at_local(struct report *r, const char *key, const char *folder)
{
    char there[PATH_MAX_BYTES];
    struct statvfs space;
    double bytes_s;
    if (!find_there(folder, there)) {
        report_say(r, HEALTH_BAD, key, NULL, "%s: nothing of that path is there", folder);
        return;
    }
    if (measure(there, &bytes_s)) {
        report_say(r, HEALTH_BAD, key, "give this user the right to write there, or name another",
                   "%s: cannot be written: %s", there, error_text());
        return;
    }
    const double free_bytes =
        statvfs(there, &space) ? 0 : (double)space.f_bavail * (double)space.f_frsize;
    const char *meaning = meaning_of(there);
    report_say(r, meaning ? HEALTH_WARNING : HEALTH_OK, key,
               meaning ? "name a folder that outlives the task" : NULL,
               "%s%s: %.0f MB/s written and synced, %.1f GB free%s%s", folder,
               strcmp(there, folder) ? " (will be made)" : "", bytes_s / MEGA, free_bytes / GIGA,
               meaning ? "; " : "", meaning ? meaning : "");
}

static void look_at_folder(struct report *r, const char *key, const char *folder)
{
    double bytes_s;
    if (!path_is_url(folder))
        look_at_local(r, key, folder);
    else if (measure(folder, &bytes_s))
        report_say(r, HEALTH_BAD, key,
                   "dtrain help environment says where credentials are looked for", "%s",
                   error_text());
    else
        report_say(r, HEALTH_OK, key, NULL, "%s: %.1f MB/s written, and removed again", folder,
                   bytes_s / MEGA);
}

static void look_at_folders(struct report *r, const struct train_spec *train)
{
    if (train->checkpoint.dir)
        look_at_folder(r, "train.checkpoint_dir", train->checkpoint.dir);
    else
        report_say(r, HEALTH_NOTE, "train.checkpoint_dir", "set it for runs that matter",
                   "not set: what is trained is lost with the tasks");
    if (train->summary.dir) look_at_folder(r, "train.summary_dir", train->summary.dir);
}

void doctor_spec(struct report *r, struct run *run)
{
    if (run_load_spec(run)) {
        report_say(r, HEALTH_BAD, "spec", "dtrain check says more once that is mended", "%s",
                   error_text());
        return;
    }
    report_say(r, HEALTH_OK, "spec", NULL,
               "%s: fingerprint %s, equal in all tasks of a job; its data are read by dtrain check",
               run->spec.source, run->spec.as_written);
    look_at_folders(r, &run->spec.train);
}
