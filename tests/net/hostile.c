/* hostile.c - see hostile.h. */
#include "tests/net/hostile.h"

#include "net/shared_memory.h"
#include "net/shm/pass.h"

#include <string.h>
#include <unistd.h>

struct sockaddr_un abstract(const char *address, socklen_t *ret_bytes)
{
    unsigned char secrets[SHM_SIDES][SHM_SECRET_BYTES];
    char name[ADDRESS_MAX];
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    shm_split(address, name, secrets);
    memcpy(at.sun_path + 1, name, strlen(name));
    *ret_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    return at;
}

void secret_of(const struct pair *pair, int side, unsigned char ret[SHM_SECRET_BYTES])
{
    unsigned char secrets[SHM_SIDES][SHM_SECRET_BYTES];
    char name[ADDRESS_MAX];
    shm_split(pair->address, name, secrets);
    memcpy(ret, secrets[side], SHM_SECRET_BYTES);
}

void greet(const struct pair *pair, int side, int fd, const int *fds, int fd_count)
{
    unsigned char secret[SHM_SECRET_BYTES];
    struct shm_greeting said;
    struct passed passed = {.size = sizeof said, .fd_count = fd_count};
    secret_of(pair, side, secret);
    shm_greeting(secret, &said);
    memcpy(passed.bytes, &said, sizeof said);
    memcpy(passed.fds, fds, (size_t)fd_count * sizeof *fds);
    bool is_sent;
    assert_int_equal(pass_send(fd, &passed, &is_sent), OK);
    assert_true(is_sent);
}

void end_hostile(struct hostile *hostile)
{
    shared_memory_unmap(hostile->control, sizeof *hostile->control);
    close(hostile->fd);
    if (hostile->wake_fd >= 0) close(hostile->wake_fd);
}
