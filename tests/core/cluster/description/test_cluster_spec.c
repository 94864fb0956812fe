/* Which tasks there are and which of them this one is, from flags, environment and TF_CONFIG. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/cluster/description/cluster_spec.h"
#include "core/cluster/description/named.h"
#include "core/train/variables/layout.h"

#include <cmocka.h> /* after error.h: it has a macro named fail */

enum { TEXT_MAX = 512 };

struct row {
    struct cluster_flags flags;
    const char *tf_config;
    const char *expected; /* the error, or who is who as describe() has it */
};

/* "worker/1 ps a:1 worker b:2 c:3" */
static const char *describe(const struct cluster_spec *spec, char text[TEXT_MAX])
{
    if (!spec->is_distributed) return "alone";
    char name[TASK_NAME_MAX];
    int used = snprintf(text, TEXT_MAX, "%s",
                        spec->is_evaluator ? "evaluator" : task_name(spec->job, spec->task, name));
    for (int job = 0; job < JOB_COUNT; job++) {
        used += snprintf(text + used, TEXT_MAX - (size_t)used, " %s", job_name((enum job)job));
        for (int i = 0; i < spec->hosts[job].count; i++)
            used += snprintf(text + used, TEXT_MAX - (size_t)used, " %s", spec->hosts[job].at[i]);
    }
    return text;
}

static void check_rows(const struct row *rows, int count, err expected)
{
    for (int i = 0; i < count; i++) {
        struct arena arena = {0};
        struct cluster_spec spec;
        char text[TEXT_MAX];
        err e = cluster_spec_make(&rows[i].flags, rows[i].tf_config, &arena, &spec);
        assert_string_equal(e ? error_text() : describe(&spec, text), rows[i].expected);
        assert_int_equal(e, expected);
        arena_free(&arena);
    }
}

#define COUNT(rows) ((int)(sizeof(rows) / sizeof *(rows)))

#define NO_FLAGS                                                                                   \
    {                                                                                              \
        .task_index = -1                                                                           \
    }

static void flags_name_a_task_of_a_cluster(void **state)
{
    static const struct row rows[] = {
        {{"ps", 1, "a:1,b:2", "c:3"}, NULL, "ps/1 ps a:1 b:2 worker c:3"},
        {{"evaluator", -1, "a:1", "c:3"}, NULL, "evaluator ps a:1 worker c:3"},
        {{"evaluator", 0, "a:1", "c:3"}, NULL, "evaluator ps a:1 worker c:3"},
        {{"worker", 0, " a:1 , b:2", "c:3,[::1]:4"},
         NULL,
         "worker/0 ps a:1 b:2 worker c:3 [::1]:4"},
        {{"ps", 1, "a:1,\n  b:2\n", "c:3\r\n"}, NULL, "ps/1 ps a:1 b:2 worker c:3"},
        {{"worker", 1, "h:1", "h:2,h:3"}, "", "worker/1 ps h:1 worker h:2 h:3"},
        {{"ps", 0, "h:0,h:0", "h:0,h:0"}, NULL, "ps/0 ps h:0 h:0 worker h:0 h:0"},
        {{"worker", 1, "h:1", "h:0,h:0"}, NULL, "worker/1 ps h:1 worker h:0 h:0"},
        {NO_FLAGS, NULL, "alone"},
        {NO_FLAGS, "", "alone"},
    };
    check_rows(rows, COUNT(rows), OK);
}

/* Who is called must be known. */
#define OPEN " chooses its port when it starts, and "
#define FIRST                                                                                      \
    " must know it: start it first, with --ready_file, and say the address that it writes there"

