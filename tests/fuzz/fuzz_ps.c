/* A ps and the chief of a job, and beside them peers that have their way in each turn: strangers,
 * visitors, and who has greeted as worker/1. A byte says what happens next, and by whom. Whatever
 * it is, the chief trains to the end, in turns that do not depend on how much is said.
 */
#include "core/base/log.h"
#include "core/cluster/runner/runner_ps.h"
#include "core/cluster/runner/runner_worker_inside.h"
#include "core/cluster/role/verdict.h"
#include "tests/fuzz/job.h"

enum {
    PEERS = 3,
    EVENTS_MAX = 200,
    EVENTS_EACH = 4,
    PASSED_MAX_MS = 8,
    WAITED_MS = 20,
    TURNS_MAX = 20000
};

struct scene {
    struct loop *loop;
    struct runner_worker *chief;
    struct peer_place place;
    struct peer_link peers[PEERS];
    struct view input;
    int events;
};

static void on_opened(void *context, struct link *link)
{
    (void)context;
    (void)link;
}

static void on_message(void *context, struct link *link, const struct message *m)
{
    (void)link;
    peer_note(context, m);
}

static void on_closed(void *context, struct link *link, err why)
{
    (void)link;
    (void)why;
    ((struct peer_link *)context)->link = NULL;
}

static const struct link_events events = {
    .opened = on_opened, .message = on_message, .closed = on_closed};

static void hang_up(struct peer_link *peer)
{
    if (peer->link) link_close(peer->link);
    peer->link = NULL;
}

static void connect_peer(struct scene *s, struct peer_link *peer)
{
    const struct window block = {.bytes = runner_worker_block_bytes(s->chief, 0)};
    const struct window rows = {.bytes = rows_window_bytes(&s->chief->session.rows, 0)};
    hang_up(peer);
    if (transport_inproc.connect(s->loop, "ps:1", &events, peer, &peer->link)) return;
    link_expect(peer->link, &(struct link_windows){block, block, rows});
}

/* As a worker would: greets, and asks for values. */
static void join(struct scene *s, struct peer_link *peer)
{
    const struct message joins = {.type = MESSAGE_JOIN,
                                  .task = (uint32_t)s->place.task,
                                  .job = JOB_WORKER,
                                  .generation = peer->heard.generation,
                                  .join = {.push = peer->heard.push, .number = 1}};
    if (peer->link && peer->link->state == LINK_OPEN && !peer->link->shared.is_there)
        (void)link_send(peer->link, &joins);
}

static void happen(struct scene *s)
{
    const uint8_t what = fuzz_byte(&s->input);
    struct peer_link *peer = &s->peers[what / 16 % PEERS];
    switch (what % 16) {
    case 0:
        connect_peer(s, peer);
        break;
    case 1:
        hang_up(peer);
        break;
    case 2:
        if (peer->link) peer_greet(peer, &s->place, MESSAGE_HELLO);
        break;
    case 3:
        join(s, peer);
        break;
    case 4:
        peer_scribble(peer, &s->input);
        break;
    case 5:
        peer_pass(fuzz_byte(&s->input) % PASSED_MAX_MS);
        break;
    default:
        if (peer->link) peer_say(peer, &s->place, &s->input);
    }
}

static void drive(void *context, int turn)
{
    struct scene *s = context;
    (void)turn;
    for (int i = 0; i < EVENTS_EACH && view_bytes(s->input) && s->events < EVENTS_MAX; i++) {
        s->events++;
        happen(s);
    }
    if (view_bytes(s->input) && s->events < EVENTS_MAX) return;
    peer_pass(WAITED_MS);
    for (int i = 0; i < PEERS; i++) hang_up(&s->peers[i]);
}

static void run(struct scene *s, struct runner_ps *ps)
{
    struct task *const tasks[] = {runner_ps_task(ps), runner_worker_task(s->chief)};
    struct job_turns turns = {.drive = drive, .context = s, .most = TURNS_MAX};
    job_run(&turns, tasks, 2);
    bool may_end = false;
    for (int i = 0; i < PEERS; i++) may_end |= s->peers[i].may_end;
    const int code = tasks[1]->code;
    fuzz_holds(may_end || code == EXIT_DONE || code == EXIT_NUMBER, tasks[1]->text);
    fuzz_went_well(runner_worker_end(s->chief));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct scene s = {.input = {bytes, bytes + count}, .place = job_place(JOB_WORKER, 1)};
    struct spec *spec = job_spec(fuzz_byte(&s.input));
    const struct cluster_spec ps_cluster = job_cluster(JOB_PS, 0);
    const struct cluster_spec chief_cluster = job_cluster(JOB_WORKER, 0);
    struct runner_ps *ps = NULL;
    log_set_level(LOG_ERROR);
    fuzz_holds(loop_open(&s.loop) == OK, "a loop can be had");
    const struct task_options ps_options = job_options(&ps_cluster, s.loop, spec);
    const struct runner_worker_options chief_options = {
        .task = job_options(&chief_cluster, s.loop, spec), .spec = spec, .device = job_device()};
    fuzz_holds(runner_ps_open(&ps_options, job_device(), &ps) == OK, "a ps begins");
    fuzz_holds(runner_worker_open(&chief_options, &s.chief) == OK, error_text());
    run(&s, ps);
    for (int i = 0; i < PEERS; i++) hang_up(&s.peers[i]);
    runner_worker_close(s.chief);
    runner_ps_close(ps);
    loop_close(s.loop);
    return 0;
}
