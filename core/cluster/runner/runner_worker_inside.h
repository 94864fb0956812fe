/* runner_worker_inside.h - the inside of a worker on the real loop.
 *
 * runner_worker.c: steps; runner_worker_exchange.c, runner_worker_rows.c: what comes and leaves
 * meanwhile; runner_worker_speculate.c: between them; runner_worker_hooks.c: who hears of
 * them; runner_worker_links.c: connecting; runner_worker_missed.c: when nobody is there any more;
 * runner_worker_chief.c: what the ps begin from;
 * runner_worker_save.c: checkpoints; runner_worker_setting.c: what is set meanwhile;
 * trace/trace_worker.c, trace/trace_worker_gather.c: timelines.
 */
#ifndef CORE_CLUSTER_RUNNER_RUNNER_WORKER_INSIDE_H
#define CORE_CLUSTER_RUNNER_RUNNER_WORKER_INSIDE_H

#include "core/base/log.h"
#include "core/cluster/description/setup.h"
#include "core/cluster/runner/job.h"
#include "core/cluster/role/row_exchange.h"
#include "core/cluster/role/worker_role.h"
#include "core/cluster/runner/runner_worker.h"
#include "core/train/checkpoint/ended.h"
#include "core/train/checkpoint/publication.h"
#include "core/train/session/warm_start.h"
#include "core/train/spec/settings.h"

struct runner_worker_trace;

/* While a step waits for what a ps is to bring */
enum {
    AWAIT_MS = 10000,          /* for a byte */
    AWAIT_TURN_MS = 600000,    /* where a record is replayed, and others are to come first */
    AWAIT_LOOKS_MAX = 1 << 20, /* in a row, each of which moved something */
    LACKS_MAX = 100, /* tries of a step whose values do not all come; and --step_timeout */
};

/* One attempt at a connection; the link's context. */
struct attempt {
    struct runner_worker *worker;
    struct link *link; /* NULL: none */
    bool has_windows;  /* that are bound came by it */
    bool is_put_off;   /* the ps has said why it hangs up, which is the peer's trouble */
    int ps;
    /* second */
    int offer;             /* which of transports[] */
    uint64_t given_up;     /* the life of the ps that cannot be reached over what it offers; 0 */
    unsigned given_up_for; /* of it: bits of transports[] */
};

/* What a generation begins from. */
struct origin {
    struct arena arena;            /* of one recovery */
    struct setup_plan plan;        /* restore: its prefix, NULL: initial values */
    const struct ledger **ledgers; /* [ps_count], each [workers]; NULL: none */
    bool is_counted;               /* of ledgers: plan.coverage is the checkpoint's */
    const int64_t *data;           /* [data_numbers] of a checkpoint: which, and which are open */
    int data_numbers;
    float powers[ALL_POWERS_MAX];
    struct bundle *bundle;        /* restore, or the warm start's; NULL: none */
    struct warm_start_plan warm;  /* of plan.warm */
    int bad;                      /* checkpoints, from the newest, that could not be restored */
    char why_bad[ERROR_TEXT_MAX]; /* of the next of them; or "" */
    uint64_t since_ms;            /* it is chosen */
    /* of the ps that is filled by INIT */
    int filling; /* NOBODY's: -1 */
    float *arrays[1 + BLOCK_SLOTS_MAX];
};

/* The checkpoint that is being made. */
struct saving_files {
    char folder[CHECKPOINT_PATH_MAX];
    uint64_t step, tag, began_ns;
    uint64_t own_step, own_tag; /* of the newest that is there, as this task has made it; 0:
                                   another's */
    int shards;
    bool takes; /* what comes from afar: until it is published, by another thread */
    uint64_t (*came)[SHARD_INDEX + 1]; /* [ps] bytes of that of each file */
    err result;                        /* of writing it */
    char why[ACTION_TEXT_MAX];
    uint64_t failures, delta_failures; /* since the start */
    bool has_litter;    /* a ps may have written for a checkpoint that was given up */
    bool is_away;       /* the last one failed: the storage may not answer */
    bool is_looked_for; /* its token: by ps that were described and may not have come to that yet */
};

