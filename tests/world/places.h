/* places.h - that nobody takes the place of a task that lives, where tasks find each other by a
 * coordinator, and that a coordinator which has forgotten them is told again.
 */
#ifndef TESTS_WORLD_PLACES_H
#define TESTS_WORLD_PLACES_H

#include <stdbool.h>
#include <stdint.h>

struct cluster;
struct cluster_task;

/* Whenever something was said. */
void places_look(const struct cluster *, struct cluster_task *);
/* Until then tasks may be unable to reach the coordinator, or it may not know them; is_of_some:
 * others may meanwhile. */
void places_trouble(struct cluster *, uint64_t until_ns, bool is_of_some);
/* It has found the others, in this life. */
bool place_is_found(const struct cluster_task *);

#endif
