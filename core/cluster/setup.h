/* setup.h - what the chief tells a ps about its share, so that a ps needs no spec. JSON in a SETUP
 * message. */
#ifndef CORE_CLUSTER_SETUP_H
#define CORE_CLUSTER_SETUP_H

#include "core/cluster/ps_role.h"
#include "core/train/layout.h"
#include "core/train/spec.h"

struct setup {
    struct ps_config config;
    int64_t floats;    /* of the block */
    int64_t variables; /* slices in it */
    struct optimizer_spec optimizer;
};

/* How synchronous training shares out R gradients over W workers: how many this worker sums into
 * one push. */
uint32_t setup_gradients_per_push(const struct spec *, int workers, int worker);

/* May ps/0 drop a gradient (backup workers, max_staleness)? */
bool setup_drops_gradients(const struct spec *, int workers);

/* The text for one ps; malloc'ed, NULL when there is no memory. */
char *setup_write(const struct spec *, const struct layout *, int ps, int workers,
                  int64_t last_step);

/* ERR_PROTOCOL when it is not a setup. Strings and attributes go to the arena. */
err setup_read(const char *text, size_t bytes, struct arena *, struct setup *ret);

#endif
