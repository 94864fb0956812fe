/* served.h - a named model: serves the newest checkpoint of a folder and switches to the next one
 * without interrupting requests; an old one is closed when its requests have ended. If one cannot
 * be opened, it warns, goes on with the old one (at start: tries an older one) and retries.
 */
#ifndef CMD_SERVE_SERVED_H
#define CMD_SERVE_SERVED_H

#include "cmd/serve/version.h"

struct served;
/* name NULL: that of the spec, known once it serves. Borrows the options. */
err served_open(const char *name, const struct version_options *, struct served **ret);
const char *served_label(const struct served *); /* of this version; NULL: none */
void served_close(struct served *);              /* NULL is fine; nobody may use it */

/* To be called repeatedly by the owner's thread; looks: also check for a newer checkpoint. Fails
 * only while no version serves, if the checkpoint could not be opened. */
err served_turn(struct served *, bool looks);

/* What follows any thread may call. */
const char *served_name(struct served *); /* NULL: not known yet */
struct tally *served_tally(const struct served *);
/* Takes a reference to the version that serves now; number -1: any. NULL: none. */
struct version *served_take(struct served *, int64_t number);
void served_give(struct served *, struct version *);
bool served_is_ready(struct served *);

#endif
