/* doctor.c - `dtrain doctor`: whether a job can run here, and what would go wrong. */
#include "cmd/doctor/doctor.h"

#include <stdlib.h>

#include "cmd/own_flags.h"
#include "core/base/log.h"
#include "kernels/kernels.h"

struct doctor_flags {
    bool json;
    uint64_t answer_ms, links_ms;
};

static const struct field own_fields[] = {
    FIELD_OF(
        "json", BOOL, struct doctor_flags, json, .fallback = "false",
        .help =
            "print one JSON object instead: findings, each with health, subject, text and advice"),
    FIELD_OF("answer_timeout", SECONDS, struct doctor_flags, answer_ms, .fallback = "5", .min = 0.1,
             .max = 600, .help = "total seconds to wait for answers of the other tasks' hosts"),
    FIELD_OF("links", SECONDS, struct doctor_flags, links_ms, .fallback = "0", .max = 3600,
             .help = "seconds to measure the links between the hosts, with doctor started for all "
                     "tasks of the job at once, before the job begins; 0: do not measure"),
    {0},
};

static const struct object own_object = {
    .name = "doctor", .summary = "", .fields = own_fields, .size = sizeof(struct doctor_flags)};

static void print_help(FILE *out)
{
    fputs(
        "Checks whether a task could run on this host, one line per finding: processor and\n"
        "cores, memory, open files, temporary files, clock, libraries; with a spec, whether it "
        "can\n"
        "be read and its folders written, and how fast; with a cluster, whether the names of its\n"
        "hosts resolve here, whether something listens there, and what answers. It takes the\n"
        "flags of a run (dtrain help flags): add the word doctor to the command line, on each\n"
        "host, in the pod or job step where the task is to run. With --ps_hosts and\n"
        "--worker_hosts alone it looks at them from this host. It changes nothing, except for a\n"
        "file that it writes to checkpoint_dir and removes. The exit code is 1 if a finding is\n"
        "BAD: a job cannot run then.\n\n"
        "  srun dtrain doctor --links=30 --slurm=ps=2\n\n"
        "measures the links between the hosts of a job: it is started for all tasks at once, in\n"
        "place of the job, and each task prints its row of the matrix. Meanwhile it accepts\n"
        "connections from anyone, which carry nothing but test bytes. Beside the flags of a\n"
        "run:\n\n",
        out);
    flags_help(out, &own_object);
}

static err examine(struct run *run, struct report *r, const struct doctor_flags *flags)
{
    doctor_host(r, run);
    if (run->spec_path) doctor_spec(r, run);
    if (run->cluster.is_distributed && flags->links_ms)
        doctor_links(r, run, flags->links_ms);
    else if (run->cluster.is_distributed)
        doctor_cluster(r, run, flags->answer_ms);
    return report_finish(r);
}

/* If only lists of hosts are given, without a task, it looks at them as an evaluator would. */
static err read_flags(struct run *run, int argc, char **argv, struct arena *arena)
{
    const char *const own[] = {"job_name", "task_index"};
    bool is_task = getenv("JOB_NAME") || !flags_given(&run_flags_object, argc, argv, "ps_hosts");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        is_task |= flags_given(&run_flags_object, argc, argv, own[i]);
    if (is_task) return run_read_flags(run, argc, argv);
    char **words = arena_array(arena, (size_t)argc + 2, sizeof *words);
    words[0] = argv[0];
    words[1] = arena_string(arena, "--job_name=evaluator");
    for (int i = 1; i < argc; i++) words[i + 1] = argv[i];
    return run_read_flags(run, argc + 1, words);
}

static int cmd_doctor(int argc, char **argv)
{
    struct run run = {0};
    struct arena arena = {0};
    struct doctor_flags flags;
    struct report report = {0};
    cpu_environment_prepare(argv);
    argc--;
    argv++;
    err e = own_flags_take(&own_object, &argc, argv, &arena, &flags);
    if (!e) e = read_flags(&run, argc, argv, &arena);
    if (!e) e = report_open(&report, flags.json);
    if (!e) e = examine(&run, &report, &flags);
    const int code = e ? report_error(e) : report.counts[HEALTH_BAD] ? EXIT_FAILED : EXIT_DONE;
    report_close(&report);
    run_close(&run);
    arena_free(&arena);
    return code;
}

const struct command command_doctor = {
    .name = "doctor",
    .arguments = "[FLAGS] [SPEC.json]",
    .summary = "look for what keeps a job from running here",
    .run = cmd_doctor,
    .topic = "look for what keeps a job from running here",
    .print_help = print_help,
    .takes_run_flags = true,
};
