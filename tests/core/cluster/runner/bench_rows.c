/* bench_rows.c - rows of tables pulled and pushed over TCP, beside bare sockets that move the same
 * bytes in the same run: a worker and two ps, as they are, 26 ids in each of 1024 examples.
 *
 * Of a step counts what is left without the data and the model: gradients into the windows, the
 * push, the update, the answer, and rows out of the windows. Ids are looked up elsewhere. What each
 * ps spends on its table, updating and gathering, is told beside it and is in the sum. The bare
 * client writes to both servers what the worker sends to the ps, and reads from them what comes
 * back; they read all before they answer. Both are measured in turns.
 *
 * usage: bench_rows [THOUSAND_ROWS [OPTIMIZER [ROUNDS]]], else 100, gradient_descent, 15
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cluster/runner/runner_ps.h"
#include "core/cluster/runner/runner_worker.h"
#include "core/train/session/session.h"
#include "core/train/variables/table.h"
#include "net/address.h"

enum {
    PS = 2,
    IDS = 26,
    BATCH = 1024,
    WIDTH = 16,
    WARM_UP = 40, /* steps */
    EACH = 40,    /* of a round */
    ROUNDS_MAX = 1000,
    SPEC_MAX = 16384,
    LIMIT_MS = 60000,
    LIFE_S = 600, /* of a server, at most */
    AREA_BYTES = IDS * BATCH * (WIDTH * sizeof(float) + 2 * sizeof(int64_t)) + (1 << 16),
};
static const double GOAL = 1.5;

static void must(err e)
{
    if (e == OK) return;
    fprintf(stderr, "bench_rows: %s\n", error_text());
    exit(1);
}

static void must_call(bool has_worked, const char *what)
{
    if (!has_worked) must(fail(ERR_IO, "%s fails", what));
}

/* Ends with this process, and by itself if that does not help. */
static pid_t fork_server(void)
{
    const pid_t parent = getpid(), child = fork();
    must_call(child >= 0, "fork");
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(LIFE_S);
    if (getppid() != parent) _exit(1);
    return 0;
}

/* ---- bare sockets ---- */

struct bare {
    int fd;
    pid_t server;
    char *sent, *answered; /* each its own memory, as windows are */
};

static void send_all(int fd, const char *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t step = send(fd, bytes + done, size - done, MSG_NOSIGNAL);
        must_call(step > 0, "a bare socket");
        done += (size_t)step;
    }
}

static void receive_all(int fd, char *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t step = recv(fd, bytes + done, size - done, 0);
        if (step == 0) _exit(0);
        must_call(step > 0, "a bare socket");
        done += (size_t)step;
    }
}

struct bare_sizes { /* in front of what the client sends */
    size_t sent, answered;
};

static void serve_bare(int fd, const struct bare *bare)
{
    while (true) {
        struct bare_sizes sizes;
        receive_all(fd, (char *)&sizes, sizeof sizes);
        receive_all(fd, bare->sent, sizes.sent);
        send_all(fd, bare->answered, sizes.answered);
    }
}

static void tune(int fd)
{
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

static void start_bare(struct bare *client)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    client->fd = socket(AF_INET, SOCK_STREAM, 0);
    client->sent = calloc(2, AREA_BYTES);
    client->answered = client->sent + AREA_BYTES;
    memset(client->sent, 1, 2 * (size_t)AREA_BYTES);
    must_call(!bind(listening, (struct sockaddr *)&at, size), "bind");
    must_call(!listen(listening, 1), "listen");
    must_call(!getsockname(listening, (struct sockaddr *)&at, &size), "getsockname");
    must_call(!connect(client->fd, (struct sockaddr *)&at, size), "connect");
    const int served = accept(listening, NULL, NULL);
    tune(client->fd);
    tune(served);
    client->server = fork_server();
    if (client->server == 0) {
        close(client->fd);
        serve_bare(served, client);
    }
    close(served);
    close(listening);
}

/* ---- what is measured ---- */

struct bench {
    int thousand_rows, rounds;
    const char *optimizer;
    char address[PS][ADDRESS_MAX];
    int listening[PS];
    struct bare bare[PS];
    pid_t servers[PS];
    int steps, round;
    double exchange_s[EACH], put_s[EACH], fetch_s[EACH];
    double bare_s[EACH], ratios[ROUNDS_MAX];
    double sums[4]; /* of medians: bare, exchange, put, fetch */
    size_t moved;
};
static struct bench bench;
static double put_s, fetch_s; /* of the step that is under way */

/* Of a ps, in memory that all see */
struct spent {
    double table_s;
    int updates;
};
static struct spent *spent; /* [PS] */
static int own;             /* which ps this process is */

#define WRAP(type, name, ...)                                                                      \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__);
WRAP(void, rows_put, struct rows *)
WRAP(err, rows_fetch, struct rows *, const struct graph *, const struct prepared *)
WRAP(void, table_gather, struct table *, const int64_t *, int64_t, float *)
WRAP(err, table_apply, struct table *, const int64_t *, int64_t, const float *, const int64_t *,
     const struct juncture *)

