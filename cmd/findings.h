/* findings.h - what rules have found about a job: a list, printed as text or JSON. */
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

/* A list being filled; findings beyond `most` are dropped. */
struct findings {
    struct finding *at; /* [count] */
    int count, most;
    const char *rule; /* the rule that adds findings now */
};

void findings_say(struct findings *, enum finding_level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* One line each; warnings begin with "!", others with "-". */
void findings_print(const struct finding *, int count);
/* [{"rule": "loss", "level": "warning", "text": "..."}, ...], the caller's */
json_t *findings_json(const struct finding *, int count);

#endif
