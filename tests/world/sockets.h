/* sockets.h - the ends of connections, and those who wait for them. */
#ifndef TESTS_WORLD_SOCKETS_H
#define TESTS_WORLD_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tests/world/descriptors.h"

enum { BACKLOG_MAX = 64, RIGHTS_MAX = 3, LOCAL_NAME_BYTES = 108 };

enum socket_state { SOCKET_NEW, SOCKET_LISTENS, SOCKET_CONNECTS, SOCKET_OPEN, SOCKET_OVER };
enum piece_kind { PIECE_BYTES, PIECE_END, PIECE_RESET };

/* Messages of what has come from a socket (aim.h). */
struct passing {
    unsigned char header[80];
    size_t have;
    uint64_t left, came, end; /* bytes; end: of the last message */
    int message;
    bool is_foreign;
    struct blow *blow; /* that is to fall when the other side has read up to there; or NULL */
};

/* Descriptors that are passed with the byte of that number (SCM_RIGHTS). */
struct rights {
    struct rights *next;
    uint64_t at;
    struct description *given[RIGHTS_MAX];
    int count;
};

struct piece {
    struct piece *next;
    enum piece_kind kind;
    bool is_looked_at; /* and late for that */
    uint64_t sent_ns, due_ns;
    struct rights *rights; /* that come with it; or NULL */
    size_t count;
    char bytes[];
};

struct socket {
    struct socket *next; /* of all */
    struct description *description;
    int domain, type, host, port, peer_host, peer_port;
    enum socket_state state;
    struct socket *peer;
    int error; /* told once */
    bool is_bound, is_closed, was_forgotten;
    bool has_end, has_shut; /* of what comes; of what goes */
    char *bytes;            /* that have come: from begin to end */
    size_t begin, end, room;
    struct piece *first, *last; /* under way from here */
    bool is_carried;
    size_t under_way; /* bytes, those that lie at the other side included */
    uint64_t user_timeout_ms, heard_ns, was_read; /* was_read: bytes */
    struct passing passing;
    char name[LOCAL_NAME_BYTES]; /* of one that only its host sees; "": none */
    int name_bytes, pid;
    uint64_t came; /* bytes */
    struct rights *first_rights, *last_rights;
    struct socket *backlog[BACKLOG_MAX];
    int waiting;
    void (*serve)(struct socket *); /* in place of a description, whenever something changes */
    void *served;
};

struct socket *socket_new(int domain, int type);
struct socket *socket_listening(int host, int port);
void socket_serve(int host, int port, void (*serve)(struct socket *));
void sockets_join(struct socket *, struct socket *); /* a pair within a process */
int socket_free_port(int host);
void socket_connect(struct socket *, int host, int port);
void socket_shut(struct socket *);

/* ---- within a host ---- */

struct socket *socket_named(int host, const char *name, int bytes);
int socket_connect_local(struct socket *, const char *name, int bytes); /* 0, or errno */
/* With the bytes, all of them or none. */
ssize_t socket_pass(struct socket *, const struct iovec *, struct rights *);
/* Those of the byte that is read next, or NULL; of so many bytes those that belong to them. */
struct rights *socket_take_rights(struct socket *, size_t *count);

#endif
