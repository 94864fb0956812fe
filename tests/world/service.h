/* service.h - servers that speak HTTP on hosts of the machine. They are no processes: what comes is
 * answered where it arrives. */
#ifndef TESTS_WORLD_SERVICE_H
#define TESTS_WORLD_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct request {
    const char *method, *target, *head; /* head: all headers, ended by NUL */
    const char *body;
    size_t body_bytes;
};

struct response {
    int status;
    char headers[256]; /* each ended by \r\n */
    const void *body;
    size_t body_bytes;
    bool has_no_body; /* of HEAD: body_bytes alone is told */
};

/* What it answers must stay until the next call. */
typedef void service_answer(const struct request *, struct response *);
void service_start(int host, int port, service_answer *);
/* Until then so many of 1024 answers are refusals, late, cut off, lost, or never come. */
void service_trouble(int share, uint64_t until_ns);
/* Until then who was let in before is denied all, as where what proves who asks has ended. */
void service_deny(uint64_t until_ns);
void service_heal(void);
/* false: there is no such header */
bool request_header(const struct request *, const char *name, char *ret, size_t size);

#endif
