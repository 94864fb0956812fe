/* files.h - one file system for all hosts, and what a loss of power leaves of it.
 *
 * As tests/core/train/checkpoint/power.h has it: bytes that were not synced are lost, or half of
 * them, or are there; a name that was made, changed or removed is so for sure once its folder was
 * synced, and until then each such change is there or not (a rename as a whole).
 */
#ifndef TESTS_WORLD_FILES_H
#define TESTS_WORLD_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FILE_NAME_BYTES = 128, FILE_PATH_BYTES = 1024 };

struct inode;

struct entry {
    char name[FILE_NAME_BYTES];
    struct inode *inode;
};

struct entries {
    struct entry *at;
    int count, room;
};

struct inode {
    int number, links;
    bool is_folder, is_changed;
    bool is_on_disk; /* below /disk: see faults.h */
    bool is_lost;    /* what a sync did not write: no later one does */
    uint64_t changed_ns;
    char *bytes, *sure;
    size_t count, room, sure_count;
    struct entries entries, sure_entries;
    const struct description *locked_by;
};

void files_start(void);
/* Without a process: what a test puts there, for sure. */
void files_put(const char *path, const char *text);
void files_put_bytes(const char *path, const char *bytes, size_t count);
void files_make_folder(const char *path);
/* All that is in a folder, and it, for sure. */
void files_remove(const char *path);
const char *files_text(const char *path, size_t *ret_count); /* NULL: no such file */
/* NULL: no such path. ret_folder and ret_name, where they are not NULL: where the last name of it
 * is, or would be. */
struct inode *files_find(const char *path, struct inode **ret_folder, const char **ret_name);
struct inode *entries_find(const struct entries *, const char *name);

struct inode *inode_make(struct inode *folder, const char *name, bool is_folder);
void inode_resize(struct inode *, size_t count);
void inode_sync(struct inode *);
/* NULL: no such name any more. */
void files_set(struct inode *folder, const char *name, struct inode *);
void files_move(struct inode *from, const char *name, struct inode *to, const char *new_name);
void files_lose_power(void);
/* Until then a sync takes seconds. */
void files_be_slow(uint64_t until_ns);
bool files_are_slow(void);

#endif
