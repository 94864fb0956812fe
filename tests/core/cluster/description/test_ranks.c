/* What srun and other launchers say in the environment, as a cluster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cluster/description/slurm.h"

#include <cmocka.h> /* after error.h: it has a macro named fail */

enum { VARIABLES = 10, TEXT_MAX = 512 };

/* "NAME=value" */
static const char *const *environment;

static const char *variable(const char *name)
{
    const size_t length = strlen(name);
    for (int i = 0; i < VARIABLES && environment[i]; i++)
        if (strncmp(environment[i], name, length) == 0 && environment[i][length] == '=')
            return environment[i] + length + 1;
    return NULL;
}

struct row {
    const char *said[VARIABLES];
    const char *expected; /* who is who, or the error */
    const char *roles;    /* NULL: ps=2 */
    int64_t base_port;
};

static void describe(const struct cluster_spec *spec, char text[TEXT_MAX])
{
    char name[TASK_NAME_MAX];
    int used = snprintf(text, TEXT_MAX, "%s", task_name(spec->job, spec->task, name));
    for (int job = 0; job < JOB_COUNT; job++)
        for (int i = 0; i < spec->hosts[job].count; i++)
            used += snprintf(text + used, TEXT_MAX - (size_t)used, "%s%s", i ? "," : " ",
                             spec->hosts[job].at[i]);
}

/* Who reads a row. */
typedef err reader(const char *roles, int64_t base_port, struct arena *, struct cluster_spec *);

static err by_slurm(const char *roles, int64_t base_port, struct arena *arena,
                    struct cluster_spec *ret)
{
    return slurm_read(roles, base_port, variable, arena, ret);
}

static void check_by(reader *read, const struct row *rows, size_t count, err expected)
{
    for (size_t i = 0; i < count; i++) {
        struct arena arena = {0};
        struct cluster_spec spec;
        char text[TEXT_MAX] = "";
        environment = rows[i].said;
        const err e =
            read(rows[i].roles ? rows[i].roles : "ps=2", rows[i].base_port, &arena, &spec);
        if (e != expected) fail_msg("row %zu: %d, %s", i, e, error_text());
        if (e)
            snprintf(text, sizeof text, "%s", error_text());
        else
            describe(&spec, text);
        assert_string_equal(text, rows[i].expected);
        arena_free(&arena);
    }
}

static void check(const struct row *rows, size_t count, err expected)
{
    check_by(by_slurm, rows, count, expected);
}

#define STEP "SLURM_JOB_ID=7", "SLURM_STEP_ID=0"
#define OF_TWO "SLURM_STEP_NODELIST=n[1-2]", "SLURM_STEP_NUM_TASKS=5"

