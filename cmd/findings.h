/* findings.h - what rules have found about a job, for people and for programs. */
#ifndef CMD_FINDINGS_H
#define CMD_FINDINGS_H

#include <jansson.h>

enum finding_level { FINDING_NOTE, FINDING_WARNING };

enum { FINDING_TEXT_MAX = 512 };

struct finding {
    const char *rule; /* "slow_worker" */
    enum finding_level level;
    char text[FINDING_TEXT_MAX];
};

/* A list that is being made; what is more than `most` is left out. */
struct findings {
    struct finding *at; /* [count] */
    int count, most;
    const char *rule; /* whose they are */
};

void findings_say(struct findings *, enum finding_level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A line each: what is to be mended begins with "!", else with "-". */
void findings_print(const struct finding *, int count);
/* [{"rule": "loss", "level": "warning", "text": "..."}, ...], the caller's */
json_t *findings_json(const struct finding *, int count);

#endif