static const struct row wrong_flags[] = {
    {{"worker", -1, "a:1", "b:1"}, NULL, "--job_name=worker needs --task_index"},
    {{"worker", 0, NULL, "b:1"}, NULL, "--job_name=worker needs --ps_hosts"},
    {{"ps", 0, "a:1", NULL}, NULL, "--job_name=ps needs --worker_hosts"},
    {{"ps", -1, "a:1", NULL}, NULL, "--job_name=ps needs --task_index and --worker_hosts"},
    {{"ps", -1, NULL, NULL},
     NULL,
     "--job_name=ps needs --task_index, --ps_hosts and --worker_hosts"},
    {{"evaluator", 1, "a:1", "b:1"}, NULL, "task_index 1 but there is one evaluator"},
    {{"evaluator", -1, NULL, NULL},
     NULL,
     "--job_name=evaluator needs --ps_hosts and --worker_hosts"},
    {{"chief", 0, "a:1", "b:1"},
     NULL,
     "--job_name: expected ps, worker or evaluator, got \"chief\" (the chief is worker 0)"},
    {{"", 0, "a:1", "b:1"}, NULL, "--job_name: expected ps, worker or evaluator, got \"\""},
    {{NULL, 0, NULL, NULL}, NULL, "--task_index needs --job_name (ps or worker)"},
    {{NULL, -1, "a:1", NULL}, NULL, "--ps_hosts needs --job_name (ps or worker)"},
    {{NULL, -1, NULL, "a:1"}, NULL, "--worker_hosts needs --job_name (ps or worker)"},
    {{"build-42", 0, "a:1", "b:1", {[WORD_JOB_NAME] = true}},
     NULL,
     "JOB_NAME in the environment: expected ps, worker or evaluator, got \"build-42\""},
    {{"ps", 0, "a:1", NULL, {[WORD_JOB_NAME] = true}},
     NULL,
     "JOB_NAME=ps in the environment needs --worker_hosts"},
    {{NULL, -1, "a:1", NULL, {[WORD_PS_HOSTS] = true}},
     NULL,
     "PS_HOSTS in the environment needs --job_name (ps or worker)"},
    {{"ps", 2, "a:1", "b:1", {[WORD_TASK_INDEX] = true}},
     NULL,
     "TASK_INDEX 2 in the environment but ps_hosts names 1 task"},
    {{"ps", 0, "a:1", "b", {[WORD_WORKER_HOSTS] = true}},
     NULL,
     "WORKER_HOSTS in the environment: worker_hosts[0]: address \"b\": expected host:port or "
     "[v6 "
     "address]:port"},
    {{"worker", -1, NULL, NULL, .slurm = "ps=1"}, NULL, "--job_name: --slurm says that already"},
    {{NULL, -1, "a:1", NULL, {[WORD_PS_HOSTS] = true}, .slurm = "ps=1"},
     NULL,
     "PS_HOSTS in the environment: --slurm says that already"},
    {{"worker", 7, "a:1", "b:1,b:2"}, NULL, "task_index 7 but worker_hosts names 2 tasks"},
    {{"ps", 1, "a:1", "b:1,b:2"}, NULL, "task_index 1 but ps_hosts names 1 task"},
    {{"ps", 0, "a:1,a:2,a:1", "b:1"}, NULL, "the same address twice: \"a:1\" is ps/0 and ps/2"},
    {{"ps", 0, "a:1", "b:1,a:1"}, NULL, "the same address twice: \"a:1\" is ps/0 and worker/1"},
    {{"ps", 0, "a:1,b", "c:1"},
     NULL,
     "ps_hosts[1]: address \"b\": expected host:port or [v6 address]:port"},
    {{"ps", 0, "a:1", "c:1,"},
     NULL,
     "worker_hosts[1]: address \"\": expected host:port or [v6 address]:port"},
    {{"ps", 0, "a:70000", "c:1"},
     NULL,
     "ps_hosts[0]: address \"a:70000\": expected a port from 0 to 65535, got \"70000\""},
    {{"worker", 0, "a:1,b:0", "c:0"}, NULL, "ps/1 at b:0" OPEN "a worker" FIRST},
    {{"evaluator", -1, "[::1]:0", "c:1"}, NULL, "ps/0 at [::1]:0" OPEN "the evaluator" FIRST},
};

static void a_task_without_an_index_is_the_one_of_this_host(void **state)
{
    static const char ps[] = "ps-0.training.svc:22,ps-1.training.svc:22,ps-10:22";
    static const struct row found[] = {
        {{"ps", -1, ps, "w:1", .host_name = "ps-1"},
         NULL,
         "ps/1 ps ps-0.training.svc:22 ps-1.training.svc:22 ps-10:22 worker w:1"},
        {{"worker", -1, "a:1", "a:2,b:2", .host_name = "b.example.org"},
         NULL,
         "worker/1 ps a:1 worker a:2 b:2"},
        {{"worker", 0, "a:1", "a:2,b:2", .host_name = "b"}, NULL, "worker/0 ps a:1 worker a:2 b:2"},
        {{"evaluator", -1, "a:1", "a:2,b:2", .host_name = "b"},
         NULL,
         "evaluator ps a:1 worker a:2 b:2"},
    };
    static const struct row not_found[] = {
        {{"ps", -1, ps, "w:1", .host_name = "ps"}, NULL, "--job_name=ps needs --task_index"},
        {{"ps", -1, ps, "w:1", .host_name = "ps-2"}, NULL, "--job_name=ps needs --task_index"},
        {{"ps", -1, "a:1,a:2", "w:1", .host_name = "a"}, NULL, "--job_name=ps needs --task_index"},
    };
    check_rows(found, COUNT(found), OK);
    check_rows(not_found, COUNT(not_found), ERR_INPUT);
}

