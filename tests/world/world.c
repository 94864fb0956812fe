/* world.c - runs seeds of whole clusters of the program.
 *
 *     world --seeds A..B [--jobs N]     says of all that go wrong why
 *     world --seed N [--trace]          one; --trace: what its tasks say, and what befell them
 *     --twice                           each is run two times, which must be the same, call by call
 *     --calm                            nothing befalls them
 *     --only KIND                       nothing but that; a wrong KIND is answered by their names
 *     --aim MESSAGE                     blows at messages of that kind, or "any"
 *     --visits                          commands are given meanwhile
 *     --sets                            the same, and all of them are `dtrain set`
 *     --found                           tasks find each other by a coordinator
 *     --only held --rows                what the two hold are rows of tables
 */
#include "tests/world/cluster.h"

#include "net/message.h"
#include "tests/world/coordinator.h"
#include "tests/world/files.h"
#include "tests/world/image.h"
#include "tests/world/network.h"
#include "tests/world/published.h"
#include "tests/world/store.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS_MOST = 64, IMAGES = TASKS_MOST + 1 + VISITS_MOST, SEED_CPU_S = 60, WHY_BYTES = 1024 };

struct order {
    uint64_t first, last;
    int jobs;
    bool is_traced, is_twice, is_calm;
    bool is_aimed, is_visited, sets, is_found, has_rows;
    int message; /* that is aimed at; 0: any */
    enum mishap_kind only;
};

/* What the process of a seed leaves to the one that started it. */
struct outcome {
    uint64_t hash, ns, calls, blows, passed, deltas;
    bool has_ended;
    char why[WHY_BYTES]; /* "": as it should be */
};

/* Of four seeds one aims at a message and nothing else, each kind in its turn, and one has mishaps
 * of one kind; without an order that says it. */
static void draw_plan(struct job_plan *plan, const struct order *order, uint64_t seed)
{
    const bool is_free = !order->is_aimed && order->only == MISHAP_KINDS;
    bool is_visited = order->is_visited || (is_free && seed / 4 % 4 == 1);
    bool is_aimed = order->is_aimed || (is_free && seed % 4 == 1);
    enum mishap_kind only = order->only;
    if (is_free && seed % 4 == 3) only = (enum mishap_kind)(seed / 4 % MISHAP_LACK);
    job_plan_draw(plan, only, order->is_found, order->has_rows);
    if (plan->is_alone) is_visited = is_aimed = false;    /* there are no ps, and no messages */
    if (is_visited) plan->training.is_held_twice = false; /* visitors change values */
    if (is_visited) visits_draw(plan, order->sets);
    if (!is_aimed) return;
    if (draw_below(2)) plan->mishap_count = 0;
    const int message = 1 + (int)(seed / 4 % (MESSAGE_TYPES - 1));
    blows_draw(plan->blows, &plan->blow_count, order->is_aimed ? order->message : message);
}

static void run_clusters(struct outcome *outcome, const struct order *order, uint64_t seed)
{
    struct job_plan plan;
    machine_start(seed);
    machine.is_traced = order->is_traced;
    files_start();
    draw_plan(&plan, order, seed);
    network_start();
    if (plan.is_url) store_start();
    if (plan.coordinator) coordinator_start();
    if (order->is_traced) job_plan_print(&plan, stderr);
    struct cluster undisturbed = {.plan = &plan, .folder = "calm", .is_calm = true};
    struct cluster disturbed = {.plan = &plan, .folder = "run", .is_calm = order->is_calm};
    /* what is left over of rounding is lost with a worker */
    const bool has_remainders = plan.training.wire && plan.model == MODEL_DIGITS;
    const bool is_compared = job_plan_is_steady(&plan) && !job_plan_asks(&plan) &&
                             !visits_resize(&plan) && !job_plan_lack(&plan) && !has_remainders;
    if (is_compared && !machine.failed) cluster_run(&undisturbed);
    if (!machine.failed) cluster_run(&disturbed);
    if (!machine.failed) cluster_check(&disturbed);
    if (is_compared && !machine.failed) cluster_compare(&disturbed, &undisturbed);
    if (machine.failed && order->is_traced) machine_show();
    outcome->hash = machine.hash;
    outcome->calls = machine.calls;
    outcome->ns = machine_ns();
    for (int i = 0; i < plan.blow_count; i++) outcome->blows += disturbed.blows[i].has_fallen;
    outcome->passed = network.passed;
    outcome->deltas = published_deltas();
    outcome->has_ended = true;
    if (machine.failed) snprintf(outcome->why, sizeof outcome->why, "%s", machine.failed);
}

