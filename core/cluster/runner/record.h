/* record.h - the turns of a job (core/cluster/role/turns.h) in files, one for each ps: FILE.ps-N.
 *
 * A file is rows of 16 bytes, numbers little-endian. Each generation of the job adds a section:
 * three header rows, and a row for each turn.
 *
 *   section: kind, 8 bits above 24 of the version; ps; how many ps; workers: 32 bits each
 *            generation, 64 bits; the step that it begins at, 64 bits
 *            fingerprint of the spec as it was written, 64 bits; what learning rates are multiplied
 *            by (dtrain set), a double, 64 bits
 *   turn:    kind, 8 bits above 24 of the worker; 64 is added to the kind where rows were asked for
 *            how many updates before the turn its values were read, 32 bits; likewise its rows;
 *            all ones: there were none
 *            batch, 32 bits, as turns.h says
 *   end:     as a turn, with the exit code in place of the worker, and of the batch what turns.h
 *            says
 */
#ifndef CORE_CLUSTER_RUNNER_RECORD_H
#define CORE_CLUSTER_RUNNER_RECORD_H

#include <stdbool.h>

#include "core/base/error.h"
#include "core/cluster/role/turns.h"

enum { RECORD_PATH_MAX = 4096 };

struct record_section {
    int ps, ps_count, workers;
    uint64_t generation, step, spec;
    double rate_factor;
};

/* ---- written ---- */

struct record;
/* Appends to an existing record, after its last whole row; ERR_INPUT: the file is not a record, or
 * cannot be written. */
err record_open(const char *path, int ps, struct record **ret);
void record_begin(struct record *, const struct record_section *);
/* applied: updates before this turn. A write error ends the record, with a warning. */
void record_add(struct record *, const struct turn *, uint64_t applied);
void record_flush(struct record *);
void record_close(struct record *); /* NULL is fine */

/* ---- read ---- */

/* What is to be replayed. */
struct replay {
    struct record_section section; /* of ps/0 */
    uint64_t end;      /* the step at which it ends, where all ps had taken the same pushes */
    bool fails;        /* the job ended by NaN or infinity, and so does the replay */
    uint64_t left_out; /* pushes that ps/0 has taken after that */
    struct {
        int worker;           /* that pushed it; NOBODY: not known, or !fails */
        uint64_t push, batch; /* in its stream, from the section on; batch: as in turns.h */
    } bad;
    struct turns turns; /* of the ps in replay_read; owned */
};

/* The last section of all ps, up to the first step from `to_step` on at which all of them had taken
 * the same pushes (0: as far as they go), as ps `ps` took them. ERR_INPUT: not a record, or not all
 * of one job. */
err replay_read(const char *path, int ps, uint64_t to_step, struct replay *ret);
void replay_free(struct replay *);

#endif