static void wrong_flags_are_named(void **state)
{
    check_rows(wrong_flags, COUNT(wrong_flags), ERR_INPUT);
}

#define CLUSTER(jobs) "{\"cluster\": {" jobs "}, "
#define TASK(type, index) "\"task\": {\"type\": \"" type "\", \"index\": " #index "}}"
#define PS "\"ps\": [\"p:1\", \"q:1\"]"
#define WORKERS "\"worker\": [\"v:1\", \"w:1\"]"
#define CHIEF "\"chief\": [\"c:1\"]"
#define MASTER "\"master\": [\"c:1\"]"

static void a_chief_of_tf_config_is_worker_0(void **state)
{
    static const struct row rows[] = {
        {NO_FLAGS, CLUSTER(CHIEF ", " WORKERS ", " PS) TASK("chief", 0),
         "worker/0 ps p:1 q:1 worker c:1 v:1 w:1"},
        {NO_FLAGS, CLUSTER(WORKERS ", " PS ", " MASTER) TASK("master", 0),
         "worker/0 ps p:1 q:1 worker c:1 v:1 w:1"},
        {NO_FLAGS, CLUSTER(CHIEF ", " WORKERS ", " PS) TASK("worker", 1),
         "worker/2 ps p:1 q:1 worker c:1 v:1 w:1"},
        {NO_FLAGS, CLUSTER(WORKERS ", " PS) TASK("worker", 1),
         "worker/1 ps p:1 q:1 worker v:1 w:1"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) TASK("ps", 1), "ps/1 ps p:1 q:1 worker c:1"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) TASK("ps", "0"), "ps/0 ps p:1 q:1 worker c:1"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS ", \"evaluator\": [\"e:1\"]") TASK("ps", 0),
         "ps/0 ps p:1 q:1 worker c:1"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS ", \"evaluator\": [\"e:1\"]") TASK("evaluator", 0),
         "evaluator ps p:1 q:1 worker c:1"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) TASK("evaluator", 0), "evaluator ps p:1 q:1 worker c:1"},
        {NO_FLAGS, "{\"environment\": \"cloud\", " TASK("worker", 0), "alone"},
        {NO_FLAGS, "{}", "alone"},
        {NO_FLAGS, "{\"cluster\": {}}", "alone"},
    };
    check_rows(rows, COUNT(rows), OK);
}

static void flags_beat_tf_config_one_by_one(void **state)
{
    static const char config[] = CLUSTER(CHIEF ", " WORKERS ", " PS) TASK("worker", 1);
    static const struct row rows[] = {
        {{.task_index = 1}, config, "worker/1 ps p:1 q:1 worker c:1 v:1 w:1"},
        {{"ps", 1, NULL, NULL}, config, "ps/1 ps p:1 q:1 worker c:1 v:1 w:1"},
        {{NULL, -1, "x:9", NULL}, config, "worker/2 ps x:9 worker c:1 v:1 w:1"},
        {{"ps", 0, NULL, NULL}, "{\"cluster\": {" CHIEF ", " PS "}}", "ps/0 ps p:1 q:1 worker c:1"},
        {{"ps", 0, "x:1", "y:1"}, "not even JSON", "ps/0 ps x:1 worker y:1"},
    };
    check_rows(rows, COUNT(rows), OK);
    static const struct row wrong[] = {
        {{"ps", -1, NULL, NULL}, config, "--job_name=ps needs --task_index"},
        {{NULL, -1, NULL, "x:9"}, config, "task_index 2 but worker_hosts names 1 task"},
    };
    check_rows(wrong, COUNT(wrong), ERR_INPUT);
}

