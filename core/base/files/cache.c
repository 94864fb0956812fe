/* cache.c - see cache.h. */
#include "core/base/files/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/crc32c.h"
#include "core/base/files/own.h"
#include "core/base/files/replace.h"
#include "core/base/fingerprint.h"
#include "core/base/log.h"

enum { PIECES_AHEAD = FILE_AHEAD_BYTES / CACHE_PIECE_BYTES };
#define BEGIN "dtrain-" /* of the names of all that is ours there */

/* Set at start */
static char *cache_folder; /* NULL: there is no cache */
static uint64_t bytes_max;

static struct {
    pthread_mutex_t lock;
    uint64_t written; /* since the folder's size was checked */
} keeping = {.lock = PTHREAD_MUTEX_INITIALIZER};
static atomic_bool has_failed; /* logged once; from then on nothing is cached */

/* The header of a piece, in the byte order of this host */
struct piece_head {
    char magic[8];
    uint64_t url, number;
    struct file_state state;
    uint32_t bytes, checksum;
};
static const char magic[8] = "DTRAINP1";

struct cached_file {
    struct file file; /* first */
    struct file *from;
    uint64_t url, key;      /* hashes of the URL, and of the URL and its state */
    struct piece_head head; /* header of the piece in memory; bytes 0: none */
    uint8_t *memory;        /* [CACHE_PIECE_BYTES] */
};

/* ---- the folder ---- */

struct found_piece {
    char *path;
    struct timespec used;
    uint64_t bytes;
};

