/* folder.c - see folder.h. */
#include "tests/core/train/checkpoint/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fnmatch.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATHS = 8, TEXT_MAX = 1 << 16, OPEN_FOLDERS_MAX = 16 };

/* Small files are written again thousands of times, which disks are slow at. */
static const char *fastest(void)
{
    static const char memory[] = "/dev/shm";
    const char *temporary = getenv("TMPDIR");
    if (temporary) return temporary;
    return access(memory, W_OK) == 0 ? memory : "/tmp";
}

int folder_setup(void **state)
{
    char *path = malloc(FOLDER_PATH_MAX);
    if (!path) return -1;
    snprintf(path, FOLDER_PATH_MAX, "%s/dtrain-checkpoint-XXXXXX", fastest());
    if (!mkdtemp(path)) return -1;
    *state = path;
    return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    return remove(path);
}

int folder_teardown(void **state)
{
    const int failed = nftw(*state, remove_one, OPEN_FOLDERS_MAX, FTW_DEPTH | FTW_PHYS);
    free(*state);
    return failed;
}

int folder_count(const char *path, const char *pattern)
{
    DIR *folder = opendir(path);
    assert_non_null(folder);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        const bool is_dots = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        count += !is_dots && fnmatch(pattern, entry->d_name, 0) == 0;
    }
    closedir(folder);
    return count;
}

const char *folder_path(const char *folder, const char *name)
{
    static char paths[PATHS][FOLDER_PATH_MAX];
    static int next;
    char *path = paths[next++ % PATHS];
    assert_in_range(snprintf(path, FOLDER_PATH_MAX, "%s/%s", folder, name), 1, FOLDER_PATH_MAX - 1);
    return path;
}

bool folder_has(const char *folder, const char *name)
{
    return access(folder_path(folder, name), F_OK) == 0;
}

void file_write(const char *folder, const char *name, const char *text)
{
    FILE *file = fopen(folder_path(folder, name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

const char *file_read(const char *folder, const char *name)
{
    static char text[TEXT_MAX];
    FILE *file = fopen(folder_path(folder, name), "r");
    assert_non_null(file);
    const size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    fclose(file);
    return text;
}
