/* launch.c - `dtrain --local_ps=N --local_workers=M SPEC.json`: a whole cluster on this host, or by
 * ssh on several.
 *
 * The launcher listens at a free port for every task before it starts the first, and hands the
 * sockets on, so nobody can take a port in between. It passes on what the tasks print and what
 * signals it gets, and ends when the last of them has ended, with the exit code of the first that
 * failed. No task outlives it: the kernel kills them when it dies. Of tasks on other hosts its
 * child is ssh, whose standard input carries the signals (cmd/launch/remote.h,
 * cmd/launch/keeper.h).
 */
#include "cmd/run/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/launch/keeper.h"
#include "cmd/launch/remote.h"
#include "cmd/run/descriptors.h"
#include "cmd/run/task_parts.h"
#include "core/base/clock.h"
#include "core/base/ending_signals.h"
#include "core/base/log.h"
#include "core/cluster/visit/visitor.h"
#include "net/transport.h"

enum {
    STOP_GRACE_MS = 2000,   /* from the tasks' own limit on ending well to SIGKILL */
    FOLLOW_LIMIT_MS = 2000, /* for others to end by themselves after one has failed */
    END_LIMIT_MS = 3000,    /* from asking them to end, when nothing can be saved, to SIGKILL */
    LOOK_MS = 1000,         /* between two checks of tasks that were killed */
    SIGNAL_CODE = 128, /* exit code of a task that signal N killed: 128 + N, as shells say it */
    ROOM_LEAST = 8,    /* tasks of each job, for a job that is scaled up later */
};

/* A process id may be given to another process once its task is reaped: nothing is sent to it then.
 */
static bool is_alive(const struct child *child)
{
    return child->pid > 0;
}

static void close_control(struct child *child)
{
    if (child->control >= 0) close(child->control);
    child->control = -1;
}

/* To kill a remote task, closes the pipe that its keeper reads; a second SIGKILL goes to the local
 * ssh, as the connection is dead. Other signals are lost while the pipe is full. */
static void send_signal(struct child *child, int signo)
{
    const char letter = keeper_letter(signo);
    if (!is_alive(child)) return;
    if (child->control < 0)
        kill(child->pid, signo);
    else if (signo == SIGKILL)
        close_control(child);
    else if (letter && write(child->control, &letter, 1) < 0)
        log_line(LOG_DEBUG, "%s: signal %d could not be sent", child->name, signo);
}

static void signal_all(struct launch *launch, int signo)
{
    for (int i = 0; i < launch->count; i++) send_signal(&launch->children[i], signo);
}

/* Whether a task that ended with this code is why the job fails, as far as is known now. One that
 * lost a peer only follows another failure, which may be seen later than its consequences; what
 * ends after it was asked to (stop_ms) is no cause either. */
static bool is_cause(const struct launch *launch, int code)
{
    if (code == EXIT_DONE) return false;
    return launch->code == EXIT_DONE ||
           (launch->code == EXIT_LOST_PEER && code != EXIT_LOST_PEER && !launch->stop_ms);
}

/* The signal that killed it, or 0. For a remote task it is in the keeper's exit code. */
static int killed_by(const struct child *child, int status)
{
    if (WIFSIGNALED(status)) return WTERMSIG(status);
    const int code = WEXITSTATUS(status);
    const bool is_signal = code > SIGNAL_CODE && code < SSH_FAILED && !exit_code_text(code);
    return child->slot && is_signal ? code - SIGNAL_CODE : 0;
}

static bool is_cut(const struct child *child, int status)
{
    return child->slot && WIFEXITED(status) && WEXITSTATUS(status) == SSH_FAILED;
}

/* "worker/1 was killed by signal 9 (Killed)" */
static void describe_end(const struct child *child, int status, char *text, size_t size)
{
    const int signo = killed_by(child, status);
    if (signo) {
        snprintf(text, size, "%s was killed by signal %d (%s)", child->name, signo,
                 strsignal(signo));
        return;
    }
    if (is_cut(child, status)) {
        snprintf(text, size, "%s: the connection to %s failed or was lost", child->name,
                 child->slot->login);
        return;
    }
    const char *meaning = exit_code_text(WEXITSTATUS(status));
    snprintf(text, size, "%s ended with exit code %d%s%s", child->name, WEXITSTATUS(status),
             meaning ? ": " : "", meaning ? meaning : "");
}

static uint64_t end_well_limit_ms(const struct launch *launch)
{
    return launch->run->flags.limits.stop_ms + STOP_GRACE_MS;
}

/* ---- who takes part ---- */

/* Connects to ps/0, which every job has and which reports the membership after each resize. */
static err watch_membership(struct launch *launch)
{
    if (!launch->run->spec.train.checkpoint.dir) return OK; /* resizing needs a checkpoint */
    launch->ps = (struct strings){&launch->children[0].address, 1};
    const struct visitor_options options = {
        .loop = launch->loop, .ps_hosts = &launch->ps, .only_first = true, .any_count = true};
    return visitor_open(&options, &launch->visitor);
}

