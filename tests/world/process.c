/* process.c - processes of the machine, their lives and signals: see machine.h. */
#include "tests/world/machine.h"

#include "tests/world/descriptors.h"
#include "tests/world/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_PID = 100, CODE_OF_SIGNAL = 128 };

static void *run_main(void *context)
{
    struct process *process = context;
    process_end(process, process->image->start(process->argc, process->argv), 0);
    return NULL;
}

struct process *process_start(const char *name, int host, int argc, const char *const *argv)
{
    struct process *process = calloc(1, sizeof *process);
    process->image = image_take(process);
    if (!process->image || machine.process_count == PROCESSES_MAX) {
        machine_fail("more processes than the machine has room for");
        return NULL;
    }
    snprintf(process->name, sizeof process->name, "%s", name);
    process->pid = FIRST_PID + machine.process_count;
    process->host = host;
    process->started_ns = machine.now_ns;
    process->argc = argc;
    process->argv = calloc((size_t)argc + 1, sizeof *process->argv);
    for (int i = 0; i < argc; i++) process->argv[i] = strdup(argv[i]);
    machine.processes[machine.process_count++] = process;
    descriptors_open_standard(process);
    machine_say("%s starts", name);
    fiber_start(process, run_main, process);
    return process;
}

/* Its memory stays: others may be amid something that points there. */
void process_end(struct process *process, int code, int killed_by)
{
    if (process->state == PROCESS_ENDED) return;
    process->state = PROCESS_ENDED;
    process->code = code;
    process->killed_by = killed_by;
    process->ended_ns = machine.now_ns;
    process->image->owner = NULL;
    machine_note("end", (uint64_t)code);
    machine_say("%s ends: %d", process->name, code);
    descriptors_close_all(process);
    if (process_now() == process) fiber_end(NULL);
}

/* ---- signals ---- */

static uint64_t bit_of(int signo)
{
    return UINT64_C(1) << (signo - 1);
}

static bool is_ignored(const struct process *process, int signo)
{
    const struct sigaction *action = &process->actions[signo];
    return action->sa_handler == SIG_IGN || (signo == SIGCHLD && action->sa_handler == SIG_DFL);
}

/* One that waits is woken for it. */
static void interrupt(const struct process *process, int signo)
{
    for (int i = 0; i < machine.fiber_count; i++) {
        struct fiber *fiber = machine.fibers[i];
        if (fiber->process != process || fiber->blocked & bit_of(signo)) continue;
        if (fiber->state != FIBER_WAITS) return; /* it comes by itself */
        fiber->was_interrupted = true;
        fiber->state = FIBER_READY;
        return;
    }
}

void process_signal(struct process *process, int signo)
{
    if (process->state == PROCESS_ENDED) return;
    machine_note("signal", (uint64_t)signo);
    machine_say("%s: signal %d", process->name, signo);
    if (signo == SIGKILL)
        process_end(process, CODE_OF_SIGNAL + SIGKILL, SIGKILL);
    else if (signo == SIGSTOP)
        process->state = PROCESS_STANDS;
    else if (signo == SIGCONT)
        process->state = PROCESS_RUNS;
    else if (!is_ignored(process, signo)) {
        process->pending |= bit_of(signo);
        interrupt(process, signo);
    }
}

bool fiber_take_signals(void)
{
    struct fiber *fiber = machine.running;
    struct process *process = fiber->process;
    bool was_one = false;
    for (uint64_t due; (due = process->pending & ~fiber->blocked);) {
        const int signo = __builtin_ctzll(due) + 1;
        const struct sigaction *action = &process->actions[signo];
        process->pending &= ~bit_of(signo);
        if (is_ignored(process, signo)) continue;
        if (action->sa_handler == SIG_DFL) process_end(process, CODE_OF_SIGNAL + signo, signo);
        const uint64_t before = fiber->blocked;
        fiber->blocked |= bit_of(signo);
        action->sa_handler(signo);
        fiber->blocked = before;
        was_one = true;
    }
    return was_one;
}