static void ranks_are_tasks(void **state)
{
    static const struct row rows[] = {
        {{STEP, OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2", "SLURM_PROCID=0"},
         "ps/0 n1:10700,n1:10701 n1:10702,n2:10700,n2:10701",
         NULL,
         0},
        {{STEP, OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2", "SLURM_PROCID=4", "SLURMD_NODENAME=n2"},
         "worker/2 n1:10700,n1:10701 n1:10702,n2:10700,n2:10701",
         NULL,
         0},
        {{STEP, OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2", "SLURM_PROCID=1",
          "SLURM_DISTRIBUTION=cyclic:block"},
         "ps/1 n1:10700,n2:10700 n1:10701,n2:10701,n1:10702",
         NULL,
         0},
        {{STEP, OF_TWO, "SLURM_STEP_TASKS_PER_NODE=1,4", "SLURM_PROCID=1",
          "SLURM_DISTRIBUTION=cyclic"},
         "ps/1 n1:2000,n2:2000 n2:2001,n2:2002,n2:2003",
         NULL,
         2000},
        {{STEP, OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2", "SLURM_PROCID=2",
          "SLURM_STEP_RESV_PORTS=12000-12001,12007"},
         "worker/1 n1:12000 n1:12001,n1:12007,n2:12000,n2:12001",
         "ps=1",
         0},
        /* outside of a step, as a batch script is: what the job says */
        {{"SLURM_JOB_ID=229", "SLURM_JOB_NODELIST=a,b,c", "SLURM_NTASKS=3",
          "SLURM_TASKS_PER_NODE=1(x3)", "SLURM_PROCID=2"},
         "worker/0 a:10900,b:10900 c:10900",
         NULL,
         0},
    };
    check(rows, sizeof rows / sizeof *rows, OK);
}

static const struct row wrong[] = {
    {{NULL}, "--slurm: SLURM_PROCID is not in the environment: start with srun", NULL, 0},
    {{"SLURM_PROCID=x"}, "SLURM_PROCID=x in the environment cannot be right", NULL, 0},
    {{"SLURM_PROCID=0"},
     "--slurm: SLURM_NTASKS is not in the environment: start with srun",
     NULL,
     0},
    {{"SLURM_PROCID=5", OF_TWO},
     "SLURM_STEP_NUM_TASKS=5 in the environment cannot be right",
     NULL,
     0},
    {{"SLURM_PROCID=0", "SLURM_NTASKS=99999"},
     "SLURM_NTASKS=99999 in the environment cannot be right",
     NULL,
     0},
    {{"SLURM_PROCID=0", "SLURM_NTASKS=2"},
     "--slurm: SLURM_STEP_NODELIST is not in the environment: start with srun",
     NULL,
     0},
    {{"SLURM_PROCID=0", OF_TWO},
     "--slurm: SLURM_STEP_TASKS_PER_NODE is not in the environment: start with srun",
     NULL,
     0},
    {{"SLURM_PROCID=0", OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3"},
     "SLURM_STEP_TASKS_PER_NODE=3 in the environment cannot be right",
     NULL,
     0},
    {{"SLURM_PROCID=0", OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,3"},
     "SLURM_STEP_TASKS_PER_NODE=3,3 in the environment cannot be right",
     NULL,
     0},
    {{"SLURM_PROCID=0", OF_TWO, "SLURM_STEP_TASKS_PER_NODE=1(x999999999)"},
     "SLURM_STEP_TASKS_PER_NODE=1(x999999999) in the environment cannot be right",
     NULL,
     0},
    {{"SLURM_PROCID=0", OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2(x"},
     "SLURM_STEP_TASKS_PER_NODE=3,2(x in the environment cannot be right",
     NULL,
     0},
    {{"SLURM_PROCID=0", OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2,"},
     "SLURM_STEP_TASKS_PER_NODE=3,2, in the environment cannot be right",
     NULL,
     0},
    {{STEP, OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2", "SLURM_PROCID=0",
      "SLURM_DISTRIBUTION=plane=4"},
     "SLURM_DISTRIBUTION=plane=4: ranks are found by block or cyclic; else say the hosts",
     NULL,
     0},
    {{STEP, OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2", "SLURM_PROCID=0", "SLURMD_NODENAME=n2"},
     "--slurm: rank 0 is on n2, and by SLURM_DISTRIBUTION it would be on n1",
     NULL,
     0},
    {{STEP, OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2", "SLURM_PROCID=0"},
     "--slurm: expected ps=N, how many of the tasks are ps, got \"2\"",
     "2",
     0},
    {{STEP, OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2", "SLURM_PROCID=0"},
     "--slurm: expected ps=N with N from 1 to 1024, got \"ps=0\"",
     "ps=0",
     0},
    {{STEP, OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2", "SLURM_PROCID=0"},
     "--slurm=ps=5: of 5 tasks none is left to be a worker",
     "ps=5",
     0},
    {{STEP, OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2", "SLURM_PROCID=0"},
     "--base_port: the tasks of n1 have no room below port 65536",
     "ps=2",
     65534},
    {{STEP, OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2", "SLURM_PROCID=0",
      "SLURM_STEP_RESV_PORTS=12000-12001"},
     "SLURM_STEP_RESV_PORTS=12000-12001: a node has 3 tasks, each of which needs a port: start "
     "with srun --resv-ports=3",
     NULL,
     0},
    {{STEP, OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2", "SLURM_PROCID=0",
      "SLURM_STEP_RESV_PORTS=99999-999999"},
     "\"99999-999999\": expected ports",
     NULL,
     0},
    {{"SLURM_PROCID=0", OF_TWO, "SLURM_STEP_TASKS_PER_NODE=3,2"},
     "--slurm: SLURM_JOB_ID is not in the environment: start with srun",
     NULL,
     0},
    {{STEP, "SLURM_STEP_NODELIST=n/[1-2]", "SLURM_STEP_NUM_TASKS=5",
      "SLURM_STEP_TASKS_PER_NODE=3,2", "SLURM_PROCID=0"},
     "address \"n/1:10700\": \"n/1\" is not the name of a host",
     NULL,
     0},
};

static void what_cannot_be_is_named(void **state)
{
    check(wrong, sizeof wrong / sizeof *wrong, ERR_INPUT);
}

/* Joined by blanks, or the error */
static void check_list(const char *list, const char *expected)
{
    struct arena arena = {0};
    struct strings names;
    char text[TEXT_MAX] = "";
    if (slurm_expand(list, &arena, &names))
        snprintf(text, sizeof text, "%s", error_text());
    else
        for (int i = 0; i < names.count; i++)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                     names.at[i]);
    assert_string_equal(text, expected);
    arena_free(&arena);
}

static void lists_of_nodes_are_expanded(void **state)
{
    check_list("login", "login");
    check_list("a,b.example.org,c-3", "a b.example.org c-3");
    check_list("n[1-3]", "n1 n2 n3");
    check_list("n[008-011,7],login", "n008 n009 n010 n011 n7 login");
    check_list("r[1-2]n[01,3]-ib,x", "r1n01-ib r1n3-ib r2n01-ib r2n3-ib x");
    check_list("", "\"\": a name is empty");
    check_list("a,", "\"a,\": a name is empty");
    check_list("n[1-3", "\"n[1-3\": a bracket is not closed");
    check_list("n[3-1]", "\"n[3-1]\": a range goes down");
    check_list("n[]", "\"n[]\": expected a number");
    check_list("n[1-]", "\"n[1-]\": expected a number");
    check_list("n[1,,2]", "\"n[1,,2]\": expected a number");
    check_list("n[1x]", "\"n[1x]\": expected numbers in brackets");
    check_list("n[1234567890]", "\"n[1234567890]\": expected a number");
    check_list("n[0-999999999]", "\"n[0-999999999]\": too many nodes");
    check_list("a[1]b[1]c[1]d[1]e[1]", "\"a[1]b[1]c[1]d[1]e[1]\": too many brackets in a name");
}

/* ---- those that say a rank alone ---- */

static const char *hostfile;

static err by_ranks(const char *roles, int64_t base_port, struct arena *arena,
                    struct cluster_spec *ret)
{
    return ranks_read(roles, hostfile, base_port, variable, arena, ret);
}

#define MPI(RANK, SIZE, LOCAL, HERE)                                                               \
    "OMPI_COMM_WORLD_RANK=" #RANK, "OMPI_COMM_WORLD_SIZE=" #SIZE,                                  \
        "OMPI_COMM_WORLD_LOCAL_RANK=" #LOCAL, "OMPI_COMM_WORLD_LOCAL_SIZE=" #HERE
#define PMI(RANK, SIZE, LOCAL, HERE)                                                               \
    "PMI_RANK=" #RANK, "PMI_SIZE=" #SIZE, "MPI_LOCALRANKID=" #LOCAL, "MPI_LOCALNRANKS=" #HERE

static void ranks_of_one_host_need_no_file(void **state)
{
    static const struct row rows[] = {
        {{MPI(0, 4, 0, 4)},
         "ps/0 localhost:10000,localhost:10001 localhost:10002,localhost:10003",
         NULL,
         0},
        {{PMI(3, 4, 3, 4)},
         "worker/2 localhost:2000 localhost:2001,localhost:2002,localhost:2003",
         "ps=1",
         2000},
        {{"RANK=2", "WORLD_SIZE=3", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=3"},
         "worker/0 localhost:10000,localhost:10001 localhost:10002",
         NULL,
         0},
    };
    check_by(by_ranks, rows, sizeof rows / sizeof *rows, OK);
}

/* Jobs of one host do not meet. */
static void ports_depend_on_the_name_of_the_job(void **state)
{
    const char *first[] = {MPI(0, 3, 0, 3), "PMIX_NAMESPACE=670629889", NULL};
    const char *second[] = {MPI(0, 3, 0, 3), "PMIX_NAMESPACE=670629890", NULL};
    struct arena arena = {0};
    struct cluster_spec a, b;
    environment = first;
    assert_int_equal(by_ranks("ps=1", 0, &arena, &a), OK);
    environment = second;
    assert_int_equal(by_ranks("ps=1", 0, &arena, &b), OK);
    assert_string_not_equal(a.hosts[JOB_PS].at[0], b.hosts[JOB_PS].at[0]);
    arena_free(&arena);
}

static void slots_of_a_file_are_ranks(void **state)
{
    char path[] = "/tmp/dtrain-test-hosts-XXXXXX";
    static const char text[] = "\xef\xbb\xbfn1:2\nme@n2 max-slots=1\n"
                               "fd00::3 max_slots=3 slots=2\nme@[fd00::4]:2\n[fd00::5]\n";
    static const struct row rows[] = {
        {{MPI(1, 5, 1, 2)}, "ps/1 n1:70,n1:71 n2:70,[fd00::3]:70,[fd00::3]:71", NULL, 70},
        {{PMI(3, 4, 0, 1)}, "worker/1 n1:70,n1:71 n2:70,[fd00::3]:70", NULL, 70},
        {{PMI(7, 8, 0, 1)},
         "worker/5 n1:70,n1:71 n2:70,[fd00::3]:70,[fd00::3]:71,[fd00::4]:70,[fd00::4]:71,"
         "[fd00::5]:70",
         NULL,
         70},
    };
    static struct row bad[] = {
        {{MPI(1, 5, 0, 2)},
         "rank 1 is 0 of the 2 on its host, and by this file, one slot after "
         "the other, it would be 1 of 2 on n1",
         NULL,
         0},
        {{MPI(0, 5, 0, 3)},
         "rank 0 is 0 of the 3 on its host, and by this file, one slot after "
         "the other, it would be 0 of 2 on n1",
         NULL,
         0},
        {{MPI(0, 9, 0, 2)}, "8 slots for 9 ranks", NULL, 0},
    };
    const int fd = mkstemp(path);
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    close(fd);
    hostfile = path;
    check_by(by_ranks, rows, sizeof rows / sizeof *rows, OK);
    char expected[sizeof bad / sizeof *bad][TEXT_MAX];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(expected[i], TEXT_MAX, "%s: %s", path, bad[i].expected);
        bad[i].expected = expected[i];
    }
    check_by(by_ranks, bad, sizeof bad / sizeof *bad, ERR_INPUT);
    hostfile = NULL;
    unlink(path);
}

static void ranks_that_cannot_be_are_named(void **state)
{
    static const struct row rows[] = {
        {{NULL},
         "--ranks: no rank is in the environment: start with mpirun, mpiexec or torchrun",
         NULL,
         0},
        {{"PMI_RANK=0"}, "--ranks: PMI_RANK is in the environment, and PMI_SIZE is not", NULL, 0},
        {{PMI(4, 4, 0, 4)}, "PMI_SIZE=4 in the environment cannot be right", NULL, 0},
        {{PMI(0, 4, 4, 4)}, "MPI_LOCALNRANKS=4 in the environment cannot be right", NULL, 0},
        {{PMI(-1, 4, 0, 4)}, "PMI_RANK=-1 in the environment cannot be right", NULL, 0},
        {{PMI(0, 4000000, 0, 4)}, "PMI_SIZE=4000000 in the environment cannot be right", NULL, 0},
        {{PMI(0, 4x, 0, 4)}, "PMI_SIZE=4x in the environment cannot be right", NULL, 0},
        {{PMI(0, 6, 0, 2)},
         "--ranks needs --hostfile, which names the hosts: 2 of 6 ranks are on this one",
         NULL,
         0},
        {{PMI(0, 2, 0, 2)}, "--ranks=ps=2: of 2 tasks none is left to be a worker", NULL, 0},
    };
    check_by(by_ranks, rows, sizeof rows / sizeof *rows, ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_tasks),
        cmocka_unit_test(what_cannot_be_is_named),
        cmocka_unit_test(lists_of_nodes_are_expanded),
        cmocka_unit_test(ranks_of_one_host_need_no_file),
        cmocka_unit_test(ports_depend_on_the_name_of_the_job),
        cmocka_unit_test(slots_of_a_file_are_ranks),
        cmocka_unit_test(ranks_that_cannot_be_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
