/* keeper.c - see keeper.h. */
#include "cmd/launch/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/launch/key.h"
#include "core/base/ending_signals.h"
#include "core/base/log.h"
#include "core/cluster/runner/task.h"

const char keeper_command[] = "keep-task";

enum { LETTERS_MAX = 64, SIGNAL_CODE = 128 };

static const struct {
    char letter;
    int signo;
} letters[] = {{'i', SIGINT}, {'t', SIGTERM}, {'1', SIGUSR1}, {'2', SIGUSR2}};
enum { LETTERS = sizeof letters / sizeof *letters };

char keeper_letter(int signo)
{
    for (int i = 0; i < LETTERS; i++)
        if (letters[i].signo == signo) return letters[i].letter;
    return 0;
}

static void pass_letter(pid_t task, char letter)
{
    for (int i = 0; i < LETTERS; i++)
        if (letters[i].letter == letter) kill(task, letters[i].signo);
}

/* Passes signals on; false: standard input has ended. */
static bool pass_letters(pid_t task)
{
    char bytes[LETTERS_MAX];
    const ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    for (ssize_t i = 0; i < count; i++) pass_letter(task, bytes[i]);
    if (count > 0 || (count < 0 && errno == EINTR)) return true;
    kill(task, SIGKILL);
    return false;
}

/* Signals that sshd sends when it exits become requests to end. */
static void pass_signals(int signals, pid_t task)
{
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD)
            kill(task, info.ssi_signo == SIGHUP ? SIGTERM : (int)info.ssi_signo);
}

/* Runs until the task has ended; the task and the launcher have time limits. */
static int attend(int signals, pid_t task)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = signals, .events = POLLIN}};
    int status;
    while (waitpid(task, &status, WNOHANG) == 0) {
        poll(fds, 2, -1);
        pass_signals(signals, task);
        if (fds[0].revents && !pass_letters(task)) fds[0].fd = -1;
    }
    return WIFSIGNALED(status) ? SIGNAL_CODE + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The task ignores signals that ask it to end until it has set up its own handling. */
_Noreturn static void become_task(char **words, const sigset_t *mask, pid_t keeper, int key)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper) _exit(EXIT_FAILED);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    tasks_reset_signals();
    sigprocmask(SIG_SETMASK, mask, NULL);
    const int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (none >= 0) dup2(none, STDIN_FILENO);
    if (key == KEY_DESCRIPTOR) fcntl(key, F_SETFD, 0);
    if (key >= 0 && key != KEY_DESCRIPTOR) dup2(key, KEY_DESCRIPTOR);
    execv("/proc/self/exe", words);
    log_line(LOG_ERROR, "cannot start the task: %s", strerror(errno));
    _exit(EXIT_FAILED);
}

/* Reads the key, which precedes all letters if the task's flags name its descriptor. */
static err take_key(char **words, int *ret)
{
    for (; *words; words++)
        if (strcmp(*words, key_word) == 0) return launch_key_receive(STDIN_FILENO, ret);
    return OK;
}

int keeper_run(int argc, char **argv)
{
    if (argc < 3) return report_error(fail(ERR_INPUT, "%s: no task is named", keeper_command));
    sigset_t mask = ending_signals(), before;
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_BLOCK, &mask, &before);
    const int signals = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signals < 0) return report_error(fail(ERR_IO, "signals: %s", strerror(errno)));
    int key = -1;
    const err e = take_key(argv + 2, &key);
    if (e) return report_error(e);
    argv[1] = argv[0];
    const pid_t keeper = getpid(), task = fork();
    if (task < 0) return report_error(fail(ERR_IO, "fork: %s", strerror(errno)));
    if (task == 0) become_task(argv + 1, &before, keeper, key);
    if (key >= 0) close(key);
    const int code = attend(signals, task);
    close(signals);
    return code;
}
