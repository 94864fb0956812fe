/* calls_process.c - who a process is, its signals, and how it ends, as the program asks for it. */
#undef _FILE_OFFSET_BITS /* with it open() would be called open64, and so on: both are here */
#include "tests/world/descriptors.h"
#include "tests/world/machine.h"
#include "tests/world/real.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 1 << 20, ABORTED = 134 };

void exit(int code)
{
    if (process_now()) process_end(process_now(), code & 0xff, 0);
    REAL(exit)(code);
    __builtin_unreachable();
}

void _exit(int code)
{
    if (process_now()) process_end(process_now(), code & 0xff, 0);
    REAL(_exit)(code);
    __builtin_unreachable();
}

void abort(void)
{
    if (process_now()) {
        machine_fail("%s calls abort()", process_now()->name);
        process_end(process_now(), ABORTED, SIGABRT);
    }
    REAL(abort)();
    __builtin_unreachable();
}

void __assert_fail(const char *what, const char *file, unsigned line, const char *function)
{
    if (process_now()) {
        machine_fail("%s: %s:%u: %s: %s does not hold", process_now()->name, file, line, function,
                     what);
        process_end(process_now(), ABORTED, SIGABRT);
    }
    REAL(__assert_fail)(what, file, line, function);
    __builtin_unreachable();
}

int sigaction(int signo, const struct sigaction *action, struct sigaction *ret_before)
{
    if (!process_now()) return REAL(sigaction)(signo, action, ret_before);
    struct sigaction *own = &process_now()->actions[signo];
    if (ret_before) *ret_before = *own;
    if (action) *own = *action;
    return 0;
}

sighandler_t signal(int signo, sighandler_t handler)
{
    if (!process_now()) return REAL(signal)(signo, handler);
    struct sigaction *own = &process_now()->actions[signo];
    const sighandler_t before = own->sa_handler;
    own->sa_handler = handler;
    return before;
}

int signalfd(int descriptor, const sigset_t *set, int flags)
{
    return process_now() ? call_fails(ENOSYS) : REAL(signalfd)(descriptor, set, flags);
}

pid_t getpid(void)
{
    return process_now() ? process_now()->pid : REAL(getpid)();
}

int gethostname(char *to, size_t count)
{
    if (!process_now()) return REAL(gethostname)(to, count);
    snprintf(to, count, "h%d", process_now()->host);
    return 0;
}

int uname(struct utsname *ret)
{
    if (!process_now()) return REAL(uname)(ret);
    memset(ret, 0, sizeof *ret);
    strcpy(ret->sysname, "Linux");
    strcpy(ret->machine, "simulated");
    return gethostname(ret->nodename, sizeof ret->nodename);
}

int prctl(int option, ...)
{
    va_list arguments;
    va_start(arguments, option);
    const unsigned long a = va_arg(arguments, unsigned long), b = va_arg(arguments, unsigned long),
                        c = va_arg(arguments, unsigned long), d = va_arg(arguments, unsigned long);
    va_end(arguments);
    return process_now() ? 0 : REAL(prctl)(option, a, b, c, d);
}

int setrlimit64(enum __rlimit_resource resource, const struct rlimit64 *limit)
{
    return process_now() ? 0 : REAL(setrlimit64)(resource, limit);
}

int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *ret)
{
    if (!process_now()) return REAL(sched_getaffinity)(pid, bytes, ret);
    CPU_ZERO_S(bytes, ret);
    CPU_SET_S(0, bytes, ret);
    return 0;
}

long sysconf(int name)
{
    if (process_now() && (name == _SC_PHYS_PAGES || name == _SC_AVPHYS_PAGES)) return PAGES;
    if (process_now() && name == _SC_NPROCESSORS_ONLN) return 1;
    return REAL(sysconf)(name);
}

/* Nothing is started from here. */
int posix_spawn(pid_t *ret, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const argv[], char *const environment[])
{
    return process_now() ? ENOSYS
                         : REAL(posix_spawn)(ret, path, actions, attributes, argv, environment);
}

pid_t fork(void)
{
    return process_now() ? call_fails(ENOSYS) : REAL(fork)();
}

pid_t waitpid(pid_t pid, int *ret_status, int flags)
{
    return process_now() ? call_fails(ECHILD) : REAL(waitpid)(pid, ret_status, flags);
}

int execv(const char *path, char *const argv[])
{
    return process_now() ? call_fails(ENOSYS) : REAL(execv)(path, argv);
}
