/* outbox.c - the queue of actions, and names of jobs. */
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/cluster/role.h"

const char *job_name(enum job job)
{
    return job == JOB_PS ? "ps" : "worker";
}

struct action *outbox_add(struct outbox *out, enum action_type type)
{
    if (out->count == out->capacity) {
        int capacity = out->capacity ? 2 * out->capacity : 64;
        struct action *at = realloc(out->at, (size_t)capacity * sizeof *at);
        if (!at) {
            log_line(LOG_ERROR, "no memory for %d actions", capacity);
            abort();
        }
        out->at = at;
        out->capacity = capacity;
    }
    struct action *a = &out->at[out->count++];
    memset(a, 0, offsetof(struct action, text));
    a->type = type;
    a->text[0] = '\0';
    return a;
}

void outbox_free(struct outbox *out)
{
    free(out->at);
    *out = (struct outbox){0};
}
