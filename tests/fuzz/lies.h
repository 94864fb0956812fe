/* lies.h - what somebody may say who lies: each kind of message of net/messages.def, and two of no
 * kind, with each of its numbers at and outside the ends of its range, one after the other. What is
 * added to the list is lied with by itself.
 */
#ifndef TESTS_FUZZ_LIES_H
#define TESTS_FUZZ_LIES_H

#include "net/message.h"

/* Fields beside those that have ranges; and whether there is a body, whatever it is */
enum {
    LIE_GENERATION = MESSAGE_PLACES,
    LIE_TASK,
    LIE_JOB,
    LIE_OFFSET,
    LIE_LENGTH,
    LIE_BODY,
    LIE_FIELDS
};

struct lie { /* zeroed: none yet */
    uint32_t type;
    int field, index; /* which of the numbers that are tried in this field */
    uint64_t number;
};
bool lies_next(struct lie *); /* false: that was the last one */

/* Into a message that is right otherwise; the body is static. */
void lie_into(struct message *, const struct lie *);
/* As the list tells, without what a receiver knows more. */
bool lie_is_allowed(const struct lie *, unsigned sender);
enum { LIE_TEXT_MAX = 128 };
const char *lie_show(const struct lie *, char text[LIE_TEXT_MAX]);

#endif