static double seconds_since(uint64_t begin_ns)
{
    return (double)(clock_ns() - begin_ns) * 1e-9;
}

void __wrap_rows_put(struct rows *rows)
{
    const uint64_t begin_ns = clock_ns();
    __real_rows_put(rows);
    put_s = seconds_since(begin_ns);
}

err __wrap_rows_fetch(struct rows *rows, const struct graph *graph, const struct prepared *batch)
{
    const uint64_t begin_ns = clock_ns();
    const err e = __real_rows_fetch(rows, graph, batch);
    fetch_s = seconds_since(begin_ns);
    return e;
}

void __wrap_table_gather(struct table *t, const int64_t *rows, int64_t count, float *ret)
{
    const uint64_t begin_ns = clock_ns();
    __real_table_gather(t, rows, count, ret);
    spent[own].table_s += seconds_since(begin_ns);
}

err __wrap_table_apply(struct table *t, const int64_t *rows, int64_t count, const float *gradients,
                       const int64_t *times, const struct juncture *now)
{
    const uint64_t begin_ns = clock_ns();
    const err e = __real_table_apply(t, rows, count, gradients, times, now);
    spent[own].table_s += seconds_since(begin_ns);
    spent[own].updates++;
    return e;
}

static struct bare_sizes sizes_of(const struct session *s, int ps)
{
    const struct rows_link *link = &s->rows.links[ps];
    const size_t block = (size_t)s->layout->block_floats[ps] * sizeof(float);
    return (struct bare_sizes){
        .sent = rows_push_bytes(link) + block,
        .answered = (size_t)link->counts.wanted_floats * sizeof(float) + block,
    };
}

static double exchange_bare(const struct session *s)
{
    const uint64_t begin_ns = clock_ns();
    for (int ps = 0; ps < PS; ps++) {
        const struct bare_sizes sizes = sizes_of(s, ps);
        send_all(bench.bare[ps].fd, (const char *)&sizes, sizeof sizes);
        send_all(bench.bare[ps].fd, bench.bare[ps].sent, sizes.sent);
    }
    for (int ps = 0; ps < PS; ps++)
        receive_all(bench.bare[ps].fd, bench.bare[ps].answered, sizes_of(s, ps).answered);
    return seconds_since(begin_ns);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *numbers, int count)
{
    qsort(numbers, (size_t)count, sizeof *numbers, by_size);
    return numbers[count / 2];
}

static void end_round(const struct session *s)
{
    for (int i = 0; i < EACH; i++) bench.bare_s[i] = exchange_bare(s);
    const double parts[] = {median(bench.bare_s, EACH), median(bench.exchange_s, EACH),
                            median(bench.put_s, EACH), median(bench.fetch_s, EACH)};
    for (int i = 0; i < 4; i++) bench.sums[i] += parts[i];
    bench.ratios[bench.round++] = (parts[1] + parts[2] + parts[3]) / parts[0];
    for (int ps = 0; ps < PS; ps++) {
        const struct bare_sizes sizes = sizes_of(s, ps);
        bench.moved += sizes.sent + sizes.answered;
    }
}

/* Before a step: of the one before it the answers have come. */
static err before_step(void *state, const struct run_view *view, const struct occasion *o)
{
    const int at = bench.steps++ - WARM_UP;
    if (at < 0) memset(spent, 0, PS * sizeof *spent); /* rows were made */
    if (at < 0 || bench.round == bench.rounds) return OK;
    const int i = at % EACH;
    bench.exchange_s[i] = view->push_seconds;
    bench.put_s[i] = put_s;
    bench.fetch_s[i] = fetch_s;
    if (i == EACH - 1) end_round(view->session);
    if (bench.round == bench.rounds) view->asks->stop(view->asker, OK, "all is measured");
    return OK;
}

static const struct hook meter = {.on = {[OCCASION_BEFORE] = before_step}};

/* ---- the cluster ---- */

/* Adds to the text. */
#define ADD(...) (used += (size_t)snprintf(text + used, SPEC_MAX - used, __VA_ARGS__))

static void write_spec(char text[SPEC_MAX])
{
    size_t used = 0;
    const int buckets = bench.thousand_rows * 1000;
    ADD("{\"data\": {\"train\": {\"format\": \"clicks\", \"rows\": 65536, \"buckets\": %d, "
        "\"skew\": 0}, \"batch_size\": %d, \"shuffle\": false, \"columns\": [",
        buckets, BATCH);
    for (int i = 1; i <= IDS; i++)
        ADD("%s{\"column\": \"identity\", \"name\": \"c%d\", \"buckets\": %d}", i > 1 ? ", " : "",
            i, buckets);
    ADD("]}, \"model\": [");
    for (int i = 1; i <= IDS; i++)
        ADD("{\"op\": \"embedding\", \"name\": \"e%d\", \"inputs\": [\"c%d\"], \"dimension\": "
            "%d%s}, ",
            i, i, WIDTH, i > 1 ? ", \"table\": \"e1\"" : "");
    ADD("{\"op\": \"concat\", \"name\": \"all\", \"inputs\": [");
    for (int i = 1; i <= IDS; i++) ADD("%s\"e%d\"", i > 1 ? ", " : "", i);
    ADD("]}, {\"op\": \"dense\", \"name\": \"logits\", \"units\": 1}], \"loss\": "
        "\"sigmoid_cross_entropy\", \"optimizer\": {\"type\": \"%s\", \"learning_rate\": 0.001}, "
        "\"train\": {\"mode\": \"async\", \"last_step\": 1000000000, \"log_every_steps\": "
        "1000000000, \"save_summaries_steps\": 0}}",
        bench.optimizer);
}