/* Of train.publish.to: the thread's while it copies, but for `next`. */
struct copies {
    struct task_job copying;
    struct copied {
        char prefix[CHECKPOINT_PATH_MAX];
        struct publishing is;
    } now, next;
    bool has_next;
    uint64_t since_ms;
    _Atomic bool gives_up, is_done; /* gives_up: the next attempt, for a newer one or the end */
    struct checkpoints *there;      /* that folder, opened; NULL: not, or it is none */
    struct publication made;        /* with the copy */
};

/* In threads, as the storage may not answer for long. What they are about is theirs meanwhile. */
struct folder_jobs {
    struct task_job opening, publishing, removing;
    struct checkpoints *opened; /* by opening, not w's yet */
    uint64_t opening_since_ms;
    uint64_t looks;                                                /* in vain, of a choice */
    _Atomic bool gives_up;                                         /* opening */
    char folder[CHECKPOINT_PATH_MAX], prefix[CHECKPOINT_PATH_MAX]; /* of what is published */
    uint64_t step, tag, since;                                     /* since: not 0: it is a delta */
    double taken_s; /* unix time when its values were so */
    int shards;
    struct publication publication; /* of which it becomes a part */
    struct copies copies;
    int not_published;         /* of the last checkpoints, one after the other */
    bool has_litter, is_void;  /* is_void: given up, and nobody waits for it any more */
    bool is_change, publishes; /* what was set is kept with it; deltas are to follow it */
    char removed[CHECKPOINT_PATH_MAX];
};

/* Parts of a ps' values. */
struct arrival {
    uint64_t missing; /* of those that VALUES spoke of last, which come */
    uint64_t ahead;   /* of the next ones, which have come */
    bool is_next;     /* VALUES have been said since the last step was computed */
    uint64_t used;    /* of the next step's, by what is speculated of it */
};

/* Rows of a ps of the layout, or of the one that stands in for it */
struct rows_there {
    struct rows_asked asked;
    char *kept; /* the front of a window that is gone, with `kept` gradients; NULL: none */
};

/* Batches of a step that did not come yet (feed/follow.h) */
struct absent_batches {
    uint64_t since_ms; /* 0: they are there */
    bool is_told;
};

/* A step, or the last evaluation, that is begun again and again as its values, or rows, do not all
 * come */
struct lack {
    bool is_now; /* the step that is computed has waited for some in vain */
    int tries;   /* in vain, one after the other */
    uint64_t since_ms;
    struct absent_batches batches;
};

/* Between two steps: when the last gradients had left, and the first answer was there; 0: not yet
 */
struct between_steps {
    uint64_t left_ns, answered_ns;
    double hooks_s;   /* that COUNTER_TIME_HOOKS was as the step ended */
    uint64_t data_ns; /* of the session, as the step began */
    uint64_t rated_ms;
    double rated_steps, rated_examples; /* as of then */
};

/* Averages, of one ps after the other */
struct averages_asked {
    struct average_source from; /* the session's way to them */
    uint64_t request_id;
    int ps;
    bool is_answered, is_refused;
};

/* Windows of a ps, as it has shared them on the link that is; at NULL: none are */
struct ps_windows {
    void *values;
    float *gradients;
    void *rows;    /* NULL: it has no tables */
    bool is_apart; /* the ps does not see these */
};

/* Where a ps is done without, and the other one that holds the same is read
 * (runner_worker_replicas.c)
 */
struct stand_in {
    uint64_t now, next; /* instead of these, bit by bit; next: from the next step on */
};

/* What comes of each ps. */
struct incoming {
    struct rows_there *rows; /* [ps of the layout] */
    struct arrival *values;  /* [ps] */
    struct averages_asked averages;
    struct ps_windows *windows; /* [ps] */
    struct stand_in stand_in;
};

