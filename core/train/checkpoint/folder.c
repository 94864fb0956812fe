/* folder.c - operations on folders and files that do not depend on checkpoints. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files/file_system.h"
#include "core/base/files/own.h"
#include "core/base/files/replace.h"
#include "core/base/log.h"
#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/checkpoints_inside.h"

const char *const run_file_names[RUN_FILES] = {CHECKPOINT_STATE, TOKEN_NAME,     ENDED_NAME,
                                               MEASURED_NAME,    LAST_SPEC_NAME, SETTINGS_NAME,
                                               DAY_NAME};

/* errno is that of the failed call. */
static err refused(const char *what, const char *path)
{
    return fail(ERR_IO, "%s %s: %s", what, path, strerror(errno));
}

static err too_long(const char *path)
{
    return fail(ERR_INPUT, "%.64s...: a path of more than %d characters", path,
                (int)CHECKPOINT_PATH_MAX - 1);
}

err folder_join(const char *folder, const char *name, char ret[CHECKPOINT_PATH_MAX])
{
    const size_t end = strlen(folder);
    const char *slash = end > 0 && folder[end - 1] == '/' ? "" : "/";
    char path[CHECKPOINT_PATH_MAX];
    const int length = snprintf(path, sizeof path, "%s%s%s", folder, slash, name);
    if (length >= CHECKPOINT_PATH_MAX) return too_long(folder);
    memcpy(ret, path, (size_t)length + 1); /* only now, because folder or name may be in ret */
    return OK;
}

err folder_copy(const char *path, char ret[CHECKPOINT_PATH_MAX])
{
    const size_t length = strlen(path);
    if (length >= CHECKPOINT_PATH_MAX) return too_long(path);
    memmove(ret, path, length + 1);
    return OK;
}

const char *folder_split(const char *path, char ret[CHECKPOINT_PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        snprintf(ret, CHECKPOINT_PATH_MAX, ".");
        return path;
    }
    const int length = slash == path ? 1 : (int)(slash - path);
    snprintf(ret, CHECKPOINT_PATH_MAX, "%.*s", length, path);
    return slash + 1;
}

/* Another task may create the folder at the same moment, so EEXIST is no error. Files in a folder
 * whose own name was not synced may be lost with it, so that is synced, too, if the system allows
 * it. */
static err make_one(const char *path)
{
    if (mkdir(path, 0777) != 0) {
        return errno == EEXIST ? OK : refused("cannot make the folder", path);
    }
    if (file_sync_folder(path)) log_line(LOG_WARNING, "%s", error_text());
    return OK;
}

err folder_make(const char *path)
{
    if (path_is_url(path)) return OK; /* it is there with its first file */
    char part[CHECKPOINT_PATH_MAX];
    TRY(folder_join(path, "", part));
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        TRY(make_one(part));
        *slash = '/';
    }
    return OK;
}

struct visiting {
    folder_visitor *visit;
    void *context;
    int left;
};

static err tell_name(void *context, const char *name)
{
    struct visiting *v = context;
    if (v->left-- > 0) v->visit(v->context, name);
    return OK;
}

err folder_visit(const char *path, folder_visitor *visit, void *context)
{
    if (path_is_url(path))
        return files_visit(path, tell_name, &(struct visiting){visit, context, FOLDER_NAMES_MAX});
    DIR *folder = opendir(path);
    if (!folder) return refused("cannot read the folder", path);
    for (int i = 0; i < FOLDER_NAMES_MAX; i++) {
        const struct dirent *entry = readdir(folder);
        if (!entry) break;
        visit(context, entry->d_name);
    }
    closedir(folder);
    return OK;
}

void folder_unlink(const char *path)
{
    if (!path_is_url(path))
        unlink(path);
    else if (file_remove(path))
        log_line(LOG_WARNING, "%s", error_text());
}

struct removal {
    const char *folder, *begin; /* of the names to remove */
};

