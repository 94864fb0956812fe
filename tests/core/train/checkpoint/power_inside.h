/* power_inside.h - what was done to a folder, and what of it is sure: power.c writes it down, and
 * power_disk.c makes disks of it.
 */
#ifndef TESTS_CORE_TRAIN_CHECKPOINT_POWER_INSIDE_H
#define TESTS_CORE_TRAIN_CHECKPOINT_POWER_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NODES_MAX = 2048,
    NAMES_MAX = 512,
    NAME_BYTES = 96,
    CHANGES_MAX = 64,
    NO_NODE = -1,
    ROOT = 0
};

/* A file or a folder, whatever it is called. */
struct node {
    bool is_folder;
    char *bytes;
    size_t count, synced; /* bytes are only added, so those that are synced come first */
};

struct name {
    int folder, node; /* nodes; NO_NODE: there is none of that name */
    char text[NAME_BYTES];
};

struct names {
    struct name at[NAMES_MAX];
    int count;
};
int names_find(const struct names *, int folder, const char *text); /* NO_NODE: none */
void names_set(struct names *, const struct name *);

/* Names that change together; the last one's folder makes it sure when it is synced. */
struct change {
    struct name at[2];
    int count;
};

struct power {
    const char *folder, *disk;
    struct node nodes[NODES_MAX];
    int node_count;
    struct names now, sure;
    struct change changes[CHANGES_MAX]; /* those that are not sure, in their order */
    int change_count;
};

/* How much of what was not synced is there. */
enum bytes { BYTES_LOST, BYTES_HALF, BYTES_THERE, BYTES_KINDS };

/* chosen: a bit for each change that is there. The key of a disk is equal for equal disks. */
uint64_t disk_key(const struct power *, uint64_t chosen, enum bytes);
void disk_make(const struct power *, uint64_t chosen, enum bytes);
void disk_remove(const struct power *);

#endif