static void load_spec(struct spec *ret)
{
    char text[SPEC_MAX], path[] = "/tmp/bench-rows-XXXXXX";
    const struct spec_options options = {.path = path, .seed = -1};
    const int fd = mkstemp(path);
    write_spec(text);
    must_call(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "a spec in /tmp");
    close(fd);
    const err e = spec_load(&options, ret);
    unlink(path);
    must(e);
}

#define EACH_LIMIT(...) LIMIT_MS

/* Runs one task to its end. job PS: in a process of its own */
static void run_task(enum job job, int index, struct spec *spec)
{
    static const char worker[] = "127.0.0.1:1"; /* nobody calls it */
    const char *ps_hosts[PS], *worker_hosts[] = {worker};
    char listen[ADDRESS_MAX];
    for (int ps = 0; ps < PS; ps++) ps_hosts[ps] = bench.address[ps];
    const struct cluster_spec cluster = {
        .job = job,
        .task = index,
        .is_distributed = true,
        .hosts = {[JOB_PS] = {ps_hosts, PS}, [JOB_WORKER] = {worker_hosts, 1}},
    };
    struct device device;
    snprintf(listen, sizeof listen, "fd:%d", bench.listening[index]);
    struct runner_worker_options options = {
        .task = {.cluster = &cluster,
                 .listen = job == JOB_PS ? listen : NULL,
                 .transport = &transport_tcp,
                 .limits = {WAIT_LIMITS(EACH_LIMIT)},
                 .fingerprint = job == JOB_WORKER ? spec->fingerprint : NULL},
        .spec = spec,
        .device = &device,
        .own_hook = {&meter, &bench},
    };
    must(device_open_cpu(1, NULL, &device));
    must(loop_open(&options.task.loop));
    struct runner_ps *ps = NULL;
    struct runner_worker *task = NULL;
    must(job == JOB_PS ? runner_ps_open(&options.task, &device, &ps)
                       : runner_worker_open(&options, &task));
    struct task *tasks[] = {job == JOB_PS ? runner_ps_task(ps) : runner_worker_task(task)};
    must(tasks_run(tasks, 1));
    if (tasks[0]->code) fprintf(stderr, "bench_rows: %s\n", tasks[0]->text);
    runner_ps_close(ps);
    runner_worker_close(task);
    loop_close(options.task.loop);
    device_close(&device);
}

static void report(void)
{
    const double rounds = bench.round, mib = (double)bench.moved / rounds / (1 << 20);
    const double ratio = median(bench.ratios, bench.round);
    printf("%d k rows, %s: %.2f MiB a step; bare %.3f ms; exchange %.3f ms, into windows %.3f ms, "
           "out of them %.3f ms (on a ps its table %.3f ms): %.2f x  %s\n",
           bench.thousand_rows, bench.optimizer, mib, bench.sums[0] / rounds * 1e3,
           bench.sums[1] / rounds * 1e3, bench.sums[2] / rounds * 1e3, bench.sums[3] / rounds * 1e3,
           spent[0].table_s / spent[0].updates * 1e3, ratio, ratio <= GOAL ? "ok" : "NOT");
}

int main(int argc, char **argv)
{
    struct spec spec;
    cpu_environment_prepare(argv);
    log_set_level(LOG_WARNING);
    bench = (struct bench){
        .thousand_rows = argc > 1 ? atoi(argv[1]) : 100,
        .optimizer = argc > 2 ? argv[2] : "gradient_descent",
        .rounds = argc > 3 ? atoi(argv[3]) : 15,
    };
    must_call(bench.rounds > 0 && bench.rounds <= ROUNDS_MAX, "a number of rounds");
    spent =
        mmap(NULL, PS * sizeof *spent, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must_call(spent != MAP_FAILED, "mmap");
    load_spec(&spec);
    for (int ps = 0; ps < PS; ps++)
        must(address_reserve("127.0.0.1:0", bench.address[ps], &bench.listening[ps]));
    for (int ps = 0; ps < PS; ps++) {
        start_bare(&bench.bare[ps]);
        bench.servers[ps] = fork_server();
        if (bench.servers[ps] == 0) {
            own = ps;
            run_task(JOB_PS, ps, NULL);
            _exit(0);
        }
    }
    run_task(JOB_WORKER, 0, &spec);
    report();
    for (int ps = 0; ps < PS; ps++) {
        close(bench.bare[ps].fd);
        kill(bench.bare[ps].server, SIGKILL);
        waitpid(bench.bare[ps].server, NULL, 0);
        waitpid(bench.servers[ps], NULL, 0);
        free(bench.bare[ps].sent);
    }
    spec_free(&spec);
    return 0;
}