struct speculation {
    uint64_t used;    /* steps that went on from it */
    uint64_t in_vain; /* how often it was thrown away */
};

/* What ps/0 has said first: what this process found when it came. */
struct worker_past {
    bool is_known;
    bool was_serving;
    bool has_pushed; /* was_serving: pushes of this worker are known */
};

/* The last step. */
struct step_done {
    bool is_new; /* hooks have not been told of it yet */
    uint64_t step;
    double loss;
    uint64_t pushed_ns; /* when the gradients left */
    double push_seconds;
};

/* Whether the job has ended without this worker. */
struct missed_end {
    struct task_job looking;       /* into the folder; what follows is its, but for looked_ms */
    uint64_t looked_ms, last_step; /* last_step 0: not known */
    struct ended ended;
    bool takes_part;         /* in a job that has begun */
    bool has_saved, is_over; /* has_saved: this task, of the last step */
    bool is_counted;         /* the checkpoint says of its rows what follows */
    uint64_t step;
    struct covered covered;
    char prefix[CHECKPOINT_PATH_MAX];
};

struct attempts {
    struct attempt *first, *second; /* [ps]; second: over what the ps offers */
    struct log_limit wrong;         /* what a ps says that none would */
    struct missed_end missed;       /* nobody is reached any more */
};

/* By dtrain set (runner_worker_setting.c) */
struct set_so_far {
    struct settings kept;   /* what the folder has, as far as is known */
    struct settings next;   /* of the job that keeps it, while that runs */
    struct settings opened; /* by folder_jobs.opening */
    struct train_spec was;  /* is_followed: as the spec was read */
    bool is_followed;
    struct setting_change change; /* that is being made, or the last one */
    uint64_t request_id;          /* of who asked for it; 0: nobody waits */
    bool is_held;                 /* a job keeps it: what comes of that is the answer */
    bool is_kept, is_unsure;      /* by the job; is_unsure: it failed, and the folder may have it */
    err failure;                  /* of the job that also publishes, which has published, and why */
    char why[ERROR_TEXT_MAX];
    _Atomic bool is_given_up; /* it is not to be kept any more */
    struct task_job keeping;
    double rate_factor;  /* of the values that are served, as ps/0 says; 0: it has not */
    uint64_t generation; /* of these */
};

/* Of checkpoints, of a worker that leads. */
struct lead_folder {
    struct checkpoints *checkpoints;     /* NULL: not open, or no directory */
    char directory[CHECKPOINT_PATH_MAX]; /* "": no checkpoint_dir */
    char refusal[ERROR_TEXT_MAX];        /* of this task at its start; "": it was let in */
    uint64_t token;
    bool is_asked_to_save; /* by a signal, and has not begun */
    uint64_t published_ms; /* when what changed was last saved, or is being */
    struct folder_jobs jobs;
    struct set_so_far set;
};

struct runner_worker {
    struct task task; /* first */
    struct runner_worker_options options;
    struct session session;
    struct exchange exchange;
    struct row_source rows_from;
    struct incoming incoming;
    struct lack lack;
    struct {
        bool is_computing; /* a step, or ahead of it: the loop is lent but for what this task does
                              with it */
        bool is_impossible;
    } lending;
    struct speculation speculation;
    struct {
        uint64_t again; /* 1 + the step, once more has been heard; 0: no */
        uint64_t by_ms; /* and all windows are there, or not any more then */
    } evaluation;
    uint32_t gradients_per_push;
    struct {
        uint64_t step;
        uint64_t unset;    /* is_known: as it is where nobody has set it */
        bool is_known;     /* num_steps: once the first generation is chosen */
        bool keeps_counts; /* nothing is left to train: rows are shared anew, and no row is lost by
                              it */
    } end;
    uint64_t noted_ms;
    struct worker_past past;
    bool has_chosen; /* chief: what a generation begins from */
    bool has_adopted;
    struct step_done done;
    struct between_steps between;
    struct attempts attempts;
    float **kept; /* [ps] gradients whose link is lost; NULL: none */

