/* publication.h - which values a server is to have: a full checkpoint of a run's folder, and the
 * deltas (delta.h) that follow it, in order.
 *
 * published.json says so, and is replaced last: a delta counts from the moment it stands there. The
 * deltas of model.ckpt-STEP are model.ckpt-STEP.delta-00001, ...; of each file set the checksum of
 * its index stands there, so that nothing is taken for what it is not: another life of the run may
 * give the same names to other values. When a full checkpoint follows, the deltas before it are
 * removed: so there are DELTAS_MAX at most, and not many more bytes than the checkpoint has.
 */
#ifndef CORE_TRAIN_CHECKPOINT_PUBLICATION_H
#define CORE_TRAIN_CHECKPOINT_PUBLICATION_H

#include "core/train/checkpoint/checkpoints.h"

#define PUBLICATION_NAME "published.json"

enum { DELTAS_MAX = 100, PUBLISHED_NAME_MAX = 128, DELTAS_BYTES_FREE = 16 << 20 };

struct published {
    char name[PUBLISHED_NAME_MAX]; /* of the file set, in the folder; "": none */
    int64_t step;
    int64_t bytes;  /* of its data files */
    double time_s;  /* unix time when the values were so */
    uint32_t index; /* checksum of its index file */
};

struct publication {
    struct published full, deltas[DELTAS_MAX];
    int count; /* of deltas */
};

/* Reads the folder's file; without it nothing is published. ERR_INPUT: it cannot be understood. */
err publication_read(const char *folder, struct publication *ret);
/* The checksum of the index of a file set, to be compared with `index` */
err published_index(const char *prefix, uint32_t *ret);

/* ---- for the chief of the run that writes ---- */

/* What a publication says of the snapshot. */
struct publishing {
    int shards;
    uint64_t step;
    double time_s;
};
/* Begins a new list with the full checkpoint that was published last; deltas before it are removed.
 */
err publication_begin(struct publication *, const struct checkpoints *, const char *prefix,
                      const struct publishing *);
/* Joins the shards in the temporary folder, of these checkpoints or others, to the next delta, or
 * leaves nothing of them. ERR_PEER: another chief owns the folder. */
err publication_add(struct publication *, const struct checkpoints *, const char *folder,
                    const struct publishing *, char ret_prefix[CHECKPOINT_PATH_MAX]);
/* Publishes nothing more until a full checkpoint comes. */
void publication_forget(struct publication *);
/* Whether a full checkpoint must follow: there are too many deltas, or too large ones, or there is
 * no full one yet. */
bool publication_wants_full(const struct publication *);

#endif