static void a_wrong_tf_config_is_named(void **state)
{
    static const struct row rows[] = {
        {NO_FLAGS, "[1]", "TF_CONFIG: expected a JSON object"},
        {NO_FLAGS, "{\"cluster\": 3}", "TF_CONFIG.cluster: expected an object of jobs"},
        {NO_FLAGS, "{\"cluster\": {" CHIEF ", " PS "}}", "TF_CONFIG: \"task\" is missing"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) "\"task\": 1}",
         "TF_CONFIG.task: expected an object with \"type\" and \"index\""},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) "\"task\": {\"index\": 0}}",
         "TF_CONFIG.task: \"type\" is missing"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) "\"task\": {\"type\": \"ps\"}}",
         "TF_CONFIG.task: \"index\" is missing"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) "\"task\": {\"type\": 5, \"index\": 0}}",
         "TF_CONFIG.task.type: expected a string (chief, worker, ps or evaluator)"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) TASK("ps", "0x0"),
         "TF_CONFIG.task.index: expected an integer from 0 to 4095"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) TASK("ps", ""),
         "TF_CONFIG.task.index: expected an integer from 0 to 4095"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) TASK("ps", "12345678901234567890"),
         "TF_CONFIG.task.index: expected an integer from 0 to 4095"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) TASK("ps", -1),
         "TF_CONFIG.task.index: expected an integer from 0 to 4095"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) TASK("ps", 2),
         "TF_CONFIG.task: ps/2, but cluster names 2 tasks of \"ps\""},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) TASK("worker", 0),
         "TF_CONFIG.task: worker/0, but cluster names 0 tasks of \"worker\""},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) TASK("wroker", 0),
         "TF_CONFIG.task.type: unknown job \"wroker\" (did you mean \"worker\"?)"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS) TASK("evaluator", 1),
         "TF_CONFIG.task: evaluator/1, but there is one evaluator"},
        {NO_FLAGS, CLUSTER(CHIEF ", " MASTER ", " PS) TASK("chief", 0),
         "TF_CONFIG.cluster: both \"chief\" and \"master\" (its old name)"},
        {NO_FLAGS, CLUSTER(MASTER ", \"evaluator\": [], " PS) TASK("ps", 0),
         "TF_CONFIG.cluster: \"evaluator\" does not go with \"master\""},
        {NO_FLAGS, CLUSTER("\"chief\": [\"c:1\", \"d:1\"], " PS) TASK("chief", 0),
         "TF_CONFIG.cluster.chief: expected exactly one task, got 2"},
        {NO_FLAGS, CLUSTER("\"chief\": [], " PS) TASK("ps", 0),
         "TF_CONFIG.cluster.chief: expected exactly one task, got 0"},
        {NO_FLAGS, CLUSTER(PS) TASK("ps", 0),
         "TF_CONFIG.cluster: names no \"chief\" and no \"worker\""},
        {NO_FLAGS, CLUSTER(CHIEF) TASK("chief", 0), "TF_CONFIG.cluster: names no \"ps\""},
        {NO_FLAGS, CLUSTER(CHIEF ", \"ps\": \"p:1\"") TASK("chief", 0),
         "TF_CONFIG.cluster.ps: expected a list of \"host:port\""},
        {NO_FLAGS, CLUSTER(CHIEF ", \"ps\": [7]") TASK("chief", 0),
         "TF_CONFIG.cluster.ps[0]: expected a string \"host:port\""},
        {NO_FLAGS, CLUSTER(CHIEF ", \"ps\": [\"p\"]") TASK("chief", 0),
         "TF_CONFIG.cluster.ps[0]: address \"p\": expected host:port or [v6 address]:port"},
        {NO_FLAGS, CLUSTER(CHIEF ", \"ps\": [\"c:1\"]") TASK("chief", 0),
         "the same address twice: \"c:1\" is ps/0 and worker/0"},
        {NO_FLAGS, CLUSTER(CHIEF ", " PS ", \"gpu\": [\"c:1\"]") TASK("chief", 0),
         "TF_CONFIG.cluster: unknown job \"gpu\"; known are chief, worker, ps, master, evaluator"},
        {NO_FLAGS, "{" TASK("ps", 0), "TF_CONFIG: task ps/0 needs a \"cluster\""},
        {NO_FLAGS, "{\"sparseCluster\": {\"worker\": {\"0\": \"w:1\"}, " PS "}, " TASK("worker", 0),
         "TF_CONFIG.sparseCluster: names this task and the ps alone, and all workers are wanted: "
         "leave enableDynamicWorker out of the TFJob"},
        {NO_FLAGS, "{" TASK("worker", 3), "TF_CONFIG: task worker/3 needs a \"cluster\""},
    };
    check_rows(rows, COUNT(rows), ERR_INPUT);
}

