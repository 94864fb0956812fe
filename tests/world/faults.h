/* faults.h - disks that fail, for one host or for all: see files.h.
 *
 * The shared folder /disk fails: as a server, it may be unreachable for one host; as a disk, it is
 * the same for all. Some disks fail always, some now and then.
 */
#ifndef TESTS_WORLD_FAULTS_H
#define TESTS_WORLD_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

struct process;

enum disk_fault {
    DISK_FULL,      /* ENOSPC, after a part of what was written */
    DISK_BROKEN,    /* EIO, whatever is asked */
    DISK_READ_ONLY, /* EROFS */
    DISK_DENIED,    /* EACCES, where something is opened or a name changes */
    DISK_HANGS,     /* no answer until it is over */
    DISK_UNSYNCED,  /* fsync() fails with EIO once; what was not written by then is lost */
    DISK_EMPTIED,   /* somebody removes the folder, once */
    DISK_FAULTS
};

enum disk_use { USE_LOOK, USE_OPEN, USE_READ, USE_NAME, USE_CREATE, USE_WRITE, USE_SYNC };

/* host -1: all of them. share: of 1024 calls so many fail. */
void disk_fail(enum disk_fault, int host, int share, uint64_t until_ns);
void disks_heal(void);
/* One of a server, as NFS: no rename spares what has the name. Of some seeds */
bool disk_always_replaces(void);
/* Until then the host has none of the files that jobs read. */
void data_lack(int host, uint64_t until_ns);
bool data_is_lacking(const char *path);
/* The nth call from now on with a name on the disk that has these words in it: whose it is. */
void names_watch(const char *words, int nth, void (*tell)(struct process *));
void names_note(const char *path);
/* For the one that runs, which may wait: 0, or the errno of its call. */
int disk_fault(enum disk_use);
/* Of so many bytes that are written those that a full disk takes; 0: errno. */
uint64_t disk_room(uint64_t count);

#endif
