/* topics.c - topics of `dtrain help` about a run as a process. */
#include <string.h>

#include "cmd/cmd.h"

enum { FLAGS_SHOWN_MAX = 64 };

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), wanted = strlen(ending);
    return length > wanted && strcmp(text + length - wanted, ending) == 0;
}

/* The flags of this kind are rows of limits.h. */
void print_timeouts(FILE *out)
{
    struct field limits[FLAGS_SHOWN_MAX + 1] = {{0}};
    int count = 0;
    for (const struct field *flag = run_flags_object.fields; flag->name; flag++)
        if (ends_with(flag->name, "_timeout") && count < FLAGS_SHOWN_MAX) limits[count++] = *flag;
    fputs("Every wait has a limit, and who waits says for whom and until when, every 10 s:\n\n",
          out);
    flags_help(out, &(struct object){.name = "timeouts", .fields = limits});
    fputs(
        "\ntrain.worker_timeout_secs of the spec says how long the others wait for a worker that\n"
        "was lost. A limit that ends the job is exit code 129: the same command may succeed when\n"
        "it is started again. SIGUSR1 shows what a task waits for now (dtrain help signals).\n",
        out);
}

void print_signals(FILE *out)
{
    fputs(
        "  SIGTERM          to a worker: it leaves with 143, and the others go on at once; where "
        "it is\n"
        "                   the chief another one leads. To a ps or a launcher, to the last "
        "worker, or\n"
        "                   with --on_sigterm=stop: as SIGINT, with 143\n"
        "  SIGINT           the job ends well: the steps that are being computed are the last, "
        "the\n"
        "                   chief has a checkpoint made, all tasks end with 130. A second signal "
        "ends\n"
        "                   that task at once; --stop_timeout is how long all may take\n"
        "  SIGHUP           as SIGINT, with 143, unless it is ignored from the start (nohup)\n"
        "  SIGUSR1          a task says what it does and waits for; the launcher of a local "
        "cluster\n"
        "                   passes it on to all\n"
        "  SIGUSR2          the chief has a checkpoint made now; the launcher passes it on to it\n"
        "  SIGKILL          the task is lost: started again, it goes on (dtrain help exit-codes)\n",
        out);
}
