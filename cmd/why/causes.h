/* causes.h - finds from a run's files how it ended and what cost it time. A pure function: a cause
 * is a row of the table in causes.c. */
#ifndef CMD_WHY_CAUSES_H
#define CMD_WHY_CAUSES_H

#include "cmd/why/evidence.h"

enum { CAUSES_MAX = 2 * FINDINGS_MAX };

/* In the order of the table, then what `dtrain status` finds. Returns how many. */
int causes_find(const struct evidence *, struct finding ret[CAUSES_MAX]);

void causes_help(FILE *); /* names of all causes and what they find, for people */

#endif