static int compare_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct found_piece *)a)->used;
    const struct timespec *y = &((const struct found_piece *)b)->used;
    return x->tv_sec != y->tv_sec ? (x->tv_sec > y->tv_sec) - (x->tv_sec < y->tv_sec)
                                  : (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

struct found_pieces {
    struct found_piece *at;
    size_t count, capacity;
    uint64_t bytes;
};

/* Without memory a piece is not noted, and so not removed. */
static void note(struct found_pieces *f, const char *name)
{
    struct stat status;
    char *path = NULL;
    if (f->count == f->capacity) {
        const size_t capacity = f->capacity ? 2 * f->capacity : 256;
        struct found_piece *at = realloc(f->at, capacity * sizeof *at);
        if (!at) return;
        f->at = at;
        f->capacity = capacity;
    }
    if (asprintf(&path, "%s/%s", cache_folder, name) < 0) return;
    if (stat(path, &status)) {
        free(path);
        return;
    }
    f->at[f->count++] = (struct found_piece){path, status.st_mtim, (uint64_t)status.st_size};
    f->bytes += (uint64_t)status.st_size;
}

static void find_pieces(struct found_pieces *f)
{
    DIR *folder = opendir(cache_folder);
    for (int i = 0; folder && i < CACHE_FILES_MAX; i++) {
        const struct dirent *entry = readdir(folder);
        if (!entry) break;
        if (strncmp(entry->d_name, BEGIN, strlen(BEGIN)) == 0) note(f, entry->d_name);
    }
    if (folder) closedir(folder);
    if (f->count > 0) qsort(f->at, f->count, sizeof *f->at, compare_use);
}

/* Removes pieces, so that there is room for what is written until the next check. */
static void make_room(void)
{
    const uint64_t most = bytes_max - bytes_max / CACHE_LOOKS;
    struct found_pieces f = {0};
    find_pieces(&f);
    for (size_t i = 0; i < f.count; i++) {
        if (f.bytes > most && unlink(f.at[i].path) == 0) f.bytes -= f.at[i].bytes;
        free(f.at[i].path);
    }
    free(f.at);
}

static void count_written(uint64_t bytes)
{
    pthread_mutex_lock(&keeping.lock);
    keeping.written += bytes;
    const bool is_due = keeping.written >= bytes_max / CACHE_LOOKS;
    if (is_due) keeping.written = 0;
    if (is_due) make_room();
    pthread_mutex_unlock(&keeping.lock);
}

err cache_begin(const char *folder, uint64_t max_bytes)
{
    if (path_is_url(folder))
        return fail(ERR_INPUT, "cache_dir: %s: expected a folder of this host", folder);
    if (mkdir(folder, 0777) && errno != EEXIST)
        return fail(ERR_INPUT, "cache_dir: %s: cannot be made: %s", folder, strerror(errno));
    if (access(folder, R_OK | W_OK | X_OK))
        return fail(ERR_INPUT, "cache_dir: %s: cannot be written: %s", folder, strerror(errno));
    cache_folder = strdup(folder);
    if (!cache_folder) return fail(ERR_MEMORY, "no memory for the cache");
    bytes_max = max_bytes;
    make_room();
    return OK;
}

/* ---- pieces there ---- */

/* NULL: no memory */
static char *piece_path(const struct cached_file *f, uint64_t number)
{
    char *path = NULL;
    if (asprintf(&path, "%s/" BEGIN "%016llx-%08llx", cache_folder, (unsigned long long)f->key,
                 (unsigned long long)number) < 0)
        return NULL;
    return path;
}

static uint32_t piece_bytes(const struct cached_file *f, uint64_t number)
{
    const uint64_t left = f->file.state.bytes - number * CACHE_PIECE_BYTES;
    return left < CACHE_PIECE_BYTES ? (uint32_t)left : CACHE_PIECE_BYTES;
}

static struct piece_head head_of(const struct cached_file *f, uint64_t number)
{
    struct piece_head head;
    memset(&head, 0, sizeof head); /* compared and written as bytes, padding too */
    memcpy(head.magic, magic, sizeof magic);
    head.url = f->url;
    head.number = number;
    head.state = f->file.state;
    head.bytes = piece_bytes(f, number);
    return head;
}

static bool is_kept(const struct cached_file *f, uint64_t number)
{
    char *path = piece_path(f, number);
    const bool is_there = path && access(path, R_OK) == 0;
    free(path);
    return is_there;
}

static bool read_all(int file, void *to, size_t bytes)
{
    size_t done = 0;
    for (ssize_t got = 1; done < bytes && got > 0; done += got > 0 ? (size_t)got : 0)
        got = read(file, (uint8_t *)to + done, bytes - done);
    return done == bytes;
}

/* false: the piece is not cached, or does not match. */
static bool load_kept(struct cached_file *f, uint64_t number)
{
    char *path = piece_path(f, number);
    const int file = path ? own_open(path, O_RDONLY) : -1;
    struct piece_head expected = head_of(f, number), found;
    bool is_it = file >= 0 && read_all(file, &found, sizeof found) &&
                 read_all(file, f->memory, expected.bytes);
    if (is_it) {
        expected.checksum = crc32c(f->memory, expected.bytes);
        is_it = memcmp(&expected, &found, sizeof found) == 0;
        (void)futimens(file, NULL); /* its time of last use */
    }
    if (file >= 0) close(file);
    free(path);
    if (is_it) f->head = expected;
    return is_it;
}

static void give_up_keeping(const char *path)
{
    const int why = errno;
    if (!atomic_exchange(&has_failed, true))
        log_line(LOG_WARNING, "cache_dir: %s: %s; no more files are cached", path, strerror(why));
}

static void keep(const struct cached_file *f)
{
    const struct iovec pieces[] = {{(void *)&f->head, sizeof f->head}, {f->memory, f->head.bytes}};
    char *path = piece_path(f, f->head.number);
    if (path && !atomic_load(&has_failed)) {
        if (file_replace_cached(path, pieces, 2))
            count_written(sizeof f->head + f->head.bytes);
        else if (errno != ENOENT && errno != ENOMEM) /* else another task removed it */
            give_up_keeping(path);
    }
    free(path);
}

/* ---- a file ---- */

/* The end of the read-ahead: where the next cached piece begins, at `until` at most. */
static uint64_t end_of_missing(const struct cached_file *f, uint64_t number, uint64_t until)
{
    const uint64_t all = f->file.state.bytes, wanted = until && until < all ? until : all;
    uint64_t end = number + 1;
    for (int i = 1; i < PIECES_AHEAD && end * CACHE_PIECE_BYTES < wanted && !is_kept(f, end); i++)
        end++;
    const uint64_t bytes = end * CACHE_PIECE_BYTES;
    return bytes < all ? bytes : all;
}

static err fetch(struct cached_file *f, uint64_t number, uint64_t until)
{
    const uint64_t at = number * CACHE_PIECE_BYTES, end = end_of_missing(f, number, until);
    struct piece_head head = head_of(f, number);
    size_t done = 0, got = 1;
    f->head.bytes = 0;
    for (; done < head.bytes && got > 0; done += got)
        TRY(file_read_at(f->from, at + done, end, f->memory + done, head.bytes - done, &got));
    if (done < head.bytes)
        return fail(ERR_INPUT, "%s: ends after %llu bytes", f->file.name,
                    (unsigned long long)(at + done));
    head.checksum = crc32c(f->memory, head.bytes);
    f->head = head;
    keep(f);
    return OK;
}

static err read_cached(struct file *file, uint64_t offset, uint64_t until, void *to, size_t max,
                       size_t *ret_bytes)
{
    struct cached_file *f = (struct cached_file *)file;
    const uint64_t number = offset / CACHE_PIECE_BYTES;
    *ret_bytes = 0;
    if (offset >= f->file.state.bytes) return OK;
    const bool is_here = f->head.bytes > 0 && f->head.number == number;
    if (!is_here && !load_kept(f, number)) TRY(fetch(f, number, until));
    const size_t at = (size_t)(offset % CACHE_PIECE_BYTES), left = f->head.bytes - at;
    *ret_bytes = left < max ? left : max;
    memcpy(to, f->memory + at, *ret_bytes);
    return OK;
}

static err state_cached(struct file *file, struct file_state *ret)
{
    return file_state(((struct cached_file *)file)->from, ret);
}

static void close_cached(struct file *file)
{
    struct cached_file *f = (struct cached_file *)file;
    file_close(f->from);
    free(f->memory);
    free(f);
}

static const struct file_system cached = {
    .read = read_cached,
    .state = state_cached,
    .close = close_cached,
};

err cache_open(const char *path, struct file *from, struct file **ret)
{
    const struct file_state *state = &from->state;
    *ret = from;
    if (!cache_folder || (!state->changed_s && !state->identity)) return OK;
    struct cached_file *f = calloc(1, sizeof *f);
    if (f) f->memory = malloc(CACHE_PIECE_BYTES);
    if (!f || !f->memory) {
        free(f);
        file_close(from);
        return fail(ERR_MEMORY, "%s: no memory to read it", path);
    }
    f->file = (struct file){.system = &cached, .name = from->name, .state = *state};
    f->from = from;
    f->url = fingerprint(path, strlen(path));
    const struct piece_head head = head_of(f, 0);
    f->key = fingerprint((const char *)&head, offsetof(struct piece_head, bytes));
    *ret = &f->file;
    return OK;
}
