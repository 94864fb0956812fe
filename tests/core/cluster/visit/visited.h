/* visited.h - a ps as visitors see it, without anything around it. */
#ifndef TESTS_CORE_CLUSTER_VISIT_VISITED_H
#define TESTS_CORE_CLUSTER_VISIT_VISITED_H

#include "core/cluster/visit/visit.h"

enum {
    CHANGE_LIMIT_MS = 5000,
    SETTING_LIMIT_MS = 12000,
    LARGE_ROWS = VISIT_ELEMENTS_MAX + 1,
    TEXT_MAX = 1024,
    WORK_MAX = 1000,
};

/* A ps without anything around it. Its block:
 *     w    [5, 2]  rows 0 .. 2 of axis 0 at 0, and row 4 at 16
 *     v    [2, 4]  positions 1 .. 2 of axis 1, at 32
 *     b    []      at 48
 *     big  [LARGE_ROWS] at 64 */
struct ps {
    struct visits *visits;
    float *values;
    json_t *answer[VISITORS_MAX]; /* the last one; NULL: none since the last ask */
    uint64_t sequence[VISITORS_MAX], asked;
    int answers;
    uint64_t request_id; /* of the last request that a worker is to reply to; 0: none yet */
    bool refuses;
    int chief;
};

void show(struct ps *, bool has_values, bool is_in_use);
void empty_ps(struct ps *);   /* that no chief has set up; two visitors are there */
void serving_ps(struct ps *); /* whose values change at any time */
void close_ps(struct ps *);

/* Everything that can be done for visitors. */
void work(struct ps *, uint64_t now_ms);

/* The answer, borrowed; NULL: it has not come. */
json_t *ask_at(struct ps *, int visitor, uint64_t now_ms, const char *text);
json_t *ask(struct ps *, const char *text);

void assert_error(struct ps *, const char *text, const char *error, int code);
void assert_answer(json_t *answer, const char *expected); /* without its version */
void assert_asked(struct ps *, const char *text, const char *expected);
json_int_t version(json_t *answer);

#endif
