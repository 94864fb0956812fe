/* network.h - what lies between the hosts of a machine, and what may go wrong there. */
#ifndef TESTS_WORLD_NETWORK_H
#define TESTS_WORLD_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/world/machine.h"

struct socket;

/* Addresses are 10.0.0.1 for host 0, and so on, or its name: h0. */
struct network {
    uint64_t delay_ns[HOSTS_MAX][HOSTS_MAX];
    uint64_t ns_per_kib;
    int jitter;                        /* a piece may take so many times the delay */
    bool is_cut[HOSTS_MAX][HOSTS_MAX]; /* this way: nothing arrives until it is not */
    uint64_t refused, resets, lost;    /* connections, counted */
    uint64_t passed;                   /* memory and connections, to others of a host */
};
extern struct network network;

void network_start(void);
void network_cut(int host, int other, bool is_cut); /* both ways */
/* One connection between the two, if there is any, is reset at both ends. */
bool network_reset_one(int host, int other);
/* That connection is; is_heard: the other end hears of it. */
void network_reset(struct socket *, bool is_heard);
/* All connections of a host are gone, and nobody is told: it lost its power. */
void network_forget_host(int host);

#endif
