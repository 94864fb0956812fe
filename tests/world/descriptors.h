/* descriptors.h - what a process has open: files, sockets, counters of events, and lists of what it
 * waits for. */
#ifndef TESTS_WORLD_DESCRIPTORS_H
#define TESTS_WORLD_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/uio.h>

struct inode;
struct process;
struct socket;

enum description_kind {
    OPEN_NOTHING, /* /dev/null */
    OPEN_OUTPUT,  /* what a process says */
    OPEN_EVENT,   /* eventfd */
    OPEN_LIST,    /* epoll */
    OPEN_SOCKET,
    OPEN_FILE,
    OPEN_MEMORY, /* of the system: memfd */
};

enum { WATCHED_MAX = 128 };

struct watched {
    struct description *description;
    uint32_t events;
    epoll_data_t data;
};

struct watch_list {
    struct watched at[WATCHED_MAX];
    int count, next; /* who comes first */
};

struct open_file {
    struct inode *inode;
    uint64_t offset;
    bool may_read, may_write, appends;
};

/* What descriptors stand for; several may for one. */
struct description {
    enum description_kind kind;
    int uses;
    bool is_nonblocking;
    struct process *process;
    uint64_t count;
    struct watch_list *list;
    struct socket *socket;
    struct open_file file;
    int memory;
};

/* Of the process that runs */
struct description *description_new(enum description_kind);
int descriptor_give(struct description *, int least); /* -1: errno */
struct description *description_of(int descriptor);   /* NULL: EBADF */
int descriptor_close(int descriptor);
void description_drop(struct description *); /* one that was passed, and never came */
/* Others wait for what it is ready for. */
void description_changed(const struct description *);

void descriptors_open_standard(struct process *);
void descriptors_close_all(struct process *);

/* At the beginning of a call: it takes time, and others may have their turn. */
void call_begins(const char *name, int descriptor);
int call_fails(int error); /* -1 */

/* ---- sockets ---- */

short socket_readiness(const struct socket *);
ssize_t socket_receive(struct socket *, const struct iovec *, int count, int flags);
ssize_t socket_send(struct socket *, const struct iovec *, int count);
void socket_close(struct socket *);

/* ---- files ---- */

ssize_t file_read(struct open_file *, void *to, size_t count);
ssize_t file_write(struct open_file *, const void *from, size_t count);
void file_close(struct description *);

#endif