    struct lead_folder folder;
    struct origin origin;
    struct saving_files saving;

    struct runner_worker_trace *trace; /* NULL until the first timeline */
    struct {
        struct run_view view;
        struct arena arena; /* of the view */
        struct told_rows {
            struct covered covered; /* last */
            bool is_over;
            struct torn_rows torn;
        } rows;
        struct asked_timeline {
            uint64_t request_id, first_step; /* first_step 0: it has not begun, or there is none */
            int steps;
            bool is_wanted;
        } asked; /* by a visitor */
    } hooks;
};

uint64_t runner_worker_block_bytes(const struct runner_worker *, int ps);
/* runner_worker_count.c */
bool runner_worker_count(struct task *, struct counters *); /* struct task_ops */
void runner_worker_tell_counted(struct task *, const struct task_status *);
void runner_worker_count_waited(struct runner_worker *, uint64_t now_ns); /* a step begins, */
double runner_worker_apart(const struct runner_worker *); /* seconds that are no computing */
void runner_worker_count_step(struct runner_worker *, uint64_t begin_ns, double apart, bool is_one);
void runner_worker_count_answered(struct runner_worker *); /* something has come of a ps */
void runner_worker_count_left(struct runner_worker *);     /* after every look at the links */
void runner_worker_heard_request(struct runner_worker *, int ps, const struct message *);
/* To ps/0, for the visitor. Takes the reference; NULL: there was no memory for it. */
void runner_worker_reply(struct runner_worker *, uint64_t request_id, json_t *);
void runner_worker_refuse(struct runner_worker *, uint64_t request_id, int code, const char *why);

bool runner_worker_leads(const struct runner_worker *); /* it is the chief */

/* runner_worker_replicas.c: ps of the layout, and ps that follow them */
void runner_worker_stand_in(struct runner_worker *, uint64_t gone); /* ACTION_STAND_IN */
void runner_worker_turn_to(struct runner_worker *); /* a step begins, or an evaluation */
int runner_worker_source(const struct runner_worker *, int ps); /* where its values come from */
bool runner_worker_reads(const struct runner_worker *, int ps); /* they come from this ps */
/* Which ps of the layout these windows are bound to; NOBODY: none */
int runner_worker_bound(const struct runner_worker *, int ps);
void runner_worker_bind(struct runner_worker *,
                        int ps); /* of the layout, to its source's windows */
/* A push, or a part of one, to a ps that follows: what the other one gets goes into its window. */
void runner_worker_copy_push(struct runner_worker *, int ps, const struct message *);

const struct exchange *runner_worker_open_exchange(struct runner_worker *);
/* While a step is computed a thread moves bytes between hosts. Both do nothing where they need not.
 */
void runner_worker_lend_loop(struct runner_worker *);
void runner_worker_reclaim_loop(struct runner_worker *);
void runner_worker_note_values(struct runner_worker *, int ps,
                               const struct message *);                                /* VALUES, */
void runner_worker_note_ahead(struct runner_worker *, int ps, const struct message *); /* AHEAD */
/* After the link, or what the ps says of its rounds, has changed. */
void runner_worker_plan_overlap(struct runner_worker *, int ps);
struct parts runner_worker_block(const struct runner_worker *, int ps);

/* After every look at the links. */
void runner_worker_speculate(struct runner_worker *);
/* Of struct exchange: is_there. */
bool runner_worker_has_come(void *worker, int ps, struct range values);
/* What is speculated is void: if it has used one of these, which come again; in any case. */
void runner_worker_doubt_speculation(struct runner_worker *, int ps, uint64_t parts);
void runner_worker_forget_speculation(struct runner_worker *);
void runner_worker_use_speculation(struct runner_worker *); /* before the step that it is of */
void runner_worker_report_speculation(const struct runner_worker *);

/* While a step is computed. ERR_PEER: some of its values will not come, so that nothing comes of
 * it.
 */
err runner_worker_await_all(struct runner_worker *);
/* Until more has come of this ps, or something else is to be heard first: then nothing comes of the
 * step. */
