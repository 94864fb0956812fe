/* world.h - a cluster of roles in one process: virtual time, a network, disks, and faults.
 *
 * The roles are the product's; this is a second runner for them. Everything that happens is drawn
 * from one seed, so that a run can be had again. Time is in microseconds and passes from event to
 * event. What must never happen is looked for while it could (blame) and at the end (checks.c).
 */
#ifndef TESTS_SIMULATE_WORLD_H
#define TESTS_SIMULATE_WORLD_H

#include <stdio.h>

#include "core/base/replicas.h"
#include "core/cluster/role/batch_queue.h"
#include "core/cluster/role/row_exchange.h"
#include "core/cluster/role/worker_role.h"
#include "tests/simulate/defects.h"
#include "tests/simulate/model.h"
#include "tests/simulate/profile.h"

enum {
    PEERS_MAX = WORKERS_MAX,
    BODY_MAX = 2048,
    OPEN_MAX = 128, /* numbers of a queue */
    CHECKPOINTS_MAX = 2048,
    EVENTS_MAX = 400000,   /* of a run */
    GENERATIONS_MAX = 200, /* of a run */
    QUEUE_MAX = 256,       /* parcels in one direction of a link */
    BLAME_MAX = 400,
    TICK_US = 100000,
    APPLIED_KEPT = 4, /* no two ps are further apart in synchronous training */
};

struct world;
struct actor;
struct link;

struct description { /* body of the chief's SETUP */
    uint64_t term;
    struct ps_config config; /* the ps adds what it finds on its disk, or will be brought */
    int checkpoint;          /* NOTHING: initial values */
    uint64_t snapshot;       /* tag of those that it was made of; 0: not known */
};

/* ---- events ---- */

enum event_kind {
    EVENT_START,    /* actor */
    EVENT_TICK,     /* actor */
    EVENT_RESUME,   /* actor: the work `number` is done; SEND: it is frozen no more */
    EVENT_CONNECT,  /* actor (a worker) to ps `number` */
    EVENT_WRITTEN,  /* actor: its shard */
    EVENT_PART,     /* actor (a worker) to ps `number`: a piece of the gradient is computed */
    EVENT_SAVE,     /* actor (who leads): the interval is over */
    EVENT_EVALUATE, /* actor (who leads): once more */
    EVENT_OPEN,     /* actor (who leads in term `number`): its folder is open */
    EVENT_LEAVE,    /* actor has ended and closes its links */
    EVENT_DELIVER,  /* link, direction `number` */
    EVENT_NOTICE,   /* link: the end `number` sees that it is cut */
    EVENT_FAULT,    /* `number` */
};

struct event {
    uint64_t at_us, order; /* order: of what happens at the same time */
    enum event_kind kind;
    int actor, life; /* of another life: void */
    struct link *link;
    int number;
};

struct events { /* a binary heap */
    struct event *at;
    int count, capacity;
    uint64_t added;
};

/* ---- links ---- */

enum direction { TO_WORKER, TO_PS, DIRECTIONS };

enum parcel_kind { PARCEL_HELLO, PARCEL_WELCOME, PARCEL_SHARE, PARCEL_MESSAGE, PARCEL_CLOSE };

struct parcel {
    struct parcel *next;
    uint64_t at_us;
    enum parcel_kind kind;
    struct message message;
    int first, pieces;            /* of the stretch */
    struct content content;       /* PUSH, PART, INIT: what was in the window when it was sent */
    const struct content *source; /* where it stands, [pieces] */
    uint64_t ahead[PIECES];       /* AHEAD: hashes that it brings */
    int node;                     /* VALUES: likewise */
    const int *node_source;
    struct row_back rows; /* ROWS of a ps: likewise */
    const struct row_back *rows_source;
    struct windows *windows; /* SHARE */
    const int *values;
    unsigned char body[BODY_MAX];
};

struct queue {
    struct parcel *first, *last;
    int count;
    bool is_scheduled;
    bool is_held; /* the first one waits for a window */
    uint64_t last_us, stalled_until_us;
};

