/* hostile.c - see hostile.h. */
#include "tests/net/hostile.h"

#include "net/shared_memory.h"
#include "net/shm/pass.h"

#include <string.h>
#include <unistd.h>

struct sockaddr_un abstract(const char *name, socklen_t *ret_bytes)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path + 1, name, strlen(name));
    *ret_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    return at;
}

void greet(int fd, const int *fds, int fd_count)
{
    struct passed passed = {.size = sizeof(struct shm_greeting), .fd_count = fd_count};
    shm_greeting((struct shm_greeting *)passed.bytes);
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
