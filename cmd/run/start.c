/* start.c - starts one task of the launcher. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cmd/launch/remote.h"
#include "cmd/run/launch.h"
#include "core/base/files/url.h"
#include "core/base/log.h"
#include "core/cluster/runner/task.h"
#include "kernels/kernels.h"

static const char self[] = "/proc/self/exe"; /* even if the file was replaced meanwhile */

/* Arguments: each flag once, those that the launcher adds, and the spec */
enum { FLAGS_MAX = 96 };

struct words {
    char **at;
    int count;
};

static void add_strings(struct words *words, struct arena *arena, const struct field *field,
                        const struct strings *list)
{
    for (int i = 0; i < list->count; i++)
        words->at[words->count++] = arena_format(arena, "--%s=%s", field->name, list->at[i]);
}

/* A flag as a person would have typed it. */
static void add_flag(struct words *words, struct arena *arena, const struct field *field,
                     const struct run_flags *flags)
{
    const void *value = (const char *)flags + field->offset;
    char *word = NULL;
    switch (field->type) {
    case FIELD_INT:
        word = arena_format(arena, "--%s=%lld", field->name, (long long)*(const int64_t *)value);
        break;
    case FIELD_FLOAT:
        word = arena_format(arena, "--%s=%.17g", field->name, *(const double *)value);
        break;
    case FIELD_SECONDS:
        word =
            arena_format(arena, "--%s=%.17g", field->name, (double)*(const uint64_t *)value / 1000);
        break;
    case FIELD_BOOL:
        word = arena_format(arena, "--%s=%s", field->name, *(const bool *)value ? "true" : "false");
        break;
    case FIELD_STRING:
        word = arena_format(arena, "--%s=%s", field->name, *(const char *const *)value);
        break;
    case FIELD_ENUM:
        word = arena_format(arena, "--%s=%s", field->name, field->choices[*(const int *)value]);
        break;
    case FIELD_STRINGS:
        add_strings(words, arena, field, value);
        return;
    default: /* flags have no other types */
        return;
    }
    words->at[words->count++] = word;
}

/* Flags that add_membership sets to their current values */
static bool is_of_membership(const struct field *flag)
{
    return strcmp(flag->name, "ps") == 0 || strcmp(flag->name, "workers") == 0;
}

/* An address can belong to one task only: the chief, which knows of all. */
static bool is_of_chief(const struct field *flag)
{
    return strcmp(flag->name, "http") == 0;
}

/* Flags that add_proof sets for a task on another host, which may lack the file or the variable */
static bool is_of_proof(const struct field *flag)
{
    return strcmp(flag->name, "key_file") == 0 || strcmp(flag->name, "insecure") == 0;
}

static void add_proof(struct words *words, struct arena *arena, const struct launch *launch)
{
    if (launch->key.bytes) words->at[words->count++] = arena_string(arena, key_word);
    if (launch->run->flags.cluster.insecure)
        words->at[words->count++] = arena_string(arena, "--insecure");
}

/* Adds flags given to the launcher that are for this task, too. */
static void add_given(struct words *words, struct run *run, enum run_kind task, bool is_elsewhere)
{
    const unsigned both = RUN_LAUNCHER | task;
    for (const struct field *flag = run_flags_object.fields; flag->name; flag++) {
        const bool is_for_both = !flag->takers || (flag->takers & both) == both;
        if (is_for_both && !is_of_membership(flag) && !(is_elsewhere && is_of_proof(flag)) &&
            (task == RUN_CHIEF || !is_of_chief(flag)) &&
            flags_given(&run_flags_object, run->argc, run->argv, flag->name))
            add_flag(words, &run->arena, flag, &run->flags);
    }
}

static void add_membership(struct words *words, struct arena *arena,
                           const struct membership *membership)
{
    words->at[words->count++] = arena_format(arena, "--ps=%d", membership->count[JOB_PS]);
    words->at[words->count++] = arena_format(arena, "--workers=%d", membership->count[JOB_WORKER]);
    if (!membership->resizes) return;
    words->at[words->count++] =
        arena_format(arena, "--resizes=%llu", (unsigned long long)membership->resizes);
}

/* Passes on HDFS servers without user names. Not others: their URLs may contain credentials. */
static void add_storage(struct words *words, struct arena *arena)
{
    const char *list = "", *server;
    for (int i = 0; (server = url_server(i)); i++)
        if (strstr(server, "hdfs://") && !strchr(server, '@'))
            list = arena_format(arena, "%s%s%s", list, *list ? "," : "", server);
    if (*list) words->at[words->count++] = arena_format(arena, "--storage=%s", list);
}

/* The task's command line, ending with NULL. A ps gets no spec, but its setup from the chief. */
static char **command_line(struct launch *launch, const struct child *child)
{
    struct run *run = launch->run;
    struct arena *arena = &run->arena;
    const enum run_kind kind = child->job == JOB_PS ? RUN_PS
                               : child->task == 0   ? RUN_CHIEF
                                                    : RUN_WORKER;
    const char *launched =
        kind == RUN_CHIEF && !child->slot && log_is_terminal() ? "terminal" : "yes";
    size_t words_max = FLAGS_MAX + (size_t)run->flags.set.count;
    struct words words = {.at = arena_array(arena, words_max, sizeof *words.at)};
    words.at[words.count++] = run->argv[0];
    words.at[words.count++] = arena_format(arena, "--job_name=%s", job_name(child->job));
    words.at[words.count++] = arena_format(arena, "--task_index=%d", child->task);
    words.at[words.count++] = arena_format(arena, "--ps_hosts=%s", launch->hosts[JOB_PS]);
    words.at[words.count++] = arena_format(arena, "--worker_hosts=%s", launch->hosts[JOB_WORKER]);
    add_membership(&words, arena, &launch->membership);
    if (!child->slot)
        words.at[words.count++] = arena_format(arena, "--bind=fd:%d", child->listen_fd);
    words.at[words.count++] = arena_format(arena, "--launched=%s", launched);
    if (child->slot) add_proof(&words, arena, launch);
    add_given(&words, run, kind, child->slot != NULL);
    if (kind == RUN_PS) {
        add_storage(&words, arena);
        return words.at;
    }
    words.at[words.count++] = arena_string(arena, "--");
    words.at[words.count++] = arena_string(arena, run->spec_path);
    return words.at;
}

