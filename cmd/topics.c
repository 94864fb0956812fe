/* topics.c - topics of `dtrain help` about a run as a process. */
#include <string.h>

#include "cmd/cmd.h"
#include "core/base/text.h"

enum { FLAGS_SHOWN_MAX = 64 };

/* The flags of this kind are rows of limits.h. */
void print_timeouts(FILE *out)
{
    struct field limits[FLAGS_SHOWN_MAX + 1] = {{0}};
    int count = 0;
    for (const struct field *flag = run_flags_object.fields; flag->name; flag++)
        if (text_ends_with(flag->name, "_timeout") && count < FLAGS_SHOWN_MAX)
            limits[count++] = *flag;
    fputs("Every wait has a timeout, set by a flag; after 10 s, and then ever more seldom, a task\n"
          "logs what it is waiting for:\n\n",
          out);
    flags_help(out, &(struct object){.name = "timeouts", .fields = limits});
    fputs(
        "\ntrain.worker_timeout_secs of the spec is how long the others wait for a lost worker. A\n"
        "timeout that ends the job is exit code 129: the same command may succeed when it is run\n"
        "again. SIGUSR1 shows what a task is waiting for now (dtrain help signals).\n",
        out);
}

void print_counters(FILE *out)
{
    fputs(
        "What a task counts, by the names that /metrics has (--http). SIGUSR1 prints those of one\n"
        "task that are not 0; dtrain status shows the whole job, with --json all of them; the\n"
        "dtrain_ in front is left out there. A label \"task\" says whose a number is.\n\n",
        out);
    counters_help(out);
}

void print_signals(FILE *out)
{
    fputs(
        "  SIGTERM          a worker leaves and exits with 143, the others continue at once; if "
        "it\n"
        "                   is the chief, another worker takes over. A ps, a launcher, the last\n"
        "                   worker, or any worker with --on_sigterm=stop: as SIGINT, but with 143\n"
        "  SIGINT           the job ends cleanly: the steps in progress are finished, the chief\n"
        "                   takes a checkpoint, all tasks exit with 130, within --stop_timeout. A\n"
        "                   second signal ends that task at once. It counts, too, where a script\n"
        "                   starts a task by & (which ignores it), once the task has begun\n"
        "  SIGHUP           as SIGINT, but with 143; ignored if it was ignored at the start "
        "(nohup)\n"
        "  SIGUSR1          a task prints what it does and waits for; the launcher of a local\n"
        "                   cluster passes it on to all tasks\n"
        "  SIGUSR2          the chief takes a checkpoint now; the launcher passes it on\n"
        "  SIGKILL          the task is lost; when it is started again, it resumes (dtrain help\n"
        "                   exit-codes)\n",
        out);
}
