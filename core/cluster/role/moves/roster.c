/* roster.c - see roster.h. */
#include "core/cluster/role/moves/roster.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "net/message.h"

bool roster_is_same(const struct roster *a, const struct roster *b)
{
    return a->moves == b->moves && a->count[JOB_PS] == b->count[JOB_PS] &&
           a->count[JOB_WORKER] == b->count[JOB_WORKER];
}

const char *roster_text(const struct roster *r, char text[ROSTER_TEXT_MAX])
{
    const int workers = r->count[JOB_WORKER];
    snprintf(text, ROSTER_TEXT_MAX, "%d worker%s, %d ps", workers, workers == 1 ? "" : "s",
             r->count[JOB_PS]);
    return text;
}

void roster_pack(const struct roster *r, uint64_t ret_numbers[ROSTER_NUMBERS])
{
    *ret_numbers++ = htole64(r->moves);
    for (int job = 0; job < JOB_COUNT; job++) *ret_numbers++ = htole64((uint64_t)r->count[job]);
}

bool roster_unpack(const struct message *m, struct roster *ret)
{
    uint64_t n[ROSTER_NUMBERS];
    if (!m->body || m->body_bytes != sizeof n) return false;
    memcpy(n, m->body, sizeof n);
    for (int i = 0; i < ROSTER_NUMBERS; i++) n[i] = le64toh(n[i]);
    ret->moves = n[0];
    for (int job = 0; job < JOB_COUNT; job++) {
        if (n[1 + job] == 0 || n[1 + job] > INT32_MAX) return false;
        ret->count[job] = (int)n[1 + job];
    }
    return n[0] < INT64_MAX;
}
