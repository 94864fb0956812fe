/* environment.c - environment variables: those in effect, and those of other launchers, which are
 * ignored (help topic "environment"). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "core/base/fields/help.h"
#include "core/base/log.h"

/* Variables in which other launchers give their number of tasks. */
static const struct foreign_runtime {
    const char *variable, *launcher; /* variable NULL ends the table */
} foreigners[] = {
    {"SLURM_NTASKS", "Slurm"},
    {"OMPI_COMM_WORLD_SIZE", "Open MPI"},
    {"PMI_SIZE", "MPICH"},
    {"WORLD_SIZE", "torchrun"},
    {0},
};

/* Variables that do not stand for a flag. */
static const struct own {
    const char *name, *help; /* name NULL ends the table */
} own[] = {
    {"TF_CONFIG", "cluster and task in TensorFlow's JSON form (dtrain help cluster)"},
    {"LISTEN_FDS", "1: a listening socket inherited from systemd, as --bind=fd:3"},
    {"NOTIFY_SOCKET", "socket on which systemd is notified once the task listens"},
    {"DTRAIN_CPU_KERNELS", "as --cpu_kernels"},
    {"CUDA_VISIBLE_DEVICES", "GPUs visible to CUDA, and so to dtrain"},
    {"TERM", "dumb or unset: never redraw a line, even on a terminal"},
    {"TMPDIR", "folder for temporary files of a ps"},
    {"DTRAIN_URL_TIMEOUT",
     "seconds without data, or below 1 KiB/s, before a request is retried (30)"},
    {"DTRAIN_URL_TRIES", "number of attempts per request to a URL (6)"},
    {"AWS_ACCESS_KEY_ID", "and the other variables of Amazon's tools, for s3:// (README, Storage)"},
    {"GOOGLE_APPLICATION_CREDENTIALS",
     "key file of a service account, for gs:// (README, Storage)"},
    {"STORAGE_EMULATOR_HOST", "address of an emulator, for gs://"},
    {"HADOOP_USER_NAME", "user name for hdfs://"},
    {"HADOOP_TOKEN", "delegation token for hdfs:// (README, Storage)"},
    {"HADOOP_TOKEN_FILE_LOCATION", "file of delegation tokens, as set by YARN"},
    {"ETCDCTL_USER", "user of etcd, as USER:PASSWORD or with ETCDCTL_PASSWORD"},
    {"ETCDCTL_CACERT",
     "and ETCDCTL_CERT, ETCDCTL_KEY: PEM files for etcds:// (README, Without lists)"},
    {"DTRAIN_ZOOKEEPER_AUTH", "USER:PASSWORD for ZooKeeper (digest authentication)"},
    {"http_proxy", "and libcurl's other proxy variables, for URLs"},
    {0},
};

/* Inherited sockets begin at descriptor 3 and are for this process only, not for its children. */
err environment_take_socket(struct run *run)
{
    const char *count = getenv("LISTEN_FDS"), *owner = getenv("LISTEN_PID");
    if (run->flags.listening.at || !count || !owner || strtol(owner, NULL, 10) != getpid())
        return OK;
    if (strcmp(count, "1") != 0)
        return fail(ERR_INPUT,
                    "LISTEN_FDS=%.16s in the environment: a task has one socket; which one is "
                    "said by --bind=fd:N, from fd:3 on",
                    count);
    run->flags.listening.at = "fd:3";
    return OK;
}

void environment_report_unused(const struct run *run)
{
    if (run->cluster.is_distributed || run->flags.launched != LAUNCHED_NO) return;
    const char *job = getenv("JOB_NAME");
    if (job && *job)
        log_line(LOG_INFO, "JOB_NAME=%s in the environment is not used: no hosts are given", job);
    for (const struct foreign_runtime *f = foreigners; f->variable; f++) {
        const char *value = getenv(f->variable);
        if (!value || strtol(value, NULL, 10) < 2) continue;
        log_line(LOG_INFO,
                 "%s=%s of %s is not used: this process trains by itself (dtrain help environment)",
                 f->variable, value, f->launcher);
    }
}

void print_environment(FILE *out)
{
    for (const struct field *flag = run_flags_object.fields; flag->name; flag++)
        if (flag->environment) fprintf(out, "  %-20s  as --%s\n", flag->environment, flag->name);
    for (const struct own *o = own; o->name; o++) help_row(out, o->name, o->help, HELP_LONG_NAMES);
    fputs("\nA flag beats its variable, which beats TF_CONFIG. JOB_NAME and TASK_INDEX count only\n"
          "where hosts are given too. Variables of other launchers count with --slurm or "
          "--ranks:\n\n",
          out);
    for (const struct foreign_runtime *f = foreigners; f->variable; f++)
        help_row(out, f->variable, f->launcher, HELP_LONG_NAMES);
    fputs(
        "\nUnder Slurm, srun dtrain --slurm=ps=2 SPEC.json is a cluster of the tasks of the step;\n"
        "mpirun -np 6 dtrain --ranks=ps=2 SPEC.json one of the ranks of this host, with\n"
        "--hostfile=FILE of several, and torchrun --no-python dtrain ... likewise.\n",
        out);
}