/* false: the membership is not newer, or larger than this launcher has room for. */
static bool has_resized(const struct launch *launch, struct membership *ret)
{
    *ret = visitor_membership(launch->visitor);
    for (int job = 0; job < JOB_COUNT; job++)
        if (ret->count[job] < 1 || ret->count[job] > launch->room[job]) return false;
    return ret->resizes > launch->membership.resizes;
}

static bool has_place(const struct launch *launch, const struct child *child)
{
    return child->task < launch->membership.count[child->job];
}

/* Reserves the address of an ended task again; a worker's port may be another one. */
static err start_one(struct launch *launch, struct child *child)
{
    char address[ADDRESS_MAX];
    err e = OK;
    if (!child->slot && child->listen_fd < 0)
        e = address_reserve(child->address, address, &child->listen_fd);
    if (!e) e = launch_start(launch, child);
    if (e) return fail_prefix(e, "cannot start %s", child->name);
    launch->alive++;
    return OK;
}

static void stop(struct launch *launch, int signo);

static void start_later(struct launch *launch, struct child *child)
{
    if (launch->stop_ms || launch->failed_ms || !start_one(launch, child)) return;
    log_line(LOG_ERROR, "%s", error_text());
    launch->code = EXIT_FAILED;
    stop(launch, SIGTERM);
}

/* Where the job runs, with the flags that `dtrain scale` and `dtrain var` need */
static const char *where_text(const struct launch *launch)
{
    struct run *run = launch->run;
    const bool has_file = launch->key.path[0];
    const char *text = "on this host, --ps_hosts=";
    if (run->flags.ssh)
        text = arena_format(&run->arena, "by ssh on %d host%s, ports from %d on, %s%s%s--ps_hosts=",
                            run->slots.hosts, run->slots.hosts == 1 ? "" : "s",
                            (int)run->flags.cluster.base_port, has_file ? "--key_file=" : "",
                            launch->key.path, has_file ? " " : "");
    for (int i = 0; i < launch->membership.count[JOB_PS]; i++)
        text = arena_format(&run->arena, "%s%s%s", text, i ? "," : "", launch->children[i].address);
    return text;
}

/* "started 2 ps and 1 worker on this host, --ps_hosts=..." */
static void tell_tasks(const struct launch *launch, const char *what)
{
    const int *count = launch->membership.count;
    log_line(LOG_INFO, "%s %d ps and %d worker%s %s", what, count[JOB_PS], count[JOB_WORKER],
             count[JOB_WORKER] == 1 ? "" : "s", where_text(launch));
}

/* Starts tasks that were added. A task that is still leaving is started again when it has ended. */
static void follow_membership(struct launch *launch)
{
    struct membership now;
    if (!launch->visitor || !has_resized(launch, &now)) return;
    const bool other_ps = now.count[JOB_PS] != launch->membership.count[JOB_PS];
    launch->membership = now;
    for (int i = 0; i < launch->count; i++) {
        struct child *child = &launch->children[i];
        child->leaves |= is_alive(child) && !has_place(launch, child);
        if (!is_alive(child) && has_place(launch, child)) start_later(launch, child);
    }
    if (other_ps) tell_tasks(launch, "continues with");
}

/* ---- ends ---- */

/* Failed tasks are not restarted here, so the others must not wait for one. If it was killed, it
 * could not tell them, so they are asked to end at once. Without one of many workers they can still
 * save a last checkpoint; without a ps or the chief they cannot. */
static void plan_end(struct launch *launch, const struct child *child, bool is_killed)
{
    bool is_needed = child->job == JOB_PS || child->task == 0;
    launch->failed_ms = clock_ms();
    launch->ask_ms = is_killed ? 0 : FOLLOW_LIMIT_MS;
    launch->limit_ms = is_needed ? END_LIMIT_MS : end_well_limit_ms(launch);
}

/* Passes on the task's remaining output before logging how it ended. Consequences of the first
 * failure are logged only with --log_level=debug. */
static void note_end(struct launch *launch, struct child *child, int status)
{
    child->pid = 0;
    launch->alive--;
    close_control(child);
    int code = WIFSIGNALED(status) ? SIGNAL_CODE + WTERMSIG(status) : WEXITSTATUS(status);
    if (is_cut(child, status)) code = EXIT_LOST_PEER;
    char text[256];
    describe_end(child, status, text, sizeof text);
    task_output_pass(&child->out);
    task_output_pass(&child->err);
    const bool has_left = child->leaves && code == EXIT_DONE;
    child->leaves = false;
    if (has_left && has_place(launch, child)) start_later(launch, child);
    if (!is_cause(launch, code)) {
        log_line(LOG_DEBUG, "%s", text);
        return;
    }
    const bool is_wanted =
        launch->caught || code == EXIT_TERMINATED || code == EXIT_INTERRUPTED; /* dtrain stop */
    log_line(is_wanted ? LOG_INFO : LOG_ERROR, "%s", text);
    launch->code = code;
    const bool is_sudden = killed_by(child, status) || is_cut(child, status);
    if (!launch->failed_ms && !launch->stop_ms) plan_end(launch, child, is_sudden);
}