static void json_errors_of_tf_config_have_a_place(void **state)
{
    struct arena arena = {0};
    struct cluster_spec spec;
    const struct cluster_flags none = NO_FLAGS;
    static const char *const broken[] = {"{", "{'cluster': {}}", "{\"a\": 1, \"a\": 2}",
                                         "nonsense"};
    for (int i = 0; i < COUNT(broken); i++) {
        assert_int_equal(cluster_spec_make(&none, broken[i], &arena, &spec), ERR_INPUT);
        assert_non_null(strstr(error_text(), "TF_CONFIG: not JSON: line 1, column "));
    }
    arena_free(&arena);
}

/* count addresses "host:port" with ports from first on. */
static char *make_hosts(struct arena *arena, int first, int count)
{
    char *list = arena_new(arena, (size_t)count * 8 + 1), *end = list;
    for (int i = 0; i < count; i++) end += sprintf(end, "%sh:%d", i ? "," : "", first + i);
    return list;
}

static void a_job_has_a_largest_number_of_tasks(void **state)
{
    struct arena arena = {0};
    struct cluster_spec spec;
    struct cluster_flags flags = {"worker", WORKERS_MAX - 1, make_hosts(&arena, 1000, PS_MAX),
                                  make_hosts(&arena, 10000, WORKERS_MAX)};
    assert_int_equal(cluster_spec_make(&flags, NULL, &arena, &spec), OK);
    assert_int_equal(spec.hosts[JOB_WORKER].count, WORKERS_MAX);
    assert_string_equal(spec.hosts[JOB_PS].at[PS_MAX - 1], "h:2023");
    flags.ps_hosts = make_hosts(&arena, 1000, PS_MAX + 1);
    assert_int_equal(cluster_spec_make(&flags, NULL, &arena, &spec), ERR_INPUT);
    assert_string_equal(error_text(), "ps_hosts: 1025 tasks, at most 1024 are allowed");
    arena_free(&arena);
}

static void workers_of_the_same_host_are_counted(void **state)
{
    struct arena arena = {0};
    struct cluster_spec spec = {0};
    assert_int_equal(cluster_workers_here(&spec), 1);
    struct cluster_flags flags = {"worker", 0, "p:1", "a:1,b:1,a:2,aa:1"};
    assert_int_equal(cluster_spec_make(&flags, NULL, &arena, &spec), OK);
    assert_int_equal(cluster_workers_here(&spec), 2);
    flags = (struct cluster_flags){"ps", 0, "p:1", "a:1,b:1"};
    assert_int_equal(cluster_spec_make(&flags, NULL, &arena, &spec), OK);
    assert_int_equal(cluster_workers_here(&spec), 1);
    arena_free(&arena);
}

static void links_of_hosts_are_counted_alike_by_every_task(void **state)
{
    static const struct {
        const char *ps, *workers;
        bool gains;
    } cases[] = {
        {"a:1,a:2", "a:3,a:4", false}, /* no link */
        {"a:1,a:2", "b:1,c:1", false}, /* all ps on one host */
        {"a:1,b:1", "c:1", false},     /* the worker's own link is the narrow one */
        {"a:1,b:1", "c:1,d:1", true},
        {"a:1,b:1", "c:1,c:2", false},
        {"a:1,b:1", "a:2,b:2", false}, /* a half of everything crosses, twice */
        {"a:1,b:1,c:1", "a:2,b:2,c:2", false},
        {"a:1,b:1,c:1,d:1", "a:2,b:2,c:2,d:2", true},
    };
    struct arena arena = {0};
    struct cluster_spec spec = {0};
    assert_false(cluster_gains_by_balance(&spec));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int job = 0; job < 2; job++) {
            const struct cluster_flags flags = {job ? "ps" : "worker", 0, cases[i].ps,
                                                cases[i].workers};
            assert_int_equal(cluster_spec_make(&flags, NULL, &arena, &spec), OK);
            if (cluster_gains_by_balance(&spec) != cases[i].gains)
                fail_msg("%s for %s", cases[i].ps, cases[i].workers);
        }
    }
    arena_free(&arena);
}

