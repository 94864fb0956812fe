/* setup.h - what the chief tells a ps about its share, so that a ps needs no spec. JSON in a SETUP
 * message. */
#ifndef CORE_CLUSTER_DESCRIPTION_SETUP_H
#define CORE_CLUSTER_DESCRIPTION_SETUP_H

#include "core/cluster/role/ps_role.h"
#include "core/train/checkpoint/shard.h"
#include "core/train/variables/layout.h"
#include "core/train/spec/spec.h"

/* A slice of a table. */
struct table_share {
    struct slice slice; /* without a place in the block */
    struct table_spec spec;
    int optimizer;
};

/* Which rows a position of the stream is: of what they are, and of their order. 0: not known. */
struct data_identity {
    int64_t rows, order;
};
enum { IDENTITY_NUMBERS = 2 };

struct setup {
    struct ps_config config;       /* with its ledger, in the arena */
    int64_t floats;                /* of the block */
    enum number wire, wire_values; /* what gradients come as, and values go as */
    struct optimizers optimizers;
    int ps, workers;
    struct {
        int home, homes;    /* the ps whose it is, of how many that have one each (replicas.h) */
        bool is_held_twice; /* by another ps, too, or that of others is */
        const char *layout; /* text: how what this ps holds lies there, and is updated */
    } part;                 /* of the variables */
    const struct slice *slices;
    int slice_count;
    const int *optimizer_of;        /* [slice_count] */
    const struct section *sections; /* of the block, by optimizer */
    int section_count;
    const struct table_share *tables;
    int table_count;
    bool owns_powers;
    float powers[ALL_POWERS_MAX];
    int power_count;       /* 0: as they begin */
    const char *directory; /* of checkpoints, NULL: none */
    bool publishes;        /* what changes since each snapshot is noted */
    struct {
        uint64_t token;  /* of a file there: does this ps see it? */
        int64_t resizes; /* of the job, that the chief knows of by it */
    } mark;
    const char *restore; /* prefix of the checkpoint to begin from, NULL: initial values come */
    struct {
        uint64_t snapshot; /* tag of those that it was made of; 0: not known */
        uint64_t set_in;   /* in which dtrain set last changed what values depend on; 0: never */
        bool resumes;      /* the job was let into that folder before */
    } from;
    struct {
        const char *from; /* prefix of another run's, for tables; NULL: none */
        struct warm_start how;
    } warm;
    struct data_identity data;
};

/* How synchronous training shares out R gradients over W workers: how many this worker sums into
 * one push. */
uint32_t setup_gradients_per_push(const struct spec *, int workers, int worker);

/* May ps/0 drop a gradient (backup workers, max_staleness)? */
bool setup_drops_gradients(const struct spec *, int workers);

/* The slices that lie on a ps, in the arena. */
int setup_slices(const struct layout *, int ps, struct arena *, const struct slice **ret);

/* What the chief has decided for all ps of a generation. */
struct setup_plan {
    const struct spec *spec;
    const struct layout *layout;
    int workers;
    enum number wire, wire_values; /* the spec's, unless nothing travels */
    int64_t last_step;
    uint64_t generation, step;
    int arrays; /* that a ps without sight of the folder gets by INIT */
    const char *directory, *restore, *warm_from;
    struct {
        uint64_t snapshot; /* tag of those that `restore` was made of; 0: not known */
        uint64_t set_in;   /* as of a setup */
        bool resumes;      /* values of this job are lost: it was let into its folder before */
    } from;
    const struct warm_start *warm; /* with warm_from */
    uint64_t token, resizes;
    const float *powers; /* NULL: as they begin */
    int power_count;
    struct {
        double steps_per_epoch; /* 0: not known */
        double factor;          /* 0: 1 */
    } rates;
    const struct ledger *ledger; /* [workers], of this ps; NULL: nobody has pushed */
    struct coverage coverage;    /* of all rows; ps/0 continues counting */
    const int64_t *queue; /* [queue_numbers] of a share that is one; 0: nothing is used yet */
    int queue_numbers;
    int stretch; /* batches of it that are read together; 0: any are */
    struct data_identity data;
};

/* The text for one ps; malloc'ed, NULL when there is no memory. */
char *setup_write(const struct setup_plan *, int ps);

/* What a chief that comes to lead says of its folder (LEADS). ERR_PROTOCOL: it is not that. */
char *setup_write_folder(const char *directory, uint64_t token); /* malloc'ed; NULL: no memory */
err setup_read_folder(const char *text, size_t bytes, struct arena *, const char **ret_directory,
                      uint64_t *ret_token);

/* ERR_PROTOCOL when it is not a setup. Strings and attributes go to the arena. */
err setup_read(const char *text, size_t bytes, struct arena *, struct setup *ret);

#endif