/* In a process of its own: a seed begins with nothing of another one, and may crash. */
static void run_apart(struct outcome *outcome, const struct order *order, uint64_t seed)
{
    *outcome = (struct outcome){0};
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {SEED_CPU_S, SEED_CPU_S};
        setrlimit(RLIMIT_CPU, &limit);
        run_clusters(outcome, order, seed);
        _exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("world: cannot start a process");
        exit(EXIT_FAILURE);
    }
    if (!outcome->has_ended)
        snprintf(outcome->why, sizeof outcome->why, "the process of the seed ended: %s %d",
                 WIFSIGNALED(status) ? "signal" : "code",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static bool run_seed(struct outcome *outcomes, const struct order *order, uint64_t seed,
                     struct outcome *sum)
{
    run_apart(&outcomes[0], order, seed);
    if (order->is_twice) run_apart(&outcomes[1], order, seed);
    if (order->is_twice && outcomes[0].hash != outcomes[1].hash)
        snprintf(outcomes[0].why, WHY_BYTES, "two runs of it are not the same");
    sum->ns += outcomes[0].ns;
    sum->blows += outcomes[0].blows;
    sum->deltas += outcomes[0].deltas;
    if (order->first == order->last)
        printf("seed %" PRIu64 ": %.3f s, %" PRIu64 " calls, %" PRIu64 " passed, hash %016" PRIx64
               "\n",
               seed, (double)outcomes[0].ns / 1e9, outcomes[0].calls, outcomes[0].passed,
               outcomes[0].hash);
    if (!outcomes[0].why[0]) return true;
    printf("seed %" PRIu64 ": %s\n", seed, outcomes[0].why);
    fflush(stdout);
    return false;
}

static int run_share(const struct order *order, int job)
{
    struct outcome *outcomes =
        mmap(NULL, 2 * sizeof *outcomes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct outcome sum = {0};
    uint64_t failed = 0, count = 0;
    for (uint64_t seed = order->first + (uint64_t)job; seed <= order->last;
         seed += (uint64_t)order->jobs, count++)
        failed += !run_seed(outcomes, order, seed, &sum);
    printf("%" PRIu64 " seeds, %.0f s of clusters, %" PRIu64 " blows, %" PRIu64
           " deltas read, %" PRIu64 " wrong\n",
           count, (double)sum.ns / 1e9, sum.blows, sum.deltas, failed);
    fflush(stdout);
    return failed > 0;
}

static int run_jobs(const struct order *order)
{
    int failed = 0, status;
    for (int job = 1; job < order->jobs; job++)
        if (fork() == 0) _exit(run_share(order, job));
    failed = run_share(order, 0);
    for (int job = 1; job < order->jobs; job++)
        if (wait(&status) < 0 || status != 0) failed = 1;
    return failed;
}

/* ---- the command line ---- */

static bool read_order(int count, char **words, struct order *order)
{
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 's'},
        {"seed", required_argument, NULL, 's'},
        {"jobs", required_argument, NULL, 'j'},
        {"trace", no_argument, NULL, 't'},
        {"twice", no_argument, NULL, '2'},
        {"calm", no_argument, NULL, 'c'},
        {"only", required_argument, NULL, 'o'},
        {"aim", required_argument, NULL, 'a'},
        {"visits", no_argument, NULL, 'v'},
        {"sets", no_argument, NULL, 'S'},
        {"found", no_argument, NULL, 'f'},
        {"rows", no_argument, NULL, 'r'},
        {0},
    };
    *order = (struct order){.first = 1, .last = 1, .jobs = 1, .only = MISHAP_KINDS};
    for (int option; (option = getopt_long(count, words, "", options, NULL)) != -1;) {
        char *rest;
        if (option == 's') {
            order->first = order->last = strtoull(optarg, &rest, 10);
            if (strncmp(rest, "..", 2) == 0) order->last = strtoull(rest + 2, &rest, 10);
            if (*rest || order->last < order->first) return false;
        } else if (option == 'j') {
            order->jobs = atoi(optarg);
        } else if (option == 'o') {
            order->only = mishap_find(optarg);
            if (order->only == MISHAP_KINDS) return false;
        } else if (option == 'a') {
            order->is_aimed = true;
            order->message = blow_message(optarg);
            if (!order->message && strcmp(optarg, "any") != 0) return false;
        } else {
            order->is_traced |= option == 't';
            order->is_twice |= option == '2';
            order->is_calm |= option == 'c';
            order->is_visited |= option == 'v' || option == 'S';
            order->sets |= option == 'S';
            order->is_found |= option == 'f';
            order->has_rows |= option == 'r';
        }
        if (option == '?') return false;
    }
    return optind == count && order->jobs >= 1 && order->jobs <= JOBS_MOST;
}

/* Once more, with what libraries read before main(): one thread each, no clock of this place, and
 * memory where it always is. */
static void prepare(char **words)
{
    if (getenv("DTRAIN_ENVIRONMENT_PREPARED")) return;
    char *const environment[] = {"DTRAIN_ENVIRONMENT_PREPARED=1",
                                 "OPENBLAS_NUM_THREADS=1",
                                 "OMP_NUM_THREADS=1",
                                 "TZ=UTC0",
                                 "AWS_ENDPOINT_URL=" STORE_URL,
                                 "AWS_ACCESS_KEY_ID=who",
                                 "AWS_SECRET_ACCESS_KEY=secret",
                                 "AWS_REGION=here",
                                 "DTRAIN_URL_TIMEOUT=5",
                                 "PATH=/usr/bin:/bin",
                                 NULL};
    (void)personality(ADDR_NO_RANDOMIZE);
    execve("/proc/self/exe", words, environment);
}

static void print_usage(void)
{
    fprintf(stderr, "world --seeds A..B | --seed N, [--jobs N] [--trace] [--twice] [--calm] "
                    "[--only KIND] [--aim MESSAGE] [--visits] [--sets] [--found] [--rows]\nKIND:");
    for (int i = 0; i < MISHAP_KINDS; i++) fprintf(stderr, " %s", mishap_names[i]);
    fprintf(stderr, "\nMESSAGE: any, or its name in net/messages.def\n");
}

int main(int count, char **words)
{
    struct order order;
    char path[4096];
    prepare(words);
    if (!read_order(count, words, &order)) {
        print_usage();
        return 2;
    }
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    if (length < 0) return 1;
    path[length] = '\0';
    strcpy(strrchr(path, '/') + 1, "world_program.so");
    images_load(path, IMAGES);
    return run_jobs(&order);
}
