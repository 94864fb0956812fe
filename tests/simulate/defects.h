/* defects.h - deliberate mistakes, to check that the simulation finds them.
 *
 * They are made by the runner, the network and the disks of the simulation, never by the roles: the
 * product has no code for them.
 */
#ifndef TESTS_SIMULATE_DEFECTS_H
#define TESTS_SIMULATE_DEFECTS_H

enum defect {
    DEFECT_NONE,
    DEFECT_LEDGER_LOST,     /* a checkpoint is restored without its ledger */
    DEFECT_APPLIED_LATER,   /* a push is answered before it is applied, and lost at a crash */
    DEFECT_PUBLISHED_EARLY, /* a checkpoint is published before all shards are written */
    DEFECT_PUSH_FORGOTTEN, /* the gradient of a worker that dies is lost although it was accepted */
    DEFECT_STEP_WRONG,     /* VALUES say a later step */
    DEFECT_GENERATION_OPEN,   /* messages of another generation are accepted in this one */
    DEFECT_RESUME_LOST,       /* ps/0 never hears that the snapshot is over */
    DEFECT_TICKET_TWICE,      /* a worker without a ticket gets one all the same */
    DEFECT_PUSH_TWICE,        /* a push counts twice under two numbers */
    DEFECT_SNAPSHOT_EARLY,    /* one ps makes its snapshot before everything is there */
    DEFECT_RESTORED_OFF,      /* a generation begins one step later than its values */
    DEFECT_FINISHED_LOST,     /* a worker's FINISHED does not arrive */
    DEFECT_DROP_HIDDEN,       /* a dropped gradient is answered as if it had been applied */
    DEFECT_OLD_CHECKPOINT,    /* not the newest checkpoint is restored */
    DEFECT_VALUES_OLD,        /* VALUES are sent without a fresh copy */
    DEFECT_BATCH_AGAIN,       /* a restarted worker begins with its first batch */
    DEFECT_ARRAYS_MISSING,    /* slots of a restored ps are not filled */
    DEFECT_VERDICT_LOST,      /* a ps does not tell the verdict to one worker */
    DEFECT_ANSWER_MISSED,     /* a ps does not wait for workers to answer the verdict */
    DEFECT_WORD_MISSED,       /* a worker does not wait for ps to answer the verdict */
    DEFECT_SHARD_OF_ANOTHER,  /* a shard is written from the state after the snapshot */
    DEFECT_DELTA_OF_OLD,      /* a delta begins with the checkpoint, not with the delta before */
    DEFECT_NUMBERS_FORGOTTEN, /* a ps tells a joining worker that it has none of its pushes */
    DEFECT_ADVANCE_KEPT,      /* what has advanced is not taken back */
    DEFECT_PART_LOST,         /* the ps hears of a part that has not come */
    DEFECT_ROWS_OLD,          /* a push is applied with the rows of an older one */
    DEFECT_ROWS_NOT_KEPT,     /* a push is sent again without its rows */
    DEFECT_ROWS_EARLY,        /* rows of the next batch are read before the push is applied */
    DEFECT_ROWS_ANSWER_OLD,   /* the answer to an old request is taken for that to the new one */
    DEFECT_ROWS_IDS_OLD,      /* a gradient is applied to the rows of an older one */
    DEFECT_ROWS_STAY,         /* rows that came once are taken for those of later values */
    DEFECT_ROWS_PLANNED,   /* rows of a batch are taken for those of the one planned in its place */
    DEFECT_COVERAGE_LOST,  /* a checkpoint is restored without the count of rows */
    DEFECT_QUEUE_LOST,     /* a checkpoint is restored without the batches that are open */
    DEFECT_FED_AGAIN,      /* a chief that is back feeds from the first batch on */
    DEFECT_FENCE_OPEN,     /* a chief publishes though another one has come to lead */
    DEFECT_SUM_LOST,       /* a gradient's window is another's before it is in the sum */
    DEFECT_RESUME_MISSED,  /* now and then ps/0 does not hear that a snapshot is over */
    DEFECT_KEPT_BY_LEDGER, /* a ps with the pushes of a checkpoint does not read that again */
    DEFECT_COPY_OLD,       /* what is pushed to a follower is not copied into its window */
    DEFECT_FOLLOWER_LOSES, /* a follower answers a push, and does not apply it */
    DEFECTS
};

const char *defect_name(enum defect);
enum defect defect_find(const char *name); /* DEFECTS: unknown */

#endif
