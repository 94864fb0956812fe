/* calls_streams.c - stdio's files and the entries of folders: the C library calls the system from
 * within there. */
#undef _FILE_OFFSET_BITS /* with it open() would be called open64, and so on: both are here */
#include "tests/world/descriptors.h"
#include "tests/world/files.h"
#include "tests/world/machine.h"
#include "tests/world/real.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { STREAMS_MAX = 256 };

static struct stream_place {
    FILE *file;
    int descriptor;
} streams[STREAMS_MAX];

static ssize_t read_stream(void *cookie, char *to, size_t count)
{
    struct description *description = description_of((int)(intptr_t)cookie);
    return description && description->kind == OPEN_FILE ? file_read(&description->file, to, count)
                                                         : 0;
}

static ssize_t write_stream(void *cookie, const char *from, size_t count)
{
    struct description *description = description_of((int)(intptr_t)cookie);
    if (!description) return 0;
    if (description->kind == OPEN_FILE) {
        const ssize_t put = file_write(&description->file, from, count);
        return put < 0 ? 0 : put;
    }
    if (description->kind == OPEN_OUTPUT) process_says(description->process, from, count);
    return (ssize_t)count;
}

static int seek_stream(void *cookie, off64_t *offset, int whence)
{
    struct description *description = description_of((int)(intptr_t)cookie);
    if (!description || description->kind != OPEN_FILE) return -1;
    if (whence == SEEK_CUR) *offset += (off64_t)description->file.offset;
    if (whence == SEEK_END) *offset += (off64_t)description->file.inode->count;
    description->file.offset = (uint64_t)*offset;
    return 0;
}

static int close_stream(void *cookie)
{
    const int descriptor = (int)(intptr_t)cookie;
    for (int i = 0; i < STREAMS_MAX; i++)
        if (streams[i].file && streams[i].descriptor == descriptor) streams[i].file = NULL;
    return descriptor_close(descriptor);
}

FILE *fdopen(int descriptor, const char *mode)
{
    if (!process_now()) return REAL(fdopen)(descriptor, mode);
    char plain[4] = {*mode, strchr(mode, '+') ? '+' : '\0', '\0'};
    FILE *file = fopencookie((void *)(intptr_t)descriptor, plain,
                             (cookie_io_functions_t){.read = read_stream,
                                                     .write = write_stream,
                                                     .seek = seek_stream,
                                                     .close = close_stream});
    for (int i = 0; i < STREAMS_MAX; i++)
        if (!streams[i].file) {
            streams[i] = (struct stream_place){file, descriptor};
            break;
        }
    return file;
}

FILE *fopen64(const char *path, const char *mode)
{
    if (!process_now()) return REAL(fopen64)(path, mode);
    int flags = *mode == 'r' ? O_RDONLY : O_WRONLY | O_CREAT;
    if (strchr(mode, '+')) flags = (flags & ~O_ACCMODE) | O_RDWR;
    if (*mode == 'w') flags |= O_TRUNC;
    if (*mode == 'a') flags |= O_APPEND;
    if (strchr(mode, 'x')) flags |= O_EXCL;
    const int descriptor = open64(path, flags, 0666);
    return descriptor < 0 ? NULL : fdopen(descriptor, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    return process_now() ? fopen64(path, mode) : REAL(fopen)(path, mode);
}

/* Those of dead processes may have had the same place: the last one counts. */
int fileno(FILE *file)
{
    if (!process_now()) return REAL(fileno)(file);
    for (int i = 0; i < STREAMS_MAX; i++)
        if (streams[i].file == file) return streams[i].descriptor;
    return REAL(fileno)(file);
}

/* ---- folders ---- */

struct __dirstream {
    int descriptor, next, count;
    struct entry *entries; /* as they were when it was opened */
    struct dirent64 entry;
};

DIR *fdopendir(int descriptor)
{
    if (!process_now()) return REAL(fdopendir)(descriptor);
    const struct description *description = description_of(descriptor);
    if (!description) return NULL;
    const struct entries *entries = &description->file.inode->entries;
    struct __dirstream *ret = calloc(1, sizeof *ret);
    ret->descriptor = descriptor;
    ret->count = entries->count;
    ret->entries = calloc((size_t)ret->count + 1, sizeof *ret->entries);
    if (ret->count) memcpy(ret->entries, entries->at, (size_t)ret->count * sizeof *ret->entries);
    return ret;
}

DIR *opendir(const char *path)
{
    if (!process_now()) return REAL(opendir)(path);
    const int descriptor = open64(path, O_RDONLY | O_DIRECTORY);
    return descriptor < 0 ? NULL : fdopendir(descriptor);
}

struct dirent64 *readdir64(DIR *folder)
{
    if (!process_now()) return REAL(readdir64)(folder);
    if (folder->next >= folder->count) return NULL;
    const struct entry *entry = &folder->entries[folder->next++];
    memset(&folder->entry, 0, sizeof folder->entry);
    folder->entry.d_ino = (ino64_t)entry->inode->number;
    folder->entry.d_type = entry->inode->is_folder ? DT_DIR : DT_REG;
    strcpy(folder->entry.d_name, entry->name);
    return &folder->entry;
}

struct dirent *readdir(DIR *folder)
{
    return (struct dirent *)(process_now() ? readdir64(folder) : REAL(readdir64)(folder));
}

int closedir(DIR *folder)
{
    if (!process_now()) return REAL(closedir)(folder);
    descriptor_close(folder->descriptor);
    free(folder->entries);
    free(folder);
    return 0;
}

int dirfd(DIR *folder)
{
    return process_now() ? folder->descriptor : REAL(dirfd)(folder);
}

int scandir64(const char *path, struct dirent64 ***ret, int (*is_wanted)(const struct dirent64 *),
              int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
    if (!process_now()) return REAL(scandir64)(path, ret, is_wanted, compare);
    DIR *folder = opendir(path);
    int count = 0;
    if (!folder) return -1;
    *ret = NULL;
    for (struct dirent64 *entry; (entry = readdir64(folder));) {
        if (is_wanted && !is_wanted(entry)) continue;
        *ret = realloc(*ret, (size_t)(count + 1) * sizeof **ret);
        (*ret)[count] = malloc(sizeof *entry);
        *(*ret)[count++] = *entry;
    }
    closedir(folder);
    if (compare && count)
        qsort(*ret, (size_t)count, sizeof **ret, (int (*)(const void *, const void *))compare);
    return count;
}

static void close_folder(void *folder)
{
    closedir(folder);
}

int glob64(const char *pattern, int flags, int (*failed)(const char *, int), glob64_t *ret)
{
    if (!process_now()) return REAL(glob64)(pattern, flags, failed, ret);
    ret->gl_opendir = (void *(*)(const char *))opendir;
    ret->gl_readdir = (struct dirent64 * (*)(void *)) readdir64;
    ret->gl_closedir = close_folder;
    ret->gl_stat = stat64;
    ret->gl_lstat = lstat64;
    return REAL(glob64)(pattern, flags | GLOB_ALTDIRFUNC, failed, ret);
}
