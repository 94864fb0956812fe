/* notify.c - see notify.h. */
#include "net/notify.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static bool say(const struct sockaddr_un *to, socklen_t bytes, const char *words)
{
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    const ssize_t said =
        sendto(fd, words, strlen(words), MSG_NOSIGNAL, (const struct sockaddr *)to, bytes);
    const int reason = errno;
    close(fd);
    errno = reason;
    return said >= 0;
}

/* NOTIFY_SOCKET is a path, or "@" and the name of an abstract socket. */
err notify(const char *words)
{
    const char *name = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (!name || !*name) return OK;
    const size_t length = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || length >= sizeof to.sun_path)
        return fail(ERR_IO, "NOTIFY_SOCKET=%.108s: expected the path of a socket, or @name", name);
    memcpy(to.sun_path, name, length);
    if (name[0] == '@') to.sun_path[0] = '\0';
    if (say(&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length), words)) return OK;
    return fail(ERR_IO, "NOTIFY_SOCKET=%s: %s", name, strerror(errno));
}