static void what_stands_at_a_place_is_read_back(void **state)
{
    static const struct named_place places[] = {
        {"10.0.0.5:4021", {0, {2, 3}}, false},
        {"10.0.0.5:4021", {0, {2, 3}}, true},
        {"10.0.0.5:4021", {1, {1, 1}}, false},
        {"10.0.0.5:4021", {7, {PS_MAX, WORKERS_MAX}}, true},
    };
    static const char *const texts[] = {"10.0.0.5:4021 ps=2,worker=3",
                                        "10.0.0.5:4021 ps=2,worker=3 joined",
                                        "10.0.0.5:4021 ps=1,worker=1 resizes=1",
                                        "10.0.0.5:4021 ps=1024,worker=4096 resizes=7 joined"};
    char text[NAMED_PLACE_BYTES];
    for (int i = 0; i < COUNT(places); i++) {
        struct named_place found;
        assert_string_equal(named_place_text(&places[i], text), texts[i]);
        assert_true(named_place_read(text, &found));
        assert_string_equal(found.address, places[i].address);
        assert_true(membership_is_same(&found.membership, &places[i].membership));
        assert_int_equal(found.has_joined, places[i].has_joined);
    }
}

static void what_is_no_place_is_left_alone(void **state)
{
    static const char *const texts[] = {
        "",
        "a:1",
        "a ps=1,worker=1",
        ":1 ps=1,worker=1",
        "a:1 ps=1",
        "a:1 ps=1,worker=0",
        "a:1 ps=1,ps=1",
        "a:1 ps=1,worker=4097",
        "a:1 ps=1,worker=1 ",
        "a:1 ps=1,worker=1 moves=",
        "a:1 ps=1,worker=1 resizes=0",
        "a:1 ps=1,worker=1 moves=-1",
        "a:1 ps=1,worker=1 resizes=1 ",
        "a:1 ps=1,worker=1 resizes=9223372036854775807",
        "a:1 ps=1,worker=1 joined ",
        "a:1 ps=1,worker=1 joined joined",
        "a:1 ps=1,worker=1 joined moves=1",
        "a:1 joined",
    };
    char longer[2 * ADDRESS_MAX];
    struct named_place found;
    for (int i = 0; i < COUNT(texts); i++) assert_false(named_place_read(texts[i], &found));
    memset(longer, 'a', ADDRESS_MAX);
    strcpy(longer + ADDRESS_MAX, ":1 ps=1,worker=1");
    assert_false(named_place_read(longer, &found));
}

/* Who has a name may come back elsewhere: by its number alone. */
static void tasks_that_find_each_other_share_by_their_numbers(void **state)
{
    const struct cluster_flags flags = {.job_name = "worker",
                                        .task_index = -1,
                                        .coordinator = "etcd://e/",
                                        .cluster = "small",
                                        .tasks = "ps=2,worker=2"};
    struct arena arena = {0};
    struct cluster_spec spec;
    assert_int_equal(cluster_spec_make(&flags, NULL, &arena, &spec), OK);
    const bool gains = cluster_gains_by_balance(&spec);
    for (int job = 0; job < JOB_COUNT; job++)
        for (int i = 0; i < spec.hosts[job].count; i++)
            spec.hosts[job].at[i] = arena_format(&arena, "here:%d", i);
    assert_int_equal(cluster_gains_by_balance(&spec), gains);
    assert_true(gains);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_name_a_task_of_a_cluster),
        cmocka_unit_test(a_task_without_an_index_is_the_one_of_this_host),
        cmocka_unit_test(wrong_flags_are_named),
        cmocka_unit_test(what_stands_at_a_place_is_read_back),
        cmocka_unit_test(what_is_no_place_is_left_alone),
        cmocka_unit_test(tasks_that_find_each_other_share_by_their_numbers),
        cmocka_unit_test(a_chief_of_tf_config_is_worker_0),
        cmocka_unit_test(flags_beat_tf_config_one_by_one),
        cmocka_unit_test(a_wrong_tf_config_is_named),
        cmocka_unit_test(json_errors_of_tf_config_have_a_place),
        cmocka_unit_test(a_job_has_a_largest_number_of_tasks),
        cmocka_unit_test(workers_of_the_same_host_are_counted),
        cmocka_unit_test(links_of_hosts_are_counted_alike_by_every_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