struct link {
    struct link *next; /* of the world */
    int number, ps, worker;
    uint64_t incarnations[DIRECTIONS]; /* [the end that the direction leads to] */
    bool is_cut;
    bool is_open[DIRECTIONS];     /* the process at that end holds it */
    bool has_windows[DIRECTIONS]; /* that end knows them: stretches can be sent */
    struct queue queues[DIRECTIONS];
};

/* ---- tasks ---- */

struct snapshot_write { /* a shard that is being written */
    bool is_active;
    uint64_t tag, step, since;
    int shard, count, node, from; /* from: of a delta, what it begins with */
    uint64_t noted;               /* tag since which changes are noted; 0: none */
    int noted_node;
    struct ledger ledger[WORKERS_MAX];
    struct coverage coverage;
    int64_t queue[OPEN_MAX]; /* [queue_count] */
    int queue_count;
    bool goes_without[WORKERS_MAX]; /* then */
};

/* What a worker sees of a ps. */
struct view {
    const int *values;                  /* NULL: nothing is shared on this link yet */
    struct content *gradient;           /* [WINDOW_PIECES] */
    struct content kept[WINDOW_PIECES]; /* of a link that was lost; kind NONE: nothing */
    uint64_t ahead[PIECES];             /* hashes that came ahead of the next values; 0: none */
    struct windows *own;                /* where memory is not shared */
    const struct row_back *back;        /* NULL, as gradient */
    struct rows_asked asked;
    bool was_brought; /* the push is of rows that the ps has brought */
    uint64_t rows_of; /* 1 + number of the push whose rows came with the values; 0: of none */
    uint64_t pushed, pushed_generation; /* number of the last push that was sent */
    uint64_t dropped;                   /* of the last one that was dropped */
};

/* A push that was applied somewhere, so that all ps can be seen to apply the same one. */
struct applied {
    uint64_t generation, sequence, hash;
};

/* Ids that a ps keeps: 1 + the batch that names them */
struct rows_ids {
    uint64_t pushed, wanted;
};

struct actor {
    enum job job;
    int index, number;                 /* number: actor_of(job, index) */
    int life;                          /* 0: never started */
    int departures;                    /* lives that have left the job, which continues */
    bool departs;                      /* has_ended: it has left a job that continues */
    bool is_departing, is_granted;     /* asked to, in this life, and may */
    bool is_alive, has_ended, is_gone; /* gone: nobody starts it again */
    bool has_left;                     /* it has ended, and does not linger any more */
    bool is_severed;                   /* the verdict need not have reached it */
    uint64_t incarnation, started_us, ended_us;
    uint64_t asked_us; /* to end, by a signal; 0: it was not */
    uint64_t frozen_until_us;
    uint64_t unplugged_until_us; /* no link can be made */
    int code;
    struct membership resizes_to; /* has_ended: by a resize; of no tasks: otherwise */
    int refused;                  /* moves that it was asked for, of ps/0 */
    char text[ACTION_TEXT_MAX], said[ACTION_TEXT_MAX]; /* said: the last line for people */
    struct role *role;
    struct outbox outbox;
    int cursor;             /* actions carried out */
    int dies_after_actions; /* 0: not */
    uint64_t down_us;       /* until it is started again after its death; 0: never */
    bool is_acting;
    uint64_t busy_until_us;            /* deaf until then */
    struct action works[ACTION_TYPES]; /* that are under way; type SEND: it is not */
    int works_count;
    struct link *links[PEERS_MAX];
    bool met[PEERS_MAX];
    uint64_t lost_us[PEERS_MAX]; /* links[i] NULL: since when */
    uint64_t told_us[PEERS_MAX]; /* what the role's clock said then: the time of its last tick */
    uint64_t ticked_us;
    /* of a ps */
    uint64_t came_life[PEERS_MAX],
        came_us[PEERS_MAX]; /* of a worker, which it has met since then */
    struct ps_config config;
    unsigned char setup[BODY_MAX]; /* body of the SETUP that it works on */
    int *store;                    /* node of its values; NOTHING while they are not complete */
    uint64_t as_of; /* tag of the snapshot that the store is still that of; 0: none */
    struct windows *windows[WORKERS_MAX];
    struct rows_told told[WORKERS_MAX];
    struct rows_ids ids[WORKERS_MAX];
    bool is_serving, is_held;
    uint64_t advanced; /* pieces that are not of the store's node any more, but of these */
    uint64_t advanced_hashes[PIECES];
    struct content folded[WORKERS_MAX]; /* is_folded: it is in the sum, and in no window */
    bool is_folded[WORKERS_MAX];
    bool has_joined[WORKERS_MAX]; /* since the last update */
    int restored, arrays; /* restored: node that it is to be filled with; arrays that have come */
    struct snapshot_write snapshot;
    /* of a worker */
    struct link *attempts[PS_MAX];
    int tries[PS_MAX];
    struct view views[PS_MAX];
    uint64_t stood_in_for, stands_in_next; /* ps whose followers it reads, and from the next step */
    int seen[HOMES_MAX];                   /* nodes, while it computes */
    struct content computed;               /* its last gradient */
    bool is_starved;                       /* what its step begins from does not all come */
    uint64_t wanted;                       /* 1 + the batch whose rows it waits for; 0: none */
    uint64_t named, named_number; /* likewise with its last push, for the push of this number */
    bool is_revoked;              /* that one is another now */
    struct action evaluates;      /* of the chief, once more */
    uint64_t fed,
        remote_input_end; /* batches that the chief has sent and that lie ready: from, to */
    int adopted;          /* generations that it took part in, in this life */
    uint64_t plan_first, plan[PLAN_NUMBERS_MAX]; /* [2 plan_count] batches of the data */
    int plan_count;
    /* of the chief */
    uint64_t led; /* when it came to lead, as the folder counts */
    struct choice choice;
    int chosen;                           /* checkpoint; NOTHING: initial values */
    bool opens_folder;                    /* of checkpoints: it leads, and that is not open yet */
    uint64_t save_generation;             /* of the last checkpoint that it asked for */
    uint64_t save_tag, save_us;           /* of that, since when it is made */
    uint64_t own_tag;                     /* of the newest, if this life has published it; 0 */
    uint64_t covered, covered_generation; /* the epoch that it hears of next */
};

