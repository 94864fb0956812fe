/* process_1.c - see process_1.h. */
#include "cmd/process_1.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIGNAL_CODE = 128, PID_TEXT_MAX = 16 };

/* LISTEN_PID of systemd has to name the new process */
static void take_descriptors(void)
{
    char mine[PID_TEXT_MAX];
    const char *owner = getenv("LISTEN_PID");
    if (!owner || atol(owner) != 1) return;
    snprintf(mine, sizeof mine, "%ld", (long)getpid());
    setenv("LISTEN_PID", mine, 1);
}

/* Reaps all children that have ended; true: the program is one, *ret_status is set. */
static bool reap(pid_t program, int *ret_status)
{
    int status;
    bool has_ended = false;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == program) has_ended = true, *ret_status = status;
    return has_ended;
}

/* Forwards what a process has sent; signals of a terminal reach the program anyway. */
static void pass_on(pid_t program, const siginfo_t *said)
{
    if (said->si_code <= 0) kill(program, said->si_signo);
}

/* Signals are held back, so that none is lost: process 1 has none that end it. What was there
 * before, of a shell that became this program, has sent its signal. */
static _Noreturn void stand_in(pid_t program, const sigset_t *all)
{
    siginfo_t said;
    int status;
    while (!reap(program, &status)) {
        const int signo = sigwaitinfo(all, &said);
        if (signo > 0 && signo != SIGCHLD) pass_on(program, &said);
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : SIGNAL_CODE + WTERMSIG(status));
}

void process_1_leave(void)
{
    sigset_t all, before;
    if (getpid() != 1) return;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    const pid_t program = fork();
    if (program > 0) stand_in(program, &all);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (program == 0) take_descriptors();
}
