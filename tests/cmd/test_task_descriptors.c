/* test_task_descriptors.c - the limit on open files, as a task finds and leaves it. */
#include "core/base/error.h" /* before cmocka, which has a macro of the name fail */
#include "cmd/run/descriptors.h"
#include "net/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct cluster_spec cluster_of(enum job job, int ps, int workers)
{
    struct cluster_spec cluster = {.job = job};
    cluster.hosts[JOB_PS].count = ps;
    cluster.hosts[JOB_WORKER].count = workers;
    return cluster;
}

/* In a process of its own, whose hard limit can be lowered: the soft limit afterwards, and how many
 * bytes it said about it. */
static rlim_t raise_from(rlim_t soft, rlim_t hard, const struct cluster_spec *cluster,
                         size_t *ret_said)
{
    int ends[2];
    char said[1024];
    struct rlimit after = {0};
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {soft, hard};
        dup2(ends[1], STDERR_FILENO);
        if (setrlimit(RLIMIT_NOFILE, &limit)) _exit(1);
        task_descriptors_raise(cluster);
        getrlimit(RLIMIT_NOFILE, &after);
        if (write(ends[1], &after, sizeof after) < 0) _exit(1);
        _exit(0);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t more; got < sizeof said; got += (size_t)more)
        if ((more = read(ends[0], said + got, sizeof said - got)) <= 0) break;
    close(ends[0]);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(got >= sizeof after);
    memcpy(&after, said + got - sizeof after, sizeof after);
    *ret_said = got - sizeof after;
    return after.rlim_cur;
}

static void the_soft_limit_is_raised_as_far_as_the_loop_watches(void **state)
{
    const struct cluster_spec cluster = cluster_of(JOB_PS, 1, 2);
    struct rlimit own;
    size_t said = 1;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &own), 0);
    const rlim_t hard = own.rlim_max;
    const rlim_t most = hard < LOOP_WATCH_MAX ? hard : LOOP_WATCH_MAX;
    assert_int_equal(raise_from(100, hard, &cluster, &said), most);
    assert_int_equal(raise_from(100, 200, &cluster, &said), 200);
    assert_int_equal(raise_from(hard, hard, &cluster, &said), hard);
    assert_int_equal(said, 0);
}

static void too_low_a_limit_is_told(void **state)
{
    const struct cluster_spec ps = cluster_of(JOB_PS, 1, 40),
                              worker = cluster_of(JOB_WORKER, 40, 1);
    const rlim_t needed_ps = (rlim_t)task_descriptors_needed(&ps);
    const rlim_t needed_worker = (rlim_t)task_descriptors_needed(&worker);
    size_t said = 0;
    raise_from(32, needed_ps - 1, &ps, &said);
    assert_true(said > 0);
    raise_from(32, needed_ps, &ps, &said);
    assert_int_equal(said, 0);
    raise_from(32, needed_worker - 1, &worker, &said);
    assert_true(said > 0);
    raise_from(32, needed_worker, &worker, &said);
    assert_int_equal(said, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_soft_limit_is_raised_as_far_as_the_loop_watches),
        cmocka_unit_test(too_low_a_limit_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