/* ---- disks ---- */

struct shard {
    bool is_there;
    int home, node, from; /* home: whose part it is; from: of a delta */
    struct ledger ledger[WORKERS_MAX];
    struct coverage coverage; /* of ps/0 */
    int64_t queue[OPEN_MAX];  /* [queue_count] likewise */
    int queue_count;
    bool goes_without[WORKERS_MAX]; /* whom the ps did not count on when it was made */
};

struct checkpoint {
    uint64_t step, tag;
    int count;
    bool is_published, is_abandoned;
    bool is_delta; /* of changes: nothing begins from it */
    bool is_bad;   /* it cannot be read */
    struct shard shards[HOMES_MAX];
};

struct folder {
    struct checkpoint *at; /* [CHECKPOINTS_MAX] */
    int count;
    int newest;               /* NOTHING: none was published */
    uint64_t owner;           /* incarnation of the worker that came to lead last: its token */
    uint64_t led;             /* times that somebody came to lead */
    uint64_t published_by;    /* which of them has published last */
    int published[HOMES_MAX]; /* nodes of what was published last, be it a delta */
};

/* ---- the world ---- */

struct run_options {
    uint64_t seed;
    enum defect defect;
    FILE *trace; /* NULL: no event log */
};

struct counters {
    int events, deliveries, saves, kills, cuts, generations, computed, starved, dropped, published,
        deltas;
    int moved;          /* tasks that go on in another membership */
    int stood_in, kept; /* homes that a worker reads at their followers; values not read again */
    int abandoned, evaluated, unfed, elected, fenced, departed;
    int owed;                   /* tickets that were asked for beyond the last step */
    int named, asked;           /* batches whose rows came with values; or were asked for */
    int revoked;                /* that were named, and others came in their place */
    int held, folded, unfolded; /* gradients that waited for a window, that went into a sum, sums */
};

struct memory { /* windows and stores live as long as the world: whoever maps them may look */
    struct memory *next;
    struct windows windows;
    int node;
};

