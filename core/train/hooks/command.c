/* command.c - a shell command at some moments of a run: to copy a checkpoint away, to tell
 * somebody.
 *
 * It runs beside the steps, in a process group of its own, one at a time for each hook; moments
 * that come meanwhile wait in a queue, which always has a place for the end; where it is full the
 * oldest of the same kind is left out, whose checkpoint is the first to be removed. A command that
 * takes longer than its limit is killed with everything that it started. At the end the last ones
 * are waited for; that one of them fails keeps no later one from running. What it prints goes to
 * standard error. It learns what happened from its environment:
 *
 *     DTRAIN_EVENT          start, checkpoint, evaluation, end
 *     DTRAIN_STEP           the global step
 *     DTRAIN_SPEC_NAME      the spec's name
 *     DTRAIN_LOSS           of the evaluation at `evaluation`, else of the last step
 *     DTRAIN_CHECKPOINT     prefix of the newest checkpoint of this process, once there is one
 *     DTRAIN_METRIC_<NAME>  of the newest evaluation, once there is one: DTRAIN_METRIC_ACCURACY
 *     DTRAIN_CODE           the exit code of the job, at `end`
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/train/checkpoint/checkpoints.h"
#include "core/train/hooks/values.h"

enum moment { AT_START, AT_CHECKPOINT, AT_EVALUATION, AT_END, MOMENTS };
enum on_failure { FAILURE_WARNS, FAILURE_STOPS };
/* A killed process is gone within moments, unless the system itself holds it (a dead file server):
 * it is waited for so long, then left to the system. */
enum { KILLED_WAIT_NS = 1000000000, PAUSE_MS = 5, PAUSES_MAX = 1000 / PAUSE_MS };
enum { GROUPS_MAX = 64 };
enum { COMMAND_SHOWN_MAX = 48, DESCRIPTION_MAX = COMMAND_SHOWN_MAX + 48 };
enum {
    QUEUE_MAX = 8 /* the end has a place of its own */,
    OWN_VARIABLES_MAX = 6 + HOOK_VALUES_MAX
};

struct command_attributes {
    struct strings at;
    const char *command;
    double timeout_secs;
    int on_failure; /* enum on_failure */
};

/* A queued run of the command, with the environment it will have. */
struct pending {
    struct arena arena;
    enum moment moment;
    uint64_t step;
    char **environment;
};

struct state {
    const struct command_attributes *attributes;
    bool is_wanted[MOMENTS];
    bool has_started; /* the moment `start` is over */
    pid_t pid;        /* of the shell that runs, and its process group; 0: none */
    enum moment running;
    uint64_t limit_ns;        /* when the one that runs must have ended */
    bool is_killed;           /* the shell was killed, and has not ended yet */
    pid_t groups[GROUPS_MAX]; /* process groups of shells that have ended; their members may be
                                 children of this process */
    int group_count;
    struct pending queue[QUEUE_MAX + 1];
    int queued;
    char checkpoint[CHECKPOINT_PATH_MAX];
    bool has_evaluation;
    int values; /* of an evaluation: the loss, then metrics */
    const char *names[HOOK_VALUES_MAX];
    double newest[HOOK_VALUES_MAX];
};

static const char *const moment_names[MOMENTS] = {[AT_START] = "start",
                                                  [AT_CHECKPOINT] = "checkpoint",
                                                  [AT_EVALUATION] = "evaluation",
                                                  [AT_END] = "end"};
static const char *const failure_names[] = {
    [FAILURE_WARNS] = "warn", [FAILURE_STOPS] = "stop", NULL};

static const struct field fields[] = {
    FIELD_OF(
        "at", STRINGS, struct command_attributes, at, .count_min = 1, .count_max = MOMENTS,
        .help = "when: start, checkpoint, evaluation, end; while it runs 8 more wait, of which the "
                "oldest of a kind makes room, with a warning; the end always waits"),
    FIELD_OF(
        "command", STRING, struct command_attributes, command,
        .help =
            "command for sh -c; its environment has DTRAIN_EVENT, DTRAIN_STEP, DTRAIN_CHECKPOINT, "
            "DTRAIN_LOSS, DTRAIN_METRIC_<NAME>, DTRAIN_SPEC_NAME and DTRAIN_CODE"),
    FIELD_OF("timeout_secs", FLOAT, struct command_attributes, timeout_secs, .fallback = "60",
             .min = 0.001, .max = 86400, .help = "seconds after which the command is killed"),
    FIELD_OF("on_failure", ENUM, struct command_attributes, on_failure, .fallback = "\"warn\"",
             .choices = failure_names,
             .help = "what a non-zero exit code or a timeout means: a warning, or the end of the "
                     "job with an error"),
    {0},
};