/* Standard input is the copy of the spec, which every worker reads from its start, or /dev/null. */
static void open_input(const struct launch *launch)
{
    char path[32] = "/dev/null";
    if (launch->spec_fd >= 0) snprintf(path, sizeof path, "/proc/self/fd/%d", launch->spec_fd);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) dup2(fd, STDIN_FILENO);
}

_Noreturn static void become_ssh(char **words, int input)
{
    dup2(input, STDIN_FILENO);
    execvp(words[0], words);
    log_line(LOG_ERROR, "cannot start %s: %s", words[0], strerror(errno));
    _exit(EXIT_FAILED);
}

/* Runs in the child process. In a process group of its own it does not get Ctrl-C from the
 * terminal, but once, from the launcher. The kernel kills it with the launcher only from prctl on,
 * so checks that the launcher has not died before. */
_Noreturn static void become(const struct launch *launch, const struct child *child, char **words,
                             pid_t launcher, int input)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(EXIT_FAILED);
    tasks_reset_signals();
    sigprocmask(SIG_SETMASK, &launch->old_mask, NULL);
    if (child->slot) become_ssh(words, input);
    open_input(launch);
    fcntl(child->listen_fd, F_SETFD, 0);
    cpu_environment_prepare(words); /* executes the program, or returns */
    execv(self, words);
    log_line(LOG_ERROR, "cannot start %s: %s", self, strerror(errno));
    _exit(EXIT_FAILED);
}

/* Creates the pipe for the task's output `to`: its read end stays here and does not block. */
static err open_stream(struct launch *launch, struct child *child, int to, int *ret_write)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC)) return fail(ERR_IO, "cannot make a pipe: %s", strerror(errno));
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    struct task_output *lines = to == STDOUT_FILENO ? &child->out : &child->err;
    const bool is_log = to == STDERR_FILENO;
    const char *prefix =
        is_log && log_is_json() ? "" : child->prefix; /* JSON lines contain the task */
    task_output_pass(lines); /* of the previous task: other processes may hold its pipe open */
    task_output_close(lines);
    *lines = (struct task_output){.from = fds[0], .to = to, .prefix = prefix};
    *ret_write = fds[1];
    return task_output_watch(lines, launch->loop);
}

/* Closes the listening socket here: while any copy is open, the port accepts connections even if
 * the task is gone. */
static err spawn(struct launch *launch, struct child *child, int input, int out, int error)
{
    char **words = command_line(launch, child);
    if (child->slot) TRY(remote_words(launch->run, child->slot, words, &words));
    pid_t launcher = getpid(), pid = fork();
    if (pid < 0) return fail(ERR_IO, "fork: %s", strerror(errno));
    if (pid == 0) {
        dup2(out, STDOUT_FILENO);
        dup2(error, STDERR_FILENO);
        become(launch, child, words, launcher, input);
    }
    child->pid = pid;
    if (child->listen_fd >= 0) close(child->listen_fd);
    child->listen_fd = -1;
    return OK;
}

/* For ssh: creates the pipe that brings the task its key and signals. */
static err open_control(const struct launch *launch, struct child *child, int *ret_read)
{
    int fds[2];
    if (!child->slot) return OK;
    if (pipe2(fds, O_CLOEXEC)) return fail(ERR_IO, "cannot make a pipe: %s", strerror(errno));
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    child->control = fds[1];
    *ret_read = fds[0];
    return launch->key.bytes ? launch_key_send(&launch->key, child->control) : OK;
}

err launch_start(struct launch *launch, struct child *child)
{
    int input = -1, out = -1, error = -1;
    err e = open_stream(launch, child, STDOUT_FILENO, &out);
    if (!e) e = open_stream(launch, child, STDERR_FILENO, &error);
    if (!e) e = open_control(launch, child, &input);
    if (!e) e = spawn(launch, child, input, out, error);
    if (input >= 0) close(input);
    if (out >= 0) close(out);
    if (error >= 0) close(error);
    return e;
}

err launch_keep_spec(struct launch *launch)
{
    if (strcmp(launch->run->spec_path, "-") != 0) return OK;
    if (launch->run->flags.ssh)
        return fail(ERR_INPUT, "--ssh: each worker reads the spec by its name, not from here");
    launch->spec_fd = memfd_create("dtrain-spec", MFD_CLOEXEC);
    if (launch->spec_fd < 0) return fail(ERR_IO, "cannot keep the spec: %s", strerror(errno));
    if (json_dumpfd(launch->run->spec.json, launch->spec_fd, JSON_PRESERVE_ORDER))
        return fail(ERR_IO, "cannot keep the spec for the workers");
    return OK;
}