err runner_worker_await_link(struct runner_worker *, int ps);

/* That some do not come, and why: at doublings of how often that is so of one step. */
void runner_worker_lack_values(struct runner_worker *, const char *what);

/* runner_worker_rows.c: of tables. What they bring is asked for, where it did not come with values.
 */
const struct row_source *runner_worker_open_rows(struct runner_worker *);
void runner_worker_rows_heard(struct runner_worker *, int ps, const struct message *); /* ROWS */
void runner_worker_rows_values(struct runner_worker *, int ps);                        /* VALUES */
void runner_worker_rows_push(struct runner_worker *, int ps,
                             const struct message *); /* before PUSH */
/* Of a ps of the layout: the window is about to go; what is kept of it is of a step that is over;
 * and another window is there. */
void runner_worker_rows_keep(struct runner_worker *, int ps);
void runner_worker_rows_drop(struct runner_worker *, int ps);
void runner_worker_rows_bind(struct runner_worker *, int ps, void *window, bool is_apart);

/* runner_worker_averages.c: for evaluations. NULL: the spec wants none. */
const struct average_source *runner_worker_open_averages(struct runner_worker *);
void runner_worker_averages_heard(struct runner_worker *, int ps, const struct message *);

void runner_worker_connect(struct runner_worker *, int ps);
void runner_worker_tick_links(struct task *, uint64_t now_ms);
void runner_worker_tick_end(struct task *, uint64_t now_ms);
void runner_worker_look_for_end(struct runner_worker *, uint64_t now_ms); /* no ps is there */
void runner_worker_stop_looking(struct runner_worker *);
void runner_worker_hang_up(struct task *);
void runner_worker_remake(struct runner_worker *, int ps);

/* Of whoever leads first: what is wrong with the folder is told at once. */
err runner_worker_prove_checkpoints(struct runner_worker *);
err runner_worker_open_checkpoints(struct runner_worker *);
/* What is written or removed there is waited for, and nobody hears of it any more. */
void runner_worker_end_files(struct runner_worker *);
/* Storage did not answer as a generation was chosen: it is chosen once more after a pause, during
 * which the loop continues, until --restart_timeout. false: not, and why. */
bool runner_worker_looks_again(struct runner_worker *, err *);
void runner_worker_check_scale(struct runner_worker *,
                               const struct message *); /* SCALE: the role is told */
void runner_worker_lead(struct runner_worker *);
void runner_worker_claim(struct runner_worker *, const struct action_claim *);
void runner_worker_yield(struct runner_worker *);
void runner_worker_choose(struct runner_worker *, const struct action_choose *);
err runner_worker_describe(struct runner_worker *, int ps);
err runner_worker_fill(struct runner_worker *, int ps, int array);
void runner_worker_origin_close(
    struct runner_worker *); /* what a generation began from is needed no more */

void runner_worker_begin_files(struct runner_worker *, const struct action_begin *);
void runner_worker_publish_files(struct runner_worker *, const struct action_publish *);
void runner_worker_abandon_files(struct runner_worker *, const struct action_abandon *);
void runner_worker_take_shard(struct runner_worker *, int ps, const struct message *);
void runner_worker_close_checkpoints(struct runner_worker *);

/* Storage that has failed so, `tries` times since then, is asked again, after a pause. Where it is
 * not, e becomes what is told. */
bool runner_worker_asks_again(err *e, uint64_t since_ms, uint64_t limit_ms, const char *flag,
                              uint64_t tries);
void runner_worker_pause(const _Atomic bool *gives_up);
/* The list of what servers are to have was begun with a checkpoint, or could not be. */
void runner_worker_begun_publication(struct runner_worker *, err);
/* Of a checkpoint that is no save: that servers are to have it, too (train.publish). */
err runner_worker_publish_made(struct runner_worker *, const char *prefix);

