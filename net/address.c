/* address.c - parsing and resolving addresses, and finding the process that listens on one. */
#include "net/address.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PORT_MAX = 65535,
    SOCKETS_MAX = 1 << 20,   /* lines read of /proc/net/tcp */
    PROCESSES_MAX = 1 << 16, /* processes looked at, and descriptors of each */
    FILES_MAX = 1 << 16,
};

static bool is_host(const char *host, size_t length, bool is_v6)
{
    const char *punctuation = is_v6 ? ":.%-_" : ".-_";
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)host[i]) && !strchr(punctuation, host[i])) return false;
    return length > 0;
}

static err split_port(const char *address, const char *port, struct address *ret)
{
    const size_t digits = strspn(port, "0123456789");
    if (digits == 0 || digits >= sizeof ret->port || port[digits] || atoi(port) > PORT_MAX)
        return fail(ERR_INPUT, "address \"%s\": expected a port from 0 to %d, got \"%s\"", address,
                    PORT_MAX, port);
    memcpy(ret->port, port, digits + 1);
    return OK;
}

err address_split(const char *address, struct address *ret)
{
    if (strlen(address) >= ADDRESS_MAX)
        return fail(ERR_INPUT, "address \"%.32s...\" is longer than %d characters", address,
                    ADDRESS_MAX - 1);
    const bool is_v6 = address[0] == '[';
    const char *colon = strrchr(address, ':');
    const char *host = is_v6 ? address + 1 : address;
    const char *end = is_v6 ? strchr(address, ']') : colon;
    if (!colon || !end || (is_v6 && end + 1 != colon))
        return fail(ERR_INPUT, "address \"%s\": expected host:port or [v6 address]:port", address);
    const size_t length = (size_t)(end - host);
    if (!is_host(host, length, is_v6))
        return fail(ERR_INPUT, "address \"%s\": \"%.*s\" is not the name of a host", address,
                    (int)length, host);
    struct address split = {0};
    TRY(split_port(address, colon + 1, &split));
    memcpy(split.host, host, length);
    *ret = split;
    return OK;
}

err address_check(const char *address)
{
    struct address split;
    return address_split(address, &split);
}

static err resolve_with(const struct address *address, int flags, struct addrinfo **ret)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    const char *host = strcmp(address->host, "localhost") ? address->host : "127.0.0.1";
    const int code = getaddrinfo(host, address->port, &hints, ret);
    if (code == 0) return OK;
    if (code == EAI_SYSTEM) return fail(ERR_PEER, "cannot resolve: %s", strerror(errno));
    return fail(ERR_PEER, "no such host: %s", gai_strerror(code));
}

static bool is_v4_loopback(const void *four_bytes)
{
    return *(const unsigned char *)four_bytes == 127;
}

bool address_is_loopback(const struct sockaddr *at)
{
    if (at->sa_family == AF_INET)
        return is_v4_loopback(&((const struct sockaddr_in *)at)->sin_addr);
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)at)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(v6) ||
           (IN6_IS_ADDR_V4MAPPED(v6) && is_v4_loopback(v6->s6_addr + 12));
}

err address_resolve(const struct address *address, struct addrinfo **ret)
{
    if (!resolve_with(address, AI_NUMERICHOST, ret)) return OK;
    return resolve_with(address, 0, ret);
}

/* The inode of the socket that listens on the port, from a table of the kernel; 0 if none. */
static unsigned long listening_inode(const char *table, unsigned port)
{
    FILE *file = fopen(table, "re");
    if (!file) return 0;
    char line[512];
    unsigned long found = 0;
    for (int i = 0; i < SOCKETS_MAX && !found && fgets(line, sizeof line, file); i++) {
        unsigned local_port, state;
        unsigned long inode;
        const int fields = sscanf(line, " %*d: %*[^:]:%x %*s %x %*s %*s %*s %*d %*d %lu",
                                  &local_port, &state, &inode);
        if (fields == 3 && local_port == port && state == 0x0A) found = inode; /* TCP_LISTEN */
    }
    fclose(file);
    return found;
}

/* Any step may fail because processes come and go; that counts as false. */
static bool holds_socket(const char *process, const char *socket)
{
    char path[PATH_MAX], target[64];
    snprintf(path, sizeof path, "/proc/%s/fd", process);
    DIR *files = opendir(path);
    if (!files) return false; /* not ours to look at, or gone */
    bool holds = false;
    const struct dirent *file;
    for (int i = 0; i < FILES_MAX && !holds && (file = readdir(files)); i++) {
        const ssize_t length = readlinkat(dirfd(files), file->d_name, target, sizeof target - 1);
        if (length < 0) continue;
        target[length] = '\0';
        holds = !strcmp(target, socket);
    }
    closedir(files);
    return holds;
}

void process_text(const char *process, char *ret, size_t size)
{
    char path[PATH_MAX], name[32] = "?";
    snprintf(path, sizeof path, "/proc/%s/comm", process);
    FILE *file = fopen(path, "re");
    if (file) {
        if (fgets(name, sizeof name, file)) name[strcspn(name, "\n")] = '\0';
        fclose(file);
    }
    snprintf(ret, size, "pid %s (%s)", process, name);
}

void address_owner(const char *address, char *ret, size_t size)
{
    if (size == 0) return;
    ret[0] = '\0';
    struct address split;
    if (address_split(address, &split)) return;
    const unsigned port = (unsigned)atoi(split.port);
    unsigned long inode = listening_inode("/proc/net/tcp", port);
    if (!inode) inode = listening_inode("/proc/net/tcp6", port);
    DIR *processes = inode ? opendir("/proc") : NULL;
    if (!processes) return;
    char socket[64];
    snprintf(socket, sizeof socket, "socket:[%lu]", inode);
    const struct dirent *process;
    for (int i = 0; i < PROCESSES_MAX && !ret[0] && (process = readdir(processes)); i++)
        if (isdigit((unsigned char)process->d_name[0]) && holds_socket(process->d_name, socket))
            process_text(process->d_name, ret, size);
    closedir(processes);
}
