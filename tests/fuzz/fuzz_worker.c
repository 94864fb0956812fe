/* A worker, or the chief of a job, and the only ps that it has: one that welcomes it, serves it and
 * answers it as a byte of the input says, and says and writes anything else between. Whatever that
 * is, the worker ends within its limits.
 */
#include "core/base/log.h"
#include "core/cluster/runner/runner_worker_inside.h"
#include "tests/fuzz/job.h"

enum {
    EVENTS_MAX = 200,
    EVENTS_EACH = 4,
    PASSED_MAX_MS = 8,
    WAITED_MS = 20,
    TURNS_MAX = 20000,
    GENERATION = 77
};

struct scene {
    struct loop *loop;
    struct listener *listener;
    struct runner_worker *worker;
    struct peer_place place;
    struct peer_link ps;
    struct link_windows windows;
    struct view input;
    int events;
    bool is_over;
};

static bool is_input_left(const struct scene *s)
{
    return view_bytes(s->input) && s->events < EVENTS_MAX;
}

static void hang_up(struct scene *s)
{
    if (s->ps.link) link_close(s->ps.link);
    s->ps.link = NULL;
}

static void on_accepted(void *context, struct link *link)
{
    struct scene *s = context;
    hang_up(s);
    s->ps.link = link;
    if (s->is_over) hang_up(s);
}

/* Rows are waited for amid a step: nothing else happens before they come. */
static void on_message(void *context, struct link *link, const struct message *m)
{
    struct scene *s = context;
    (void)link;
    peer_note(&s->ps, m);
    if (m->type != MESSAGE_ROWS || !is_input_left(s)) return;
    s->events++;
    peer_say(&s->ps, &s->place, &s->input);
}

static void on_closed(void *context, struct link *link, err why)
{
    struct scene *s = context;
    (void)why;
    if (s->ps.link == link) s->ps.link = NULL;
}

static const struct link_events events = {
    .accepted = on_accepted, .message = on_message, .closed = on_closed};

static void say(struct scene *s, struct message m)
{
    m.job = JOB_PS;
    m.generation = GENERATION;
    if (s->ps.link) (void)link_send(s->ps.link, &m);
}

static void serve(struct scene *s)
{
    say(s, (struct message){.type = MESSAGE_LEADS});
    say(s, (struct message){.type = MESSAGE_STATE,
                            .state = {.state = PS_SERVING, .last_step = JOB_LAST_STEP}});
}

static void answer(struct scene *s)
{
    const struct peer_heard *heard = &s->ps.heard;
    struct ledger ledger = {0};
    const struct link_windows *w = &s->windows;
    if (!s->ps.link || !s->ps.link->shared.is_there) return;
    say(s, (struct message){
               .type = MESSAGE_LEDGER,
               .ledger = {.push = heard->push, .step = heard->step, .join = heard->number},
               .body = &ledger,
               .body_bytes = sizeof ledger});
    say(s, (struct message){.type = MESSAGE_VALUES,
                            .length = w->values.bytes,
                            .values = {VALUES_TICKET, heard->push, ++s->ps.heard.step}});
}

static void happen(struct scene *s)
{
    switch (fuzz_byte(&s->input) % 16) {
    case 0:
        if (s->ps.link) peer_greet(&s->ps, &s->place, MESSAGE_WELCOME);
        break;
    case 1:
        hang_up(s);
        break;
    case 2:
        serve(s);
        break;
    case 3:
        if (s->ps.link) (void)link_share(s->ps.link, &s->windows);
        break;
    case 4:
        peer_scribble(&s->ps, &s->input);
        break;
    case 5:
        peer_pass(fuzz_byte(&s->input) % PASSED_MAX_MS);
        break;
    case 6:
    case 7:
        answer(s);
        break;
    default:
        if (s->ps.link) peer_say(&s->ps, &s->place, &s->input);
    }
}

static void drive(void *context, int turn)
{
    struct scene *s = context;
    (void)turn;
    for (int i = 0; i < EVENTS_EACH && is_input_left(s); i++) {
        s->events++;
        happen(s);
    }
    if (is_input_left(s)) return;
    peer_pass(WAITED_MS);
    s->is_over = true;
    hang_up(s);
}

static struct window window_of(size_t bytes)
{
    struct window w = {0};
    if (bytes) fuzz_holds(window_new(bytes, &w) == OK, "a window can be had");
    return w;
}

static void run(struct scene *s)
{
    struct task *const tasks[] = {runner_worker_task(s->worker)};
    struct job_turns turns = {.drive = drive, .context = s, .most = TURNS_MAX};
    const size_t block = runner_worker_block_bytes(s->worker, 0);
    s->windows = (struct link_windows){window_of(block), window_of(block),
                                       window_of(rows_window_bytes(&s->worker->session.rows, 0))};
    job_run(&turns, tasks, 1);
    fuzz_went_well(runner_worker_end(s->worker));
    runner_worker_close(s->worker);
    window_free(&s->windows.values);
    window_free(&s->windows.gradients);
    window_free(&s->windows.rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct scene s = {.input = {bytes, bytes + count}, .place = job_place(JOB_PS, 0)};
    const uint8_t kind = fuzz_byte(&s.input);
    struct spec *spec = job_spec(kind);
    const struct cluster_spec cluster = job_cluster(JOB_WORKER, kind / 4 % JOB_WORKERS);
    log_set_level(LOG_ERROR);
    fuzz_holds(loop_open(&s.loop) == OK, "a loop can be had");
    fuzz_holds(transport_inproc.listen(s.loop, "ps:1", &events, &s, NULL, &s.listener) == OK,
               "it can be listened");
    const struct runner_worker_options options = {
        .task = job_options(&cluster, s.loop, spec), .spec = spec, .device = job_device()};
    fuzz_holds(runner_worker_open(&options, &s.worker) == OK, "a worker begins");
    run(&s);
    listener_close(s.listener);
    loop_close(s.loop);
    return 0;
}