/* train.publish.to (published_to.c): whether there is one, and that it can be written. */
bool published_to_is_wanted(const struct runner_worker *);
err published_to_prove(const struct runner_worker *);
void published_to_note(const struct runner_worker *); /* a denial there may pass, from now on */
/* A checkpoint is copied there, in a thread of its own, and the list begun with it: until that is
 * done, or given up, it is busy, and no delta follows. A newer one takes the place of one that
 * waits. While checkpoints are published none is begun: it goes on with the next afterwards. */
void published_to_want(struct runner_worker *, const char *prefix, const struct publishing *);
void published_to_go_on(struct runner_worker *);
bool published_to_is_busy(const struct runner_worker *);
const char *published_to_reads(const struct runner_worker *); /* that it copies; NULL: none */
/* A delta, there or beside the checkpoints; in the thread that publishes. */
err published_to_add(struct runner_worker *, const struct publishing *);
/* The last copy is waited for, until --publish_timeout; --stop_timeout of a run that was ended. Of
 * one that continues with other tasks it is not: that copies the next one. */
void published_to_end(struct runner_worker *);
void published_to_close(struct runner_worker *);

void runner_worker_heard_setting(struct runner_worker *, const struct message *); /* REQUEST */
void runner_worker_changed(struct runner_worker *, const struct action_changed *);
/* The change that is being made holds from this step on; it is kept (in the thread that publishes),
 * ERR_PEER: another chief has the folder, any other failure is noted; it is not to be; and what
 * came of it. is_void: the role has given the checkpoint up. */
err runner_worker_setting_at(struct runner_worker *, uint64_t step);
err runner_worker_keep_setting(struct runner_worker *);
void runner_worker_give_setting_up(struct runner_worker *);
void runner_worker_setting_kept(struct runner_worker *, err result, bool is_void);
void runner_worker_settings_open(struct runner_worker *); /* the folder is */
void runner_worker_settings_close(struct runner_worker *);
/* A generation begins at this step: what the folder has holds, which is this chief's. Joins what is
 * being kept (end), before it is. */
void runner_worker_settings_end(struct runner_worker *);
/* In which the last change of what values depend on was made; 0: there was none. */
uint64_t runner_worker_settings_generation(const struct runner_worker *);
err runner_worker_settings_choose(struct runner_worker *, uint64_t step);
/* Other files are begun (train.daily): where the run was to end is no end of theirs. */
err runner_worker_settings_begin_day(struct runner_worker *);
bool runner_worker_set_last_step(const struct runner_worker *,
                                 uint64_t *ret); /* false: nobody has */
void runner_worker_note_settings(struct runner_worker *,
                                 const struct message *);       /* STATE of ps/0 */
double runner_worker_rate_factor(const struct runner_worker *); /* of learning rates */

bool runner_worker_save(
    struct runner_worker *); /* a checkpoint, where there is a folder for it; false: not now */
/* Of a chief whose spec says so: when it is time, what changed since the last one, or all. */
void runner_worker_publish_in_time(struct runner_worker *, uint64_t now_ms);

/* Hooks are told of what happens at a global step. runner_worker_told: an error ends the job. */
err runner_worker_tell(struct runner_worker *, uint64_t step, const struct occasion *);
/* What a checkpoint of the job says of its rows; from any thread. */
err runner_worker_read_covered(struct runner_worker *, const char *prefix, uint64_t *ret_step,
                               struct covered *ret);
void runner_worker_note_torn(struct runner_worker *, const struct torn_rows *);
void runner_worker_torn(struct runner_worker *, const struct torn_pushes *of_workers);
/* Counts that are of the end, or of what is there so far, are told with what is torn. */
err runner_worker_tell_covered(struct runner_worker *, uint64_t step, const struct covered *,
                               bool is_over);
void runner_worker_told(struct runner_worker *, err);
void runner_worker_open_view(struct runner_worker *);
err runner_worker_open_hooks(
    struct runner_worker *); /* those of its part, perhaps in place of others */
uint64_t runner_worker_last_step(const struct runner_worker *); /* 0: not known yet, or never */

#endif
