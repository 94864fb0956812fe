/* files.c - see files.h. */
#include "tests/world/files.h"

#include "tests/world/machine.h"

#include <stdlib.h>
#include <string.h>

enum { CHANGES_MAX = 8192, NAMES_OF_CHANGE = 2 };

static struct inode *root;
static int inode_numbers;

struct name_change {
    struct inode *folder, *inode;
    char name[FILE_NAME_BYTES];
};

/* What is not sure yet, in its order. */
static struct change {
    int count;
    struct name_change at[NAMES_OF_CHANGE];
} changes[CHANGES_MAX];
static int change_count;

static struct inode **all;
static int all_count, all_room;

static struct inode *inode_new(bool is_folder)
{
    struct inode *ret = calloc(1, sizeof *ret);
    if (all_count == all_room) {
        all_room = all_room ? 2 * all_room : 64;
        all = realloc(all, (size_t)all_room * sizeof *all);
    }
    all[all_count++] = ret;
    ret->number = ++inode_numbers;
    ret->is_folder = is_folder;
    ret->changed_ns = machine.now_ns;
    return ret;
}

/* ---- names ---- */

struct inode *entries_find(const struct entries *entries, const char *name)
{
    for (int i = 0; i < entries->count; i++)
        if (strcmp(entries->at[i].name, name) == 0) return entries->at[i].inode;
    return NULL;
}

static void entries_set(struct entries *entries, const char *name, struct inode *inode)
{
    int i = 0;
    while (i < entries->count && strcmp(entries->at[i].name, name) != 0) i++;
    if (!inode) {
        if (i < entries->count) entries->at[i] = entries->at[--entries->count];
        return;
    }
    if (i == entries->room) {
        entries->room = entries->room ? 2 * entries->room : 8;
        entries->at = realloc(entries->at, (size_t)entries->room * sizeof *entries->at);
    }
    if (i == entries->count) entries->count++;
    snprintf(entries->at[i].name, FILE_NAME_BYTES, "%s", name);
    entries->at[i].inode = inode;
}

static void set_now(struct inode *folder, const char *name, struct inode *inode)
{
    struct inode *before = entries_find(&folder->entries, name);
    if (before) before->links--;
    if (inode) inode->links++;
    entries_set(&folder->entries, name, inode);
    folder->changed_ns = machine.now_ns;
}

static struct change *change_new(void)
{
    if (change_count == CHANGES_MAX) { /* a disk writes by itself after a while */
        for (int i = 0; i < change_count; i++)
            for (int k = 0; k < changes[i].count; k++)
                entries_set(&changes[i].at[k].folder->sure_entries, changes[i].at[k].name,
                            changes[i].at[k].inode);
        change_count = 0;
    }
    changes[change_count].count = 0;
    return &changes[change_count++];
}

static void add_to_change(struct change *change, struct inode *folder, const char *name,
                          struct inode *inode)
{
    struct name_change *to = &change->at[change->count++];
    to->folder = folder;
    to->inode = inode;
    snprintf(to->name, sizeof to->name, "%s", name);
    set_now(folder, name, inode);
}

void files_set(struct inode *folder, const char *name, struct inode *inode)
{
    add_to_change(change_new(), folder, name, inode);
}

void files_move(struct inode *from, const char *name, struct inode *to, const char *new_name)
{
    struct change *change = change_new();
    struct inode *inode = entries_find(&from->entries, name);
    add_to_change(change, to, new_name, inode);
    add_to_change(change, from, name, NULL);
}

static struct inode *find_from(struct inode *at, const char *path, struct inode **ret_folder,
                               const char **ret_name)
{
    struct inode *folder = at;
    const char *name = "";
    while (at && *path) {
        while (*path == '/') path++;
        const size_t length = strcspn(path, "/");
        static char word[FILE_NAME_BYTES];
        if (!length) break;
        snprintf(word, sizeof word, "%.*s", (int)length, path);
        path += length;
        if (strcmp(word, ".") == 0) continue;
        if (!at->is_folder) return NULL;
        folder = at;
        name = word;
        at = entries_find(&folder->entries, word);
        if (!at && path[strspn(path, "/")]) folder = NULL;
    }
    if (ret_folder) *ret_folder = folder;
    if (ret_name) *ret_name = name;
    return at;
}

struct inode *files_find(const char *path, struct inode **ret_folder, const char **ret_name)
{
    static const char here[] = "/job";
    if (ret_folder) *ret_folder = NULL;
    struct inode *start = *path == '/' ? root : entries_find(&root->entries, here + 1);
    return find_from(start, path, ret_folder, ret_name);
}

/* ---- bytes ---- */

struct inode *inode_make(struct inode *folder, const char *name, bool is_folder)
{
    struct inode *ret = inode_new(is_folder);
    ret->is_on_disk = folder->is_on_disk;
    files_set(folder, name, ret);
    return ret;
}

