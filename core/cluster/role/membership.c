/* membership.c - see membership.h. */
#include "core/cluster/role/membership.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "net/message.h"

bool membership_is_same(const struct membership *a, const struct membership *b)
{
    return a->resizes == b->resizes && a->count[JOB_PS] == b->count[JOB_PS] &&
           a->count[JOB_WORKER] == b->count[JOB_WORKER];
}

const char *membership_text(const struct membership *r, char text[MEMBERSHIP_TEXT_MAX])
{
    const int workers = r->count[JOB_WORKER];
    snprintf(text, MEMBERSHIP_TEXT_MAX, "%d worker%s, %d ps", workers, workers == 1 ? "" : "s",
             r->count[JOB_PS]);
    return text;
}

void membership_pack(const struct membership *r, uint64_t ret_numbers[MEMBERSHIP_NUMBERS])
{
    *ret_numbers++ = htole64(r->resizes);
    for (int job = 0; job < JOB_COUNT; job++) *ret_numbers++ = htole64((uint64_t)r->count[job]);
}

bool membership_unpack(const struct message *m, struct membership *ret)
{
    uint64_t n[MEMBERSHIP_NUMBERS];
    if (!m->body || m->body_bytes != sizeof n) return false;
    memcpy(n, m->body, sizeof n);
    for (int i = 0; i < MEMBERSHIP_NUMBERS; i++) n[i] = le64toh(n[i]);
    ret->resizes = n[0];
    for (int job = 0; job < JOB_COUNT; job++) {
        if (n[1 + job] == 0 || n[1 + job] > INT32_MAX) return false;
        ret->count[job] = (int)n[1 + job];
    }
    return n[0] < INT64_MAX;
}
