/* ports.c - see ports.h. */
#include "core/cluster/description/ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/transport.h"

/* Without the port. */
static size_t host_length(const char *address)
{
    const char *colon = strrchr(address, ':');
    return colon ? (size_t)(colon - address) : strlen(address);
}

bool address_is_same_host(const char *a, const char *b)
{
    const size_t length = host_length(a);
    return host_length(b) == length && strncmp(a, b, length) == 0;
}

bool port_is_open(const char *address)
{
    const char *port = address + host_length(address);
    return *port && strtol(port + 1, NULL, 10) == 0;
}

err ports_check_known(enum job job, const struct strings *hosts, const char *who)
{
    for (int i = 0; i < hosts->count; i++)
        if (port_is_open(hosts->at[i]))
            return fail(ERR_INPUT,
                        "%s/%d at %s chooses its port when it starts, and %s must know it: start "
                        "it first, with --ready_file, and say the address that it writes there",
                        job_name(job), i, hosts->at[i], who);
    return OK;
}

bool address_agrees(const char *mine, const char *theirs)
{
    if (strcmp(mine, theirs) == 0) return true;
    return (port_is_open(mine) || port_is_open(theirs)) && address_is_same_host(mine, theirs);
}

void address_with_port(const char *address, const char *taken, char *ret)
{
    const char *from = port_is_open(address) ? taken : address;
    snprintf(ret, ADDRESS_MAX, "%.*s%s", (int)host_length(address), address,
             from + host_length(from));
}