static void reap(struct launch *launch)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (int i = 0; i < launch->count; i++)
            if (launch->children[i].pid == pid) note_end(launch, &launch->children[i], status);
}

/* SIGHUP (the terminal is gone) counts as SIGTERM. Tasks take a second signal as "end at once". */
static void stop(struct launch *launch, int signo)
{
    if (signo == SIGHUP) signo = SIGTERM;
    if (!launch->stop_ms) {
        launch->stop_ms = clock_ms();
        launch->limit_ms = end_well_limit_ms(launch);
    }
    launch->caught = signo;
    signal_all(launch, signo);
}

static void ask_chief(struct launch *launch, int signo)
{
    send_signal(&launch->children[launch->room[JOB_PS]], signo);
}

static void take_signal(struct launch *launch, int signo)
{
    if (signo == SIGCHLD)
        reap(launch);
    else if (signo == SIGUSR1)
        signal_all(launch, signo);
    else if (signo == SIGUSR2)
        ask_chief(launch, signo);
    else
        stop(launch, signo);
}

static void read_signals(void *context)
{
    struct launch *launch = context;
    struct signalfd_siginfo info;
    while (read(launch->signals, &info, sizeof info) == (ssize_t)sizeof info)
        take_signal(launch, (int)info.ssi_signo);
}

/* Kills tasks that exceed their limit. Returns ms until the next check. */
static int enforce_limits(struct launch *launch)
{
    uint64_t now = clock_ms(), limit = 0;
    if (launch->stop_ms) {
        limit = launch->stop_ms + launch->limit_ms;
        if (now >= limit) signal_all(launch, SIGKILL);
    } else if (launch->failed_ms) {
        limit = launch->failed_ms + launch->ask_ms;
        if (now >= limit) {
            launch->stop_ms = now;
            signal_all(launch, SIGTERM);
            limit = now + launch->limit_ms;
        }
    }
    if (!limit) return -1;
    return limit > now ? (int)(limit - now) : LOOK_MS;
}

/* Runs until every task has ended. Until one fails or a signal comes, that takes as long as the
 * tasks' own limits allow. */
static void attend(struct launch *launch)
{
    while (launch->alive > 0) {
        const int limit_ms = enforce_limits(launch);
        if (launch->visitor)
            visitor_poll(launch->visitor, limit_ms);
        else
            loop_poll(launch->loop, limit_ms);
        follow_membership(launch);
    }
    for (int i = 0; i < launch->count; i++) {
        task_output_pass(&launch->children[i].out);
        task_output_pass(&launch->children[i].err);
    }
}

/* As SIGHUP is after nohup */
static bool is_ignored(int signo)
{
    struct sigaction action;
    return sigaction(signo, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

/* Tasks get the original mask, as they watch signals themselves. SIGUSR1 and SIGUSR2 are ignored,
 * which exec keeps, until a task watches them; the signalfd here still gets them. SIGPIPE: if the
 * reader of our output goes away, the tasks continue. */
static err open_signals(struct launch *launch)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    sigset_t mask = ending_signals();
    if (is_ignored(SIGHUP)) sigdelset(&mask, SIGHUP);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGUSR1);
    sigaddset(&mask, SIGUSR2);
    sigprocmask(SIG_BLOCK, &mask, &launch->old_mask);
    launch->signals = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    if (launch->signals < 0) return fail(ERR_IO, "cannot watch signals: %s", strerror(errno));
    return loop_watch(launch->loop, launch->signals, read_signals, launch);
}

/* The launcher computes nothing and is in no hurry, so its loop never spins. */
static err open_loop(struct launch *launch)
{
    TRY(launch_key_open(launch->run, &launch->key));
    TRY(run_open_loop(launch->run, &launch->loop));
    loop_set_spin(launch->loop, 0);
    if (!launch->key.path[0]) return OK;
    TRY(tls_keys_of_file(launch->key.path, &launch->keys));
    loop_set_keys(launch->loop, launch->keys);
    return OK;
}

/* On another host only the task itself can find out whether its port is free. Nobody connects to a
 * worker, so workers that may be added later need no port yet. */
