/* visit_job.h - connects to a running job: shared by commands that show it or send requests. */
#ifndef CMD_STATUS_VISIT_JOB_H
#define CMD_STATUS_VISIT_JOB_H

#include <jansson.h>

#include "cmd/registry/visited.h"

struct job_flags {
    struct cluster_flags cluster; /* ps_hosts, or coordinator and cluster; or: */
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
    struct visitor *visitor; /* of `visited`, borrowed */
    struct arena arena;
    uint64_t timeout_ms;
};

/* Parses a command line. ret_words: `most` arguments that are no flags; NULL for missing ones.
 * ERR_INPUT */
err job_visit_read(struct job_visit *, const struct object *, int argc, char **argv,
                   void *ret_flags, struct job_flags *, const char **ret_words, int most);
/* Connects to all ps, of which one must answer, or (all false) to ps/0. */
err job_visit_open(struct job_visit *, const struct job_flags *, bool all);
void job_visit_close(struct job_visit *); /* a zeroed one is fine */

int job_visit_ps_count(const struct job_visit *);
bool job_visit_is_up(const struct job_visit *, int ps);
const char *job_visit_trouble(const struct job_visit *, int ps); /* "": it is connected */
/* Takes the reference to ask (NULL: ERR_MEMORY). *ret is borrowed until the next ask. If the ps
 * refuses: ERR_INPUT, or ERR_PEER if asking again may succeed. */
err job_visit_ask(struct job_visit *, int ps, json_t *ask, json_t **ret);
/* Sleeps while links are served. ERR_PEER: the job has ended */
err job_visit_rest(struct job_visit *, uint64_t ms);
bool job_visit_job_has_ended(const struct job_visit *);
/* Whether the error means that one task is unreachable or busy, so that others may answer */
bool job_visit_goes_on(const struct job_visit *, err);

#endif
