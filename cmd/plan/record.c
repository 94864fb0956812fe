/* record.c - see record.h. */
#include "cmd/plan/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/status/status.h"
#include "core/base/clock.h"
#include "core/base/files/file_system.h"

enum {
    RECORD_BYTES_MAX = 64 << 20,
    STEPS_LEAST = 10, /* of a worker, and updates of a ps */
    TRIES = 6,        /* each with LONGER times as many steps, as ps report once a second */
    LONGER = 8,
    OWN_WORDS = 20,
    PATH_MAX_BYTES = 64,
};

/* ---- reports ---- */

static double of(const struct task_status *t, enum counter c)
{
    return t->counters.at[c];
}

/* Adds up the update times of all ps: each has a part of the variables. */
static void take(const struct job_status *s, struct run_record *ret)
{
    double seconds = 0, updating = 0;
    *ret = (struct run_record){0};
    for (int i = 0; i < s->count; i++) {
        const struct task_status *t = &s->tasks[i];
        if (t->is_ps && of(t, COUNTER_UPDATES) >= STEPS_LEAST) {
            updating += of(t, COUNTER_TIME_APPLY) / of(t, COUNTER_UPDATES);
            ret->ps++;
        }
        if (t->is_ps || of(t, COUNTER_STEPS) < STEPS_LEAST) continue;
        seconds +=
            of(t, COUNTER_TIME_COMPUTE) + of(t, COUNTER_TIME_DATA) + of(t, COUNTER_TIME_HOOKS);
        ret->steps += of(t, COUNTER_STEPS);
        ret->workers++;
    }
    if (ret->ps && ret->workers)
        ret->costs = (struct plan_costs){true, seconds / ret->steps, updating};
}

static err read_json(const char *name, json_t *json, struct run_record *ret)
{
    struct job_status s = {0};
    err e = job_status_add(&s, json, clock_ms());
    if (e)
        e = fail(ERR_INPUT, "%s: expected what --result has written, with \"tasks\"", name);
    else
        take(&s, ret);
    job_status_free(&s);
    return e;
}

err record_read(const char *path, struct run_record *ret)
{
    json_error_t error;
    FILE *file;
    const err opened = file_open_text(path, RECORD_BYTES_MAX, &file);
    if (opened) return fail_prefix(opened, "--record");
    json_t *json = json_loadf(file, 0, &error);
    fclose(file);
    if (!json) return fail(ERR_INPUT, "--record=%s: %s", path, error.text);
    err e = read_json("--record", json, ret);
    json_decref(json);
    if (!e && !ret->costs.has_any)
        e = fail(ERR_INPUT,
                 "--record=%s: no worker and no ps in it has told of %d steps: the run was too "
                 "short",
                 path, STEPS_LEAST);
    return e;
}

/* ---- a short run ---- */

_Noreturn static void become_run(char **words)
{
    const int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (none >= 0) dup2(none, STDIN_FILENO);
    if (none >= 0) dup2(none, STDOUT_FILENO);
    execv("/proc/self/exe", words);
    _exit(EXIT_FAILED);
}

static err run(char **words)
{
    int status;
    const pid_t task = fork();
    if (task < 0) return fail(ERR_IO, "fork: %s", strerror(errno));
    if (task == 0) become_run(words);
    while (waitpid(task, &status, 0) < 0)
        if (errno != EINTR) return fail(ERR_IO, "wait: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_DONE) return OK;
    return fail(ERR_INPUT, "--measure: the short run did not come to its end, as is said above");
}

/* Where flags can be added, which override earlier ones: before "--" or at the end. */
static int flags_end(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0) return i;
    return argc;
}

/* Runs this many steps, keeps nothing, and runs no commands of the spec's hooks. */
static err run_steps(int argc, char **argv, int64_t steps, const char *result)
{
    char last_step[64], to[PATH_MAX_BYTES + 16];
    snprintf(last_step, sizeof last_step, "--set=train.last_step=%lld", (long long)steps);
    snprintf(to, sizeof to, "--result=%s", result);
    char *own[OWN_WORDS] = {"--local_ps=1",
                            "--local_workers=1",
                            "--log_level=warning",
                            "--set=train.epochs=0",
                            "--set=train.num_steps=0",
                            "--set=train.daily=false",
                            "--set=train.checkpoint_dir=null",
                            "--set=train.save_checkpoint_secs=0",
                            "--set=train.save_checkpoint_steps=0",
                            "--set=train.keep_best=0",
                            "--set=train.restore_best=false",
                            "--set=train.publish=null",
                            "--set=train.summary_dir=null",
                            "--set=train.hooks=[]",
                            last_step,
                            to};
    char **words = calloc((size_t)argc + OWN_WORDS + 1, sizeof *words);
    const int end = flags_end(argc, argv);
    int count = 0;
    if (!words) return fail(ERR_MEMORY, "no memory for the command line");
    for (int i = 0; i < end; i++) words[count++] = argv[i];
    for (int i = 0; own[i]; i++) words[count++] = own[i];
    for (int i = end; i < argc; i++) words[count++] = argv[i];
    const err e = run(words);
    free(words);
    return e;
}

static err measure_once(int argc, char **argv, int64_t steps, struct run_record *ret)
{
    char result[PATH_MAX_BYTES];
    const int file = memfd_create("dtrain-result", MFD_CLOEXEC);
    if (file < 0) return fail(ERR_IO, "--measure: %s", strerror(errno));
    snprintf(result, sizeof result, "/proc/%d/fd/%d", (int)getpid(), file);
    err e = run_steps(argc, argv, steps, result);
    json_error_t error;
    json_t *json = e || lseek(file, 0, SEEK_SET) < 0 ? NULL : json_loadfd(file, 0, &error);
    if (!e && !json) e = fail(ERR_INPUT, "--measure: the short run has left no result");
    if (!e) e = read_json("--measure", json, ret);
    json_decref(json);
    close(file);
    return e;
}

err record_measure(int argc, char **argv, int64_t steps, struct run_record *ret)
{
    for (int i = 0; i < TRIES; i++) {
        TRY(measure_once(argc, argv, steps, ret));
        if (ret->costs.has_any) return OK;
        steps *= LONGER;
    }
    return fail(ERR_INPUT, "--measure: %lld steps are over too soon to be measured",
                (long long)(steps / LONGER));
}