static err reserve_one(struct launch *launch, struct child *child)
{
    struct run *run = launch->run;
    char address[ADDRESS_MAX] = "127.0.0.1:0";
    if (child->slot) return remote_address(run, child->slot, &child->address);
    if (child->job == JOB_PS || has_place(launch, child))
        TRY(address_reserve("127.0.0.1:0", address, &child->listen_fd));
    child->address = arena_string(&run->arena, address);
    return OK;
}

static void name_child(struct launch *launch, int i)
{
    struct child *child = &launch->children[i];
    const int ps_room = launch->room[JOB_PS];
    if (launch->run->flags.ssh) child->slot = &launch->run->slots.at[i];
    child->job = i < ps_room ? JOB_PS : JOB_WORKER;
    child->task = i < ps_room ? i : i - ps_room;
    task_name(child->job, child->task, child->name);
    child->prefix = arena_format(&launch->run->arena, "%s: ", child->name);
}

/* Sets names and addresses of all tasks, parameter servers first. */
static err reserve(struct launch *launch)
{
    struct run *run = launch->run;
    if (run->flags.ssh) remote_choose_ports(run);
    for (int i = 0; i < launch->count; i++) {
        struct child *child = &launch->children[i];
        name_child(launch, i);
        TRY(reserve_one(launch, child));
        const char *before = launch->hosts[child->job];
        launch->hosts[child->job] = arena_format(&run->arena, "%s%s%s", before ? before : "",
                                                 before ? "," : "", child->address);
    }
    return OK;
}

/* A required GPU that is missing is reported once, before any task is started. */
static err check_device(const struct run *run)
{
    const struct device_request request = request_of(run);
    if (run->flags.ssh) return OK; /* no task runs on this host */
    return device_request_check(&request);
}

/* In-graph replication cannot be resized: no room for more tasks. */
static int room_of(const struct run *run, enum job job)
{
    const int64_t count = job == JOB_PS ? run->flags.local_ps : run->flags.local_workers;
    if (run->flags.ssh) return cluster_room(&run->cluster, job);
    return (int)(count < ROOM_LEAST && !spec_is_in_graph(&run->spec) ? ROOM_LEAST : count);
}

/* Blocks signals first: threads of a GPU driver would inherit the mask and must not get them. */
static err launch_open(struct launch *launch, struct run *run)
{
    const int ps = (int)run->flags.local_ps, workers = (int)run->flags.local_workers;
    const int ps_room = room_of(run, JOB_PS), worker_room = room_of(run, JOB_WORKER);
    const int count = ps_room + worker_room;
    *launch = (struct launch){.run = run,
                              .room = {ps_room, worker_room},
                              .membership = {0, {ps, workers}},
                              .signals = -1,
                              .spec_fd = -1};
    TRY(task_descriptors_check_local(ps, workers));
    launch->children = calloc((size_t)count, sizeof *launch->children);
    if (!launch->children) return fail(ERR_MEMORY, "no memory for %d tasks", count);
    launch->count = count;
    for (int i = 0; i < count; i++)
        launch->children[i] =
            (struct child){.control = -1, .listen_fd = -1, .out.from = -1, .err.from = -1};
    TRY(open_loop(launch));
    TRY(open_signals(launch));
    TRY(check_device(run));
    TRY(reserve(launch));
    return launch_keep_spec(launch);
}

static void launch_close(struct launch *launch)
{
    visitor_close(launch->visitor);
    for (int i = 0; i < launch->count; i++) {
        task_output_close(&launch->children[i].out);
        task_output_close(&launch->children[i].err);
        close_control(&launch->children[i]);
        if (launch->children[i].listen_fd >= 0) close(launch->children[i].listen_fd);
    }
    loop_close(launch->loop);
    tls_keys_close(launch->keys);
    if (launch->signals >= 0) close(launch->signals);
    if (launch->spec_fd >= 0) close(launch->spec_fd);
    launch_key_close(&launch->key);
    free(launch->children);
}

static err start_all(struct launch *launch)
{
    for (int i = 0; i < launch->count; i++)
        if (has_place(launch, &launch->children[i])) TRY(start_one(launch, &launch->children[i]));
    report_version(launch->run);
    tell_tasks(launch, "started");
    return watch_membership(launch);
}

/* If tasks had to be killed after a signal, that signal is the exit code, not SIGKILL. */
static int end_code(const struct launch *launch)
{
    bool is_killed = launch->code == SIGNAL_CODE + SIGKILL;
    return launch->caught && is_killed ? SIGNAL_CODE + launch->caught : launch->code;
}

int run_local(struct run *run)
{
    struct launch launch;
    err e = launch_open(&launch, run);
    if (!e) e = start_all(&launch);
    int code = e ? report_error(e) : EXIT_DONE;
    if (e) stop(&launch, SIGTERM);
    attend(&launch);
    if (!e) code = end_code(&launch);
    launch_close(&launch);
    return code;
}
