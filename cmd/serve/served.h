/* served.h - a model by its name: the newest checkpoint of a folder is served, and the next one
 * taken while requests go on. An old one serves until its requests have ended. One that cannot be
 * opened is a warning, and the old one continues, at the beginning one before it; it is tried
 * again.
 */
#ifndef CMD_SERVE_SERVED_H
#define CMD_SERVE_SERVED_H

#include "cmd/serve/version.h"

struct served;
/* name NULL: that of the spec, known once it serves. Borrows the options. */
err served_open(const char *name, const struct version_options *, struct served **ret);
const char *served_label(const struct served *); /* of this version; NULL: none */
void served_close(struct served *);              /* NULL is fine; nobody may use it */

/* The owner's thread calls this again and again; looks: also whether there is a newer checkpoint.
 * Fails as long as there is none that serves: then this one could not be opened. */
err served_turn(struct served *, bool looks);

/* What follows any thread may call. */
const char *served_name(struct served *); /* NULL: not known yet */
struct tally *served_tally(const struct served *);
/* The version that serves now, until it is given back; number -1: whichever. NULL: there is none.
 */
struct version *served_take(struct served *, int64_t number);
void served_give(struct served *, struct version *);
bool served_is_ready(struct served *);

#endif
