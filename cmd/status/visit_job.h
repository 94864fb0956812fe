/* visit_job.h - what the commands that look at a living job, or ask something of it, share. */
#ifndef CMD_STATUS_VISIT_JOB_H
#define CMD_STATUS_VISIT_JOB_H

#include <jansson.h>

#include "cmd/registry/visited.h"

struct job_flags {
    struct cluster_flags cluster; /* ps_hosts, or coordinator and cluster; or */
    const char *ready_file;       /* of ps/0 */
    uint64_t timeout_ms;
};

/* Rows for the table of a struct that begins with a struct job_flags */
#define JOB_FLAGS                                                                                  \
    VISITED_FLAGS(struct job_flags, "addresses of the parameter servers, of which the first is "   \
                                    "ps/0"),                                                       \
        {.name = "ready_file",                                                                     \
         .type = FIELD_STRING,                                                                     \
         .offset = offsetof(struct job_flags, ready_file),                                         \
         .fallback = "null",                                                                       \
         .help = "instead of lists: the file that ps/0 has written (--ready_file)"},               \
    {                                                                                              \
        .name = "timeout", .type = FIELD_SECONDS,                                                  \
        .offset = offsetof(struct job_flags, timeout_ms), .fallback = "10", .min = 0.001,          \
        .max = 24 * 3600, .help = "seconds to wait for an answer"                                  \
    }

struct job_visit {
    struct visited visited;
    struct visitor *visitor; /* of the visited */
    struct arena arena;
    uint64_t timeout_ms;
};

/* The words of a command; ret_words: at most this many arguments that are no flags, NULL for each
 * that is not there. ERR_INPUT. */
err job_visit_read(struct job_visit *, const struct object *, int argc, char **argv,
                   void *ret_flags, struct job_flags *, const char **ret_words, int most);
/* all: of the ps some may be away, where one is there. Else ps/0 alone. */
err job_visit_open(struct job_visit *, const struct job_flags *, bool all);
void job_visit_close(struct job_visit *); /* a zeroed one is fine */

int job_visit_ps_count(const struct job_visit *);
bool job_visit_is_up(const struct job_visit *, int ps);
const char *job_visit_trouble(const struct job_visit *, int ps); /* "": it is connected */
/* Takes the ask (NULL: ERR_MEMORY). ret: borrowed until the next ask. What the ps says
 * against it is ERR_INPUT where to ask again would be in vain, and ERR_PEER else. */
err job_visit_ask(struct job_visit *, int ps, json_t *ask, json_t **ret);
/* Meanwhile links live. ERR_PEER: the job has ended. */
err job_visit_rest(struct job_visit *, uint64_t ms);
bool job_visit_job_has_ended(const struct job_visit *);
/* What was asked failed so because one task is away or busy: others may answer. */
bool job_visit_goes_on(const struct job_visit *, err);

#endif