struct world {
    struct run_options options;
    struct profile profile;
    bool has_liars; /* else nobody says what is out of range */
    int breaches;   /* that were told of */
    uint64_t now_us, draws, last_fault_us, disk_fails_until_us;
    uint64_t stands_until_us; /* all that lived when it began */
    uint64_t severed_until_us[PS_MAX][WORKERS_MAX];
    struct events events;
    struct link *links;
    int link_count;
    struct actor actors[ACTORS_MAX];
    struct nodes nodes;
    struct memory *memory;
    struct folder folder;
    struct torn_pushes torn[WORKERS_MAX]; /* that a chief heard of at the snapshot of that tag */
    uint64_t torn_tag;
    uint64_t saves; /* that were asked for, of a job that saves changes */
    struct counters counters;
    bool has_happened[FAULTS_MAX];
    int first_ended;                       /* actor; NOTHING while nobody has */
    uint64_t begun;                        /* the generation that was chosen last */
    uint64_t terms[PS_MAX], lives[PS_MAX]; /* of each ps, the highest term in that life */
    struct applied applied[WORKERS_MAX][APPLIED_KEPT];
    bool was_asked_to_leave; /* a worker; where too few would be left the job ends */
    bool asked[WORKERS_MAX]; /* which */
    bool is_to_stop;         /* somebody was told that the job is to end */
    uint64_t stop_us;        /* when */
    uint64_t finished_us[PS_MAX][WORKERS_MAX]; /* when a ps heard so last */
    uint64_t concluded_us; /* when a chief had nothing more to save and heard no more of it */
    bool came_too_late[WORKERS_MAX]; /* back after the last round */
    bool was_left_out[WORKERS_MAX];  /* a ps may have gone on without this worker */
    bool has_failed_to_write;
    uint64_t met_us; /* when a worker met a ps last */
    uint64_t without,
        was_without; /* ps, bit by bit, that the generation is done without, and any */
    uint64_t final_generation[PS_MAX]; /* whose final values came to the chief last */
    bool was_recomputed; /* a push was computed again from other values: the bits may differ */
    uint64_t log_hash;
    char blame[BLAME_MAX]; /* "" while all is well */
};

/* Runs a seed to its end; world_close() frees what it leaves. */
void world_run(struct world *, const struct run_options *);
void world_close(struct world *);

/* The parts of a run, for who says himself what happens next: tasks that are not started yet; an
 * event, taken from world->events or made up; a task's clock. */
void world_open(struct world *, const struct run_options *, const struct profile *);
void world_happen(struct world *, const struct event *);
void world_tick(struct world *, struct actor *);
void world_is_to_stop(struct world *);  /* from now on */
void world_check_roles(struct world *); /* each is in a state that can be; after every event */

uint64_t draw(struct world *, uint64_t below); /* below >= 1 */
bool chance(struct world *, int percent);
uint64_t soon(struct world *, uint64_t most_us); /* from 1 on; 0 where that is all it may be */
struct event *events_add(struct events *, const struct event *);
struct event events_take(struct events *, int index); /* 0: the next one */
struct event *actor_add(struct world *, struct actor *, enum event_kind, uint64_t after_us);
struct memory *world_map(struct world *);

/* A line of the event log. */
#define TRACE(world, ...)                                                                          \
    do {                                                                                           \
        if ((world)->options.trace) world_trace(world, __VA_ARGS__);                               \
    } while (0)
