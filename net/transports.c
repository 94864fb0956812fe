/* transports.c - the table of transports.def. */
#include "net/transport.h"

#define TRANSPORT(NAME) &transport_##NAME,
#define TRANSPORT_INSIDE(NAME) &transport_##NAME,
const struct transport *const transports[TRANSPORT_COUNT] = {
#include "net/transports.def"
};
#undef TRANSPORT
#undef TRANSPORT_INSIDE