static bool is_meant(const char *name, const char *begin)
{
    return strncmp(name, begin, strlen(begin)) == 0;
}

static void remove_there(void *context, const char *name)
{
    const struct removal *r = context;
    char path[CHECKPOINT_PATH_MAX];
    if (is_meant(name, r->begin) && !folder_join(r->folder, name, path)) folder_unlink(path);
}

/* Removes files in this open folder, even if it is renamed meanwhile. */
static void remove_here(int file, const char *begin)
{
    DIR *folder = fdopendir(file);
    if (!folder) {
        close(file);
        return;
    }
    for (int i = 0; i < FOLDER_NAMES_MAX; i++) {
        const struct dirent *entry = readdir(folder);
        if (!entry) break;
        if (is_meant(entry->d_name, begin)) unlinkat(file, entry->d_name, 0);
    }
    closedir(folder);
}

/* Other files stay, and the folder with them. If the folder is a symbolic link, the link is
 * removed. */
void folder_remove_named(const char *folder, const char *begin)
{
    struct removal removal = {folder, begin};
    if (path_is_url(folder)) {
        if (!folder_visit(folder, remove_there, &removal) && file_remove_folder(folder))
            log_line(LOG_WARNING, "%s", error_text());
        return;
    }
    const int file = own_folder_open(folder);
    if (file >= 0) remove_here(file, begin);
    if (file >= 0 || (errno != ELOOP && errno != ENOTDIR))
        rmdir(folder);
    else
        unlink(folder);
}

/* After a failed call: whether the file certainly does not exist. If the disk does not answer, it
 * may. */
static bool is_absent(void)
{
    return errno == ENOENT || errno == ENOTDIR;
}

/* Of the file itself if the path is a symbolic link: that is what was written. */
err file_time(const char *path, double *ret_s)
{
    struct stat status;
    struct file_state state;
    bool is_there;
    *ret_s = -1;
    if (path_is_url(path)) {
        TRY(file_find(path, &is_there, &state));
        if (is_there) *ret_s = (double)state.changed_s;
    } else if (stat(path, &status) == 0) {
        *ret_s = (double)status.st_mtim.tv_sec + (double)status.st_mtim.tv_nsec * 1e-9;
    } else if (!is_absent()) {
        return refused("cannot look at", path);
    }
    return OK;
}

double file_time_s(const char *path)
{
    double time_s;
    return file_time(path, &time_s) ? -1 : time_s;
}

enum file_age file_age(const char *path, double limit_s, double now_s)
{
    double time_s;
    if (file_time(path, &time_s)) return FILE_RECENT;
    if (time_s < 0) return FILE_GONE;
    return now_s - time_s < limit_s ? FILE_RECENT : FILE_OLD;
}

/* A checkpoint exists if its index does; data files are created before it and removed after it. */
err folder_find_index(const char *prefix, bool *ret_is_there)
{
    char path[CHECKPOINT_PATH_MAX + sizeof CHECKPOINT_INDEX];
    struct stat status;
    struct file_state state;
    snprintf(path, sizeof path, "%s" CHECKPOINT_INDEX, prefix);
    if (path_is_url(path)) return file_find(path, ret_is_there, &state);
    const bool is_answered = stat(path, &status) == 0;
    *ret_is_there = is_answered && S_ISREG(status.st_mode);
    return is_answered || is_absent() ? OK : refused("cannot look at", path);
}

/* If a server or a disk does not answer, the index must not be taken for missing, or data would be
 * removed. */
bool has_index(const char *prefix)
{
    bool is_there;
    return folder_find_index(prefix, &is_there) || is_there;
}

bool is_data_ending(const char *text)
{
    int shard, shards, bytes = 0;
    return sscanf(text, CHECKPOINT_DATA "%5d-of-%5d%n", &shard, &shards, &bytes) == 2 &&
           bytes > 0 && !text[bytes];
}