void world_trace(struct world *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What must not happen has happened; the first counts, and the run ends. */
void blame(struct world *, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *actor_name(const struct actor *); /* of static memory: eight at a time */
struct actor *ps_at(struct world *, int ps);
struct actor *worker_at(struct world *, int worker);
struct actor *peer_of(struct world *, const struct actor *, int index);
int peer_count(const struct world *, const struct actor *);

static inline const struct node *node_of(const struct world *world, int node)
{
    return &world->nodes.at[node];
}

/* actor.c */
void actor_start(struct world *, struct actor *);
void actor_kill(struct world *, struct actor *);
void actor_departed(struct world *, struct actor *); /* a life that has left the job */
void actors_sever(struct world *);
bool actor_awaits(const struct actor *, int peer); /* to answer the verdict */
bool actor_lingers(struct world *,
                   struct actor *); /* has_ended: as tasks_run() has it; later again */
void actor_flush(struct world *, struct actor *); /* carries out its outbox, as task_flush() */
void actor_resume(struct world *, struct actor *, enum action_type work);
void actor_work(struct world *, struct actor *, const struct action *, uint64_t most_us);
bool actor_is_at(const struct actor *, enum action_type work);
struct action actor_end_work(struct actor *, enum action_type); /* type SEND: it was not at it */
bool actor_is_busy(const struct world *, const struct actor *);
bool actor_is_running(const struct actor *);
bool actor_is_listening(const struct actor *); /* a ps that has ended tells who comes back */

/* In the middle of a work: actions that the role has added to `before`. */
void actor_act_since(struct world *, struct actor *, int before);

/* act_ps.c, act_worker.c: what differs between the jobs */
/* What the windows of workers that have none held is others' now. */
void ps_flushed(struct world *, struct actor *ps);
/* The message may be read into a window; false: it waits, until network_go_on(). */
bool ps_finds_window(struct world *, struct actor *ps, int worker, const struct message *);
void ps_act(struct world *, struct actor *, const struct action *);
void ps_end_work(struct world *, struct actor *, const struct action *);
void ps_written(struct world *, struct actor *);
void ps_dropped(struct world *, struct actor *, int worker); /* a push of it */
void ps_watch_peers(struct world *, struct actor *);
/* Part of what this worker pushed may have come to some ps only. */
bool worker_may_differ(struct world *, int worker);
uint64_t steps_more(struct world *, const struct actor *ps); /* than the last, at most */
int steps_apart(struct world *, const struct actor *ps);     /* from ps/0, at most */
void worker_watch_peers(struct world *, struct actor *);
void ps_forget(struct world *, struct actor *); /* its memory is lost */
void worker_act(struct world *, struct actor *, const struct action *);
void worker_end_work(struct world *, struct actor *, const struct action *);
void worker_folder_is_open(struct world *, struct actor *, int term);
void worker_died(struct world *, struct actor *);
void worker_part(struct world *, struct actor *, int ps); /* a piece is computed */
void worker_computes(struct world *, struct actor *); /* all that its step begins from is there */
/* 1 + the batch of the data that its push of this number is to be of; 0: it was not told. */
uint64_t worker_planned(const struct actor *, uint64_t number);
/* What is in front of piece `end` has changed while the worker computes. */
void worker_sees_change(struct world *, struct actor *, int ps, int first, int count);
void ps_sends(struct world *, struct actor *, int worker, struct parcel *);
void worker_sends(struct world *, struct actor *, int ps, struct parcel *);
void worker_says(struct world *, struct actor *, const struct message *); /* linked or not */
/* The stretch arrives, where it travels. false: the message is not for the role. */
bool ps_receives(struct world *, struct actor *, int worker, struct parcel *);
bool worker_receives(struct world *, struct actor *, int ps, struct parcel *);
void worker_is_shared(struct world *, struct actor *, int ps, const struct parcel *);
/* The windows of its link to the ps go with it. */
void worker_loses_windows(struct world *, struct actor *, int ps);

/* replicas.c of the simulation: two ps that hold the same */
bool are_held_twice(const struct world *);
int home_of(const struct world *, int ps);
int other_of(const struct world *, int ps); /* that holds the same; NOTHING: none does */
/* Where this worker has the values of a home from; and whether it has any from this ps. */
int source_of(const struct world *, const struct actor *worker, int home);
bool is_read(const struct world *, const struct actor *worker, int ps);
bool is_done_without(const struct world *, int ps); /* as ps/0 has said */
void replicas_note(struct world *);                 /* after every event */
void replicas_stand_in(struct world *, struct actor *worker, uint64_t gone);
void replicas_turn_to(struct world *, struct actor *worker); /* as a step begins */
/* A push to a ps that is not read leaves from its own window. */
void replicas_copy_push(struct world *, struct actor *worker, int ps, int first, int pieces);
void replicas_check_acknowledged(struct world *, const struct actor *worker, uint64_t pushes);
void replicas_check_same(struct world *, const struct actor *ps);
void replicas_check_choice(struct world *, const struct actor *chief);

/* rows.c */
void rows_before_values(struct world *, struct actor *ps, int worker, const struct message *);
void rows_before_push(struct world *, struct actor *worker, int ps, const struct message *);
void rows_heard_by_ps(struct world *, struct actor *, int worker, const struct parcel *);
void rows_heard_by_worker(struct world *, struct actor *, int ps, const struct parcel *);
void rows_check_applied(struct world *, const struct actor *ps, int worker,
                        const struct content *gradient);
void rows_check_told(struct world *, struct actor *ps, int worker, const struct message *);
void rows_hear_values(struct world *, struct actor *worker, int ps);
void rows_name_next(struct world *, struct actor *worker); /* with the step's, before they leave */
void rows_planned(struct world *, struct actor *worker);   /* its batches may be others now */
/* came: see struct view. wanted: struct actor */
bool rows_have_come(const struct world *, const struct actor *worker, uint64_t came);
void rows_take(struct world *, struct actor *worker, uint64_t wanted);
/* The work begins with that, and fails where it is over and still wants some. */
void rows_ask_all(struct world *, struct actor *worker, const struct action *work, uint64_t wanted);
void rows_evaluate(struct world *, struct actor *worker, const struct action *work,
                   uint64_t wanted);
void rows_evaluate_later(struct world *, struct actor *worker, const struct action *work);
void rows_evaluate_again(struct world *, struct actor *worker);

/* network.c */
/* NULL: what is sent to that peer does not arrive. */
struct link *network_link(struct world *, const struct actor *, int peer);
void network_send(struct world *, struct actor *, const struct action_send *);
struct parcel *network_post(struct world *, struct link *, enum direction, enum parcel_kind);
void network_connect(struct world *, struct actor *worker, int ps);
void network_deliver(struct world *, struct link *, enum direction);
void network_notice(struct world *, struct link *, enum direction end);
void network_cut(struct world *, struct link *);
void network_reset(struct world *, struct link *, enum direction end); /* this end gives it up */
void network_remake(struct world *, struct actor *worker, int ps);
void network_hang_up(struct world *, struct actor *ps,
                     int worker); /* whose role has forgotten it */
void network_stall(struct world *, struct link *, uint64_t for_us);
void network_leave(struct world *, struct actor *, bool is_orderly); /* closes its links */
void network_go_on(struct world *, struct actor *ps, int worker);
void network_free(struct world *);

/* disk.c */
void disk_lead(struct world *, struct actor *); /* this one may publish, and no other */
err disk_begin(struct world *, const struct action_begin *);
struct carried_shard { /* what travels where a ps and the chief share no folder */
    uint64_t tag, step;
    int number, count;
    struct shard shard;
};
err disk_write(struct world *, const struct carried_shard *);
int disk_oldest(const struct world *);
int disk_readable(const struct world *); /* the newest that is not bad; NOTHING: none */
const struct shard *disk_shard(const struct world *, int checkpoint, int home); /* NULL: none */
/* All shards are looked at. ERR_PEER: another chief has come to lead since. */
err disk_publish(struct world *, struct actor *chief, const struct action_publish *);
void disk_drop(struct world *, const struct actor *ps, uint64_t tag);
void disk_abandon(struct world *, const struct action_abandon *);

/* defects.c */
static inline bool is_broken(const struct world *world, enum defect defect)
{
    return world->options.defect == defect;
}
void defects_touch_parcel(struct world *, struct link *, enum direction, struct parcel *);
/* Before a message is handed to a role; false: it is lost. */
bool defects_touch_message(struct world *, struct actor *, struct message *);
void defects_lose_worker(struct world *, struct actor *ps, int worker);

/* faults.c */
void faults_begin(struct world *);
void faults_look(struct world *); /* after a delivery */
void faults_happen(struct world *, int fault);

/* checks.c */
void check_end(struct world *);
bool goes_without(const struct actor *ps, int worker); /* which it has evicted */
bool is_linked(struct world *, int ps, int worker);    /* as both ends have it */
void check_resize(struct world *, const struct actor *chief);
void check_publish(struct world *, const struct checkpoint *);
void check_save_end(struct world *, const struct actor *chief); /* published, or given up */
void check_first_end(struct world *, const struct actor *);
void check_departure(struct world *, struct actor *worker);
void check_patience(struct world *, const struct actor *, const char *text); /* what it says */
void check_refusal(struct world *, int worker);                              /* of ps/0, to leave */

#endif