static err find_moments(const struct command_attributes *a, bool ret[MOMENTS])
{
    for (int i = 0; i < a->at.count; i++) {
        char path[32];
        int moment = 0;
        snprintf(path, sizeof path, "at[%d]", i);
        const struct name_list list = {moment_names, MOMENTS, path, "moment"};
        TRY(hook_name_find(&list, a->at.at[i], &moment));
        ret[moment] = true;
    }
    return OK;
}

static err check(const void *attributes, const struct spec *spec)
{
    bool is_wanted[MOMENTS] = {false};
    return find_moments(attributes, is_wanted);
}

static err begin(void *state, const void *attributes, const struct run_view *view)
{
    struct state *s = state;
    s->attributes = attributes;
    s->values = evaluation_names(view->session, s->names);
    return find_moments(attributes, s->is_wanted);
}

/* ---- the environment ---- */

/* "in_top_5" as the end of a variable's name; whatever a shell would not take becomes _. */
static char *metric_variable(struct arena *arena, const char *name, double value)
{
    char *text = isnan(value) ? arena_format(arena, "DTRAIN_METRIC_%s=nan", name)
                              : arena_format(arena, "DTRAIN_METRIC_%s=%.9g", name, value);
    for (char *c = text; *c && *c != '='; c++)
        *c = isalnum((unsigned char)*c) ? (char)toupper((unsigned char)*c) : '_';
    return text;
}

static int own_variables(const struct state *s, const struct run_view *view, struct pending *p,
                         char *ret[OWN_VARIABLES_MAX])
{
    struct arena *arena = &p->arena;
    const double loss = p->moment == AT_EVALUATION ? s->newest[0] : view->loss;
    int count = 0;
    ret[count++] = arena_format(arena, "DTRAIN_EVENT=%s", moment_names[p->moment]);
    ret[count++] = arena_format(arena, "DTRAIN_STEP=%" PRIu64, view->global_step);
    ret[count++] = arena_format(arena, "DTRAIN_SPEC_NAME=%s", view->spec->name);
    if (view->own_steps > 0 || p->moment == AT_EVALUATION)
        ret[count++] = arena_format(arena, "DTRAIN_LOSS=%.9g", loss);
    if (*s->checkpoint) ret[count++] = arena_format(arena, "DTRAIN_CHECKPOINT=%s", s->checkpoint);
    for (int i = 1; s->has_evaluation && i < s->values; i++)
        ret[count++] = metric_variable(arena, s->names[i], s->newest[i]);
    return count;
}

/* The environment of dtrain itself, without the variables that describe this run or this process: a
 * dtrain that the command starts must not inherit those. */
static bool is_of_a_run(const char *variable)
{
    static const char *const names[] = {
        "DTRAIN_EVENT=", "DTRAIN_STEP=",       "DTRAIN_SPEC_NAME=", "DTRAIN_LOSS=",
        "DTRAIN_CODE=",  "DTRAIN_CHECKPOINT=", "DTRAIN_METRIC_",    "DTRAIN_ENVIRONMENT_PREPARED="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0) return true;
    return false;
}

static void make_environment(const struct state *s, const struct run_view *view, int code,
                             struct pending *p)
{
    char *own[OWN_VARIABLES_MAX];
    size_t count = (size_t)own_variables(s, view, p, own), inherited = 0;
    if (p->moment == AT_END) own[count++] = arena_format(&p->arena, "DTRAIN_CODE=%d", code);
    while (environ[inherited]) inherited++;
    p->environment = arena_array(&p->arena, count + inherited + 1, sizeof(char *));
    memcpy(p->environment, own, count * sizeof(char *));
    for (size_t i = 0; i < inherited; i++)
        if (!is_of_a_run(environ[i])) p->environment[count++] = environ[i];
}

/* ---- the process ---- */

/* Several hooks may have commands at the same moment: this one is named by its first words. */
static const char *describe(const struct state *s, enum moment moment, char ret[DESCRIPTION_MAX])
{
    const char *command = s->attributes->command;
    const bool is_long = strlen(command) > COMMAND_SHOWN_MAX;
    snprintf(ret, DESCRIPTION_MAX, "the command at %s (\"%.*s%s\")", moment_names[moment],
             (int)COMMAND_SHOWN_MAX, command, is_long ? "..." : "");
    return ret;
}

