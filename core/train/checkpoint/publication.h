/* publication.h - which values servers should load: a full checkpoint of a run's folder, and the
 * deltas (delta.h) that follow it, in order.
 *
 * published.json lists them, and is replaced last: a delta exists once it is listed. The deltas of
 * model.ckpt-STEP are model.ckpt-STEP.delta-00001, ...; the list has the checksum of each index
 * file, because after a restart the run may use the same names for other values. The next full
 * checkpoint removes the deltas before it: so there are at most DELTAS_MAX, together not much
 * larger than the checkpoint.
 */
#ifndef CORE_TRAIN_CHECKPOINT_PUBLICATION_H
#define CORE_TRAIN_CHECKPOINT_PUBLICATION_H

#include "core/train/checkpoint/checkpoints.h"

#define PUBLICATION_NAME "published.json"

enum { DELTAS_MAX = 100, PUBLISHED_NAME_MAX = 128, DELTAS_BYTES_FREE = 16 << 20 };

struct published {
    char name[PUBLISHED_NAME_MAX]; /* file name prefix in the folder; "": none */
    int64_t step;
    int64_t bytes;  /* of its data files */
    double time_s;  /* unix time of the snapshot */
    uint32_t index; /* checksum of its index file */
};

struct publication {
    struct published full, deltas[DELTAS_MAX];
    int count; /* of deltas */
};

/* Reads the folder's list; if there is none, nothing is published. ERR_INPUT: invalid. */
err publication_read(const char *folder, struct publication *ret);
/* The checksum of the index file of a prefix, to compare with `index` */
err published_index(const char *prefix, uint32_t *ret);

/* ---- for the chief of the run that writes ---- */

/* The snapshot to publish. */
struct publishing {
    int shards;
    uint64_t step;
    double time_s;
};
/* Starts a new list with the full checkpoint that was just published, and removes the deltas before
 * it. */
err publication_begin(struct publication *, const struct checkpoints *, const char *prefix,
                      const struct publishing *);
/* Joins the shards in `folder`, a temporary folder of these checkpoints or of others, to the next
 * delta; on failure removes them. ERR_PEER: another chief owns the folder. */
err publication_add(struct publication *, const struct checkpoints *, const char *folder,
                    const struct publishing *, char ret_prefix[CHECKPOINT_PATH_MAX]);
/* Publishes no more deltas until the next full checkpoint. */
void publication_forget(struct publication *);
/* Whether the next one must be a full checkpoint: the deltas are too many or too large, or there is
 * no full one yet. */
bool publication_wants_full(const struct publication *);

#endif
