/* published.h - what whoever follows a run that publishes would have of it at some moments.
 *
 * At such a moment all that published.json names is put aside, as a server reads it; when the job
 * has ended it is read: each delta is of one step on all ps, and what it brings over the checkpoint
 * and the deltas before it is what the model had at that step.
 */
#ifndef TESTS_WORLD_PUBLISHED_H
#define TESTS_WORLD_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>

struct cluster;

void published_look(const struct cluster *);
uint64_t published_deltas(void); /* that were put aside, and are read */
void published_check(const struct cluster *, int last_step);
/* A file of a delta that published.json names when all is over. */
bool published_names(const struct cluster *, const char *file);

#endif