/* Not ERR_IO, which would only be a warning: something on this host failed, not the spec. */
static err failed(const struct state *s, const char *why)
{
    char text[DESCRIPTION_MAX];
    describe(s, s->running, text);
    if (s->attributes->on_failure == FAILURE_STOPS) return fail(ERR_DEVICE, "%s %s", text, why);
    log_line(LOG_WARNING, "%s %s", text, why);
    return OK;
}

/* The child gets none of our files but the standard ones, and no signal blocked or ignored. */
static int prepare(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes)
{
    const short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int e = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!e) e = posix_spawn_file_actions_adddup2(actions, STDERR_FILENO, STDOUT_FILENO);
    if (!e) e = posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
    if (!e) e = posix_spawnattr_setsigmask(attributes, &none);
    if (!e) e = posix_spawnattr_setsigdefault(attributes, &all);
    if (!e) e = posix_spawnattr_setpgroup(attributes, 0);
    return e ? e : posix_spawnattr_setflags(attributes, flags);
}

/* Returns an errno. */
static int spawn(const struct state *s, char *const environment[], pid_t *ret)
{
    char *const arguments[] = {"sh", "-c", (char *)s->attributes->command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int e = posix_spawn_file_actions_init(&actions);
    if (e) return e;
    e = posix_spawnattr_init(&attributes);
    if (!e) {
        e = prepare(&actions, &attributes);
        if (!e) e = posix_spawn(ret, "/bin/sh", &actions, &attributes, arguments, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return e;
}

static err start_next(struct state *s, uint64_t now_ns)
{
    if (s->pid || s->queued == 0) return OK;
    struct pending next = s->queue[0];
    s->queued--;
    memmove(s->queue, s->queue + 1, (size_t)s->queued * sizeof *s->queue);
    s->running = next.moment;
    s->limit_ns = now_ns + (uint64_t)(s->attributes->timeout_secs * 1e9);
    s->is_killed = false;
    pid_t pid = 0;
    const int e = spawn(s, next.environment, &pid);
    arena_free(&next.arena);
    if (!e) {
        s->pid = pid;
        return OK;
    }
    char why[ERROR_TEXT_MAX];
    snprintf(why, sizeof why, "cannot be started: %s", strerror(e));
    return failed(s, why);
}

/* With all that it started, except what left its process group. */
static void kill_running(struct state *s)
{
    kill(-s->pid, SIGKILL);
    s->is_killed = true;
}

static err report(const struct state *s, int status)
{
    char why[128];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return OK;
    if (WIFEXITED(status))
        snprintf(why, sizeof why, "ended with code %d", WEXITSTATUS(status));
    else
        snprintf(why, sizeof why, "was ended by signal %d", WTERMSIG(status));
    return failed(s, why);
}

static err kill_late(struct state *s)
{
    char why[128];
    kill_running(s);
    snprintf(why, sizeof why, "was killed: it took longer than %g s (timeout_secs)",
             s->attributes->timeout_secs);
    return failed(s, why);
}

/* What a command leaves behind is adopted by process 1, which this process is in a container, and
 * becomes a zombie when it ends. A group without children of ours is forgotten. */
static void reap_groups(struct state *s)
{
    for (int i = s->group_count - 1; i >= 0; i--) {
        pid_t ended;
        do ended = waitpid(-s->groups[i], NULL, WNOHANG); /* ends: each has this many children */
        while (ended > 0);
        if (ended < 0) s->groups[i] = s->groups[--s->group_count];
    }
}

static void note_group(struct state *s, pid_t group)
{
    if (s->group_count == GROUPS_MAX) s->groups[0] = s->groups[--s->group_count];
    s->groups[s->group_count++] = group;
}

/* Never waits. If somebody else reaped the child, its exit code is unknown, and taken for a
 * success. */
static err look_after(struct state *s, uint64_t now_ns)
{
    int status = 0;
    reap_groups(s);
    if (!s->pid) return OK;
    const pid_t ended = waitpid(s->pid, &status, WNOHANG);
    if (ended > 0) note_group(s, s->pid);
    const bool is_given_up = s->is_killed && now_ns >= s->limit_ns + KILLED_WAIT_NS;
    if (ended != 0 || is_given_up) s->pid = 0;
    if (ended > 0 && !s->is_killed) return report(s, status);
    if (!s->pid || s->is_killed || now_ns < s->limit_ns) return OK;
    return kill_late(s);
}

/* ---- the moments ---- */

static void leave_out(const struct state *s, enum moment moment, uint64_t step)
{
    char text[DESCRIPTION_MAX];
    log_line(LOG_WARNING, "%s of step %llu is left out: %d runs of it are waiting",
             describe(s, moment, text), (unsigned long long)step, QUEUE_MAX);
}

/* The newest is worth most, so the oldest goes. false: none of that kind waits. */
static bool make_room(struct state *s, enum moment moment)
{
    int i = 0;
    while (i < s->queued && s->queue[i].moment != moment) i++;
    if (i == s->queued) return false;
    leave_out(s, moment, s->queue[i].step);
    arena_free(&s->queue[i].arena);
    s->queued--;
    memmove(s->queue + i, s->queue + i + 1, (size_t)(s->queued - i) * sizeof *s->queue);
    return true;
}

/* The environment is made now: by the time the command runs, training has gone on. */
static err happened(struct state *s, const struct run_view *view, enum moment moment, int code)
{
    const int places = moment == AT_END ? QUEUE_MAX + 1 : QUEUE_MAX;
    if (!s->is_wanted[moment]) return OK;
    if (s->queued == places && !make_room(s, moment)) {
        leave_out(s, moment, view->global_step);
        return OK;
    }
    struct pending *p = &s->queue[s->queued++];
    *p = (struct pending){.moment = moment, .step = view->global_step};
    make_environment(s, view, code, p);
    return start_next(s, view->now_ns);
}

/* Only the first one: a recovery is not a start. */
static err adopted(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    if (s->has_started) return OK;
    s->has_started = true;
    return happened(s, view, AT_START, 0);
}

/* One system call per step, and only while a command runs, or something that it left. */
static err stepped(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    TRY(look_after(s, view->now_ns));
    return start_next(s, view->now_ns);
}

static err saved(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    if (!o->saved.prefix) return OK;
    snprintf(s->checkpoint, sizeof s->checkpoint, "%s", o->saved.prefix);
    return happened(s, view, AT_CHECKPOINT, 0);
}

static err evaluated(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    const struct evaluation *evaluation = o->evaluated.evaluation;
    if (evaluation->rows == 0) return OK;
    s->has_evaluation = true;
    for (int i = 0; i < s->values; i++) s->newest[i] = evaluation_value(evaluation, i);
    return happened(s, view, AT_EVALUATION, 0);
}

static err keep_first(err first, err next, char why[ERROR_TEXT_MAX])
{
    if (first || !next) return first;
    snprintf(why, ERROR_TEXT_MAX, "%s", error_text());
    return next;
}

/* Waits, since nothing comes after it: for QUEUE_MAX + 2 time limits at most. The runner's clock
 * does not advance meanwhile. The first failure is returned. */
static err end(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    const uint64_t began_ns = clock_ns();
    char why[ERROR_TEXT_MAX];
    err e = keep_first(OK, happened(s, view, AT_END, o->end.code), why);
    while (s->pid || s->queued > 0) {
        const uint64_t now_ns = view->now_ns + (clock_ns() - began_ns);
        e = keep_first(e, look_after(s, now_ns), why);
        e = keep_first(e, start_next(s, now_ns), why);
        if (s->pid) clock_pause(PAUSE_MS);
    }
    return e ? fail(e, "%s", why) : OK;
}

/* Without an `end`, that is if the job failed: nothing is left running. */
static void close_command(void *state)
{
    struct state *s = state;
    if (s->pid) kill_running(s);
    for (int i = 0; s->pid && i < PAUSES_MAX; i++) {
        if (waitpid(s->pid, NULL, WNOHANG) != 0) break;
        clock_pause(PAUSE_MS);
    }
    for (int i = 0; i < s->queued; i++) arena_free(&s->queue[i].arena);
    s->queued = 0;
}

const struct hook hook_command = {
    .object =
        {.name = "command",
         .summary =
             "runs a shell command at the start, at checkpoints, at evaluations or at the end",
         .fields = fields,
         .size = sizeof(struct command_attributes)},
    .state_bytes = sizeof(struct state),
    .check = check,
    .begin = begin,
    .on = {[OCCASION_ADOPTED] = adopted,
           [OCCASION_STEPPED] = stepped,
           [OCCASION_SAVED] = saved,
           [OCCASION_EVALUATED] = evaluated,
           [OCCASION_END] = end},
    .close = close_command,
};
