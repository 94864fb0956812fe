/* simulate.c - runs seeds.
 *
 *     simulate --seeds A..B [--jobs N] [--defect NAME]   stops at the first seed that goes wrong
 *     simulate --seeds A..B --all                        says of all that go wrong why
 *     simulate --seed N [--trace] [--defect NAME]        one seed; --trace prints its event log
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/simulate/world.h"

enum { JOBS_MAX = 64, LAST_LINES = 120 };

struct order {
    uint64_t first, last; /* seeds */
    int jobs;
    enum defect defect;
    bool is_traced, says_all;
};

static bool read_number(const char *text, char end, uint64_t *ret, const char **ret_rest)
{
    char *rest;
    errno = 0;
    *ret = strtoull(text, &rest, 10);
    *ret_rest = rest;
    return !errno && rest != text && *rest == end;
}

static bool read_seeds(const char *text, struct order *order)
{
    const char *rest;
    if (!read_number(text, '.', &order->first, &rest) || strncmp(rest, "..", 2) != 0) return false;
    return read_number(rest + 2, '\0', &order->last, &rest) && order->last >= order->first;
}

static bool read_option(int option, const char *text, struct order *order)
{
    const char *rest;
    uint64_t number;
    switch (option) {
    case 's':
        return read_seeds(text, order);
    case 'o':
        if (!read_number(text, '\0', &order->first, &rest)) return false;
        order->last = order->first;
        return true;
    case 'j':
        if (!read_number(text, '\0', &number, &rest) || number < 1 || number > JOBS_MAX)
            return false;
        order->jobs = (int)number;
        return true;
    case 'd':
        order->defect = defect_find(text);
        return order->defect != DEFECTS;
    case 't':
        order->is_traced = true;
        return true;
    case 'a':
        order->says_all = true;
        return true;
    default:
        return false;
    }
}

static bool read_order(int count, char **words, struct order *order)
{
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 's'},
        {"seed", required_argument, NULL, 'o'},
        {"jobs", required_argument, NULL, 'j'},
        {"defect", required_argument, NULL, 'd'},
        {"trace", no_argument, NULL, 't'},
        {"all", no_argument, NULL, 'a'},
        {0},
    };
    *order = (struct order){.first = 1, .last = 1, .jobs = 1};
    for (int option; (option = getopt_long(count, words, "", options, NULL)) != -1;)
        if (!read_option(option, optarg, order)) return false;
    return optind == count;
}

/* The event log of a seed; of a long one the last part. */
static void print_log(const struct run_options *options, bool is_whole)
{
    char *text = NULL;
    size_t size = 0;
    struct run_options traced = *options;
    traced.trace = open_memstream(&text, &size);
    if (!traced.trace) return;
    static struct world world;
    world_run(&world, &traced);
    world_close(&world);
    fclose(traced.trace);
    const char *from = text + size;
    for (int lines = 0; from > text && (is_whole || lines <= LAST_LINES);) lines += *--from == '\n';
    printf("%s", from);
    free(text);
}

static bool run_seed(uint64_t seed, const struct order *order)
{
    static struct world world;
    const struct run_options options = {
        .seed = seed,
        .defect = order->defect,
    };
    world_run(&world, &options);
    world_close(&world);
    bool is_good = !world.blame[0];
    if (order->is_traced || (!is_good && !order->says_all)) print_log(&options, order->is_traced);
    if (is_good) return true;
    printf("seed %llu: %s\n", (unsigned long long)seed, world.blame);
    if (order->says_all) return false;
    printf("again: simulate --seed %llu --trace%s%s\n", (unsigned long long)seed,
           order->defect ? " --defect " : "", order->defect ? defect_name(order->defect) : "");
    fflush(stdout);
    return false;
}

/* Every jobs-th seed, from the job's own on. */
static int run_share(const struct order *order, int job)
{
    bool all_good = true;
    for (uint64_t seed = order->first + (uint64_t)job;
         seed <= order->last && (all_good || order->says_all); seed += (uint64_t)order->jobs)
        all_good = run_seed(seed, order) && all_good;
    return !all_good;
}

static int run_jobs(const struct order *order)
{
    fflush(stdout);
    for (int job = 1; job < order->jobs; job++) {
        pid_t child = fork();
        if (child < 0) {
            fprintf(stderr, "simulate: fork: %s\n", strerror(errno));
            return 1;
        }
        if (child == 0) exit(run_share(order, job));
    }
    int failed = run_share(order, 0), status;
    for (int job = 1; job < order->jobs; job++)
        if (wait(&status) < 0 || status != 0) failed = 1;
    return failed;
}

int main(int count, char **words)
{
    struct order order;
    if (!read_order(count, words, &order)) {
        fprintf(stderr, "simulate --seeds A..B | --seed N, [--jobs N] [--trace] [--all] "
                        "[--defect NAME]\n");
        return 2;
    }
    return run_jobs(&order);
}