void inode_resize(struct inode *inode, size_t count)
{
    if (count > inode->room) {
        inode->room = 2 * count;
        inode->bytes = realloc(inode->bytes, inode->room);
    }
    if (count > inode->count) memset(inode->bytes + inode->count, 0, count - inode->count);
    inode->count = count;
    inode->is_changed = true;
    inode->changed_ns = machine.now_ns;
}

static void keep_names(const struct inode *folder)
{
    int kept = 0;
    for (int i = 0; i < change_count; i++) {
        const struct change change = changes[i];
        bool is_of_it = false;
        for (int k = 0; k < change.count; k++) is_of_it |= change.at[k].folder == folder;
        for (int k = 0; k < change.count && is_of_it; k++)
            entries_set(&change.at[k].folder->sure_entries, change.at[k].name, change.at[k].inode);
        if (!is_of_it) changes[kept++] = change;
    }
    change_count = kept;
}

void inode_sync(struct inode *inode)
{
    if (inode->is_folder) {
        keep_names(inode);
        return;
    }
    if (inode->is_lost) return;
    inode->sure = realloc(inode->sure, inode->count + 1);
    memcpy(inode->sure, inode->bytes ? inode->bytes : "", inode->count);
    inode->sure_count = inode->count;
    inode->is_changed = false;
}

/* ---- loss of power ---- */

static void lose_bytes(struct inode *inode)
{
    if (!inode->is_changed) return;
    const uint64_t outcome = draw_below(3);
    const size_t sure = inode->sure_count, now = inode->count;
    inode->is_changed = false;
    if (outcome == 0) return; /* all are there */
    const size_t kept = outcome == 1 || now < sure ? sure : sure + (now - sure) / 2;
    if (sure) {
        if (sure > inode->room) inode->bytes = realloc(inode->bytes, inode->room = sure);
        memcpy(inode->bytes, inode->sure, sure < kept ? sure : kept);
    }
    inode->count = kept;
}

void files_lose_power(void)
{
    for (int i = 0; i < change_count; i++)
        for (int k = 0, is_kept = draw_below(2) == 0; k < changes[i].count && is_kept; k++)
            entries_set(&changes[i].at[k].folder->sure_entries, changes[i].at[k].name,
                        changes[i].at[k].inode);
    change_count = 0;
    for (int i = 0; i < all_count; i++) {
        struct inode *inode = all[i];
        inode->links = 0;
        inode->locked_by = NULL;
        lose_bytes(inode);
        inode->entries.count = 0;
        for (int k = 0; k < inode->sure_entries.count; k++)
            entries_set(&inode->entries, inode->sure_entries.at[k].name,
                        inode->sure_entries.at[k].inode);
    }
    for (int i = 0; i < all_count; i++)
        for (int k = 0; k < all[i]->entries.count; k++) all[i]->entries.at[k].inode->links++;
    for (int i = 0; i < all_count; i++)
        if (!all[i]->is_folder) inode_sync(all[i]);
}

static uint64_t slow_until_ns;

void files_be_slow(uint64_t until_ns)
{
    if (until_ns > slow_until_ns) slow_until_ns = until_ns;
}

bool files_are_slow(void)
{
    return machine.now_ns < slow_until_ns;
}

/* ---- of the test ---- */

void files_start(void)
{
    root = inode_new(true);
    inode_make(root, "job", true);
    inode_make(root, "tmp", true);
    inode_make(root, "disk", true);
    entries_find(&root->entries, "disk")->is_on_disk = true;
    inode_sync(root);
}

void files_put(const char *path, const char *text)
{
    files_put_bytes(path, text, strlen(text));
}

void files_put_bytes(const char *path, const char *bytes, size_t count)
{
    struct inode *folder;
    const char *name;
    struct inode *inode = files_find(path, &folder, &name);
    if (!inode) inode = inode_make(folder, name, false);
    inode_resize(inode, count);
    if (count) memcpy(inode->bytes, bytes, count);
    inode_sync(inode);
    inode_sync(folder);
}

void files_make_folder(const char *path)
{
    struct inode *folder;
    const char *name;
    if (!files_find(path, &folder, &name)) inode_make(folder, name, true);
    inode_sync(folder);
}

static void remove_all(struct inode *folder, const char *name)
{
    const struct inode *inode = entries_find(&folder->entries, name);
    while (inode->entries.count > 0) {
        char inner[FILE_NAME_BYTES];
        snprintf(inner, sizeof inner, "%s", inode->entries.at[0].name);
        remove_all((struct inode *)inode, inner);
    }
    files_set(folder, name, NULL);
}

void files_remove(const char *path)
{
    struct inode *folder;
    const char *name;
    char last[FILE_NAME_BYTES];
    if (!files_find(path, &folder, &name)) return;
    snprintf(last, sizeof last, "%s", name);
    remove_all(folder, last);
    inode_sync(folder);
}

const char *files_text(const char *path, size_t *ret_count)
{
    const struct inode *inode = files_find(path, NULL, NULL);
    if (!inode || inode->is_folder) return NULL;
    if (ret_count) *ret_count = inode->count;
    return inode->bytes ? inode->bytes : "";
}
