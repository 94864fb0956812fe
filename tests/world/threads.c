/* threads.c - threads, what they wait for among themselves, the clock and chance, as the program
 * asks for them.
 *
 * What a mutex or a condition is kept in is the program's memory, as ever: a mutex holds the number
 * of its owner, and who waits is known by the address.
 */
#include "tests/world/descriptors.h"
#include "tests/world/image.h"
#include "tests/world/machine.h"
#include "tests/world/real.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/random.h>
#include <threads.h>
#include <time.h>

enum { LOOK_NS = 40, YIELD_NS = 10000 };
static const int64_t EPOCH_S = 1767225600; /* when the clock of the machine is at 0: 2026 */

/* ---- threads ---- */

int pthread_create(pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    if (!process_now()) return REAL(pthread_create)(ret, attributes, run, argument);
    call_begins("pthread_create", 0);
    struct fiber *fiber = fiber_start(process_now(), run, argument);
    if (!fiber) return EAGAIN;
    *ret = (pthread_t)fiber;
    return 0;
}

int pthread_join(pthread_t thread, void **ret)
{
    if (!process_now()) return REAL(pthread_join)(thread, ret);
    const struct fiber *fiber = (const struct fiber *)thread;
    call_begins("pthread_join", fiber->number);
    while (fiber->state != FIBER_ENDED) fiber_wait(fiber, NEVER_NS);
    if (ret) *ret = fiber->result;
    return 0;
}

int pthread_detach(pthread_t thread)
{
    return process_now() ? 0 : REAL(pthread_detach)(thread);
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_before)
{
    struct fiber *fiber = machine.running;
    if (!fiber) return REAL(pthread_sigmask)(how, set, ret_before);
    uint64_t bits = 0;
    if (ret_before) sigemptyset(ret_before);
    for (int signo = 1; signo < SIGNALS; signo++) {
        const uint64_t bit = UINT64_C(1) << (signo - 1);
        if (ret_before && fiber->blocked & bit) sigaddset(ret_before, signo);
        if (set && sigismember(set, signo) == 1) bits |= bit;
    }
    if (!set) return 0;
    if (how == SIG_BLOCK) fiber->blocked |= bits;
    if (how == SIG_UNBLOCK) fiber->blocked &= ~bits;
    if (how == SIG_SETMASK) fiber->blocked = bits;
    fiber_take_signals();
    return 0;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *ret_before)
{
    return process_now() ? pthread_sigmask(how, set, ret_before)
                         : REAL(sigprocmask)(how, set, ret_before);
}

/* ---- mutexes and conditions ---- */

/* Libraries are the same ones for all processes: nobody else has a turn amid what they do. */
static bool is_of_program(const void *caller)
{
    const struct image *image = process_now()->image;
    return (const char *)caller >= image->code && (const char *)caller < image->code_end;
}

static void lock_may_yield(const void *caller)
{
    if (is_of_program(caller)) fiber_may_yield();
}

static int *owner_of(pthread_mutex_t *mutex)
{
    return (int *)mutex;
}

/* Those of libraries may be: it says so where the C library's own does, which counts there, too. */
static bool is_recursive(const pthread_mutex_t *mutex)
{
    return mutex->__data.__kind == PTHREAD_MUTEX_RECURSIVE;
}

static int lock_until(pthread_mutex_t *mutex, uint64_t until_ns)
{
    int *owner = owner_of(mutex);
    while (*owner) {
        const bool is_own = *owner == machine.running->number;
        if (is_own && is_recursive(mutex)) {
            mutex->__data.__count++;
            return 0;
        }
        if (is_own) machine_fail("a thread of %s locks a mutex twice", process_now()->name);
        if (!fiber_wait(mutex, until_ns) && machine.now_ns >= until_ns) return ETIMEDOUT;
    }
    *owner = machine.running->number;
    return 0;
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
    if (!process_now()) return REAL(pthread_mutex_init)(mutex, attributes);
    int kind = PTHREAD_MUTEX_NORMAL;
    if (attributes) pthread_mutexattr_gettype(attributes, &kind);
    memset(mutex, 0, sizeof *mutex);
    mutex->__data.__kind = kind;
    return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    if (!process_now()) return REAL(pthread_mutex_destroy)(mutex);
    if (*owner_of(mutex)) machine_fail("a mutex of %s is held and destroyed", process_now()->name);
    return 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (!process_now()) return REAL(pthread_mutex_lock)(mutex);
    lock_may_yield(__builtin_return_address(0));
    return lock_until(mutex, NEVER_NS);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    if (!process_now()) return REAL(pthread_mutex_trylock)(mutex);
    const bool is_own = *owner_of(mutex) == machine.running->number && is_recursive(mutex);
    return *owner_of(mutex) && !is_own ? EBUSY : lock_until(mutex, NEVER_NS);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (!process_now()) return REAL(pthread_mutex_unlock)(mutex);
    if (*owner_of(mutex) != machine.running->number)
        machine_fail("a thread of %s unlocks a mutex that it does not hold", process_now()->name);
    if (mutex->__data.__count) {
        mutex->__data.__count--;
        return 0;
    }
    *owner_of(mutex) = 0;
    fibers_wake(process_now(), mutex, 1);
    lock_may_yield(__builtin_return_address(0));
    return 0;
}

static uint64_t ns_of(const struct timespec *time, clockid_t clock)
{
    const int64_t s = time->tv_sec - (clock == CLOCK_REALTIME ? EPOCH_S : 0);
    return s < 0 ? 0 : (uint64_t)s * SECOND_NS + (uint64_t)time->tv_nsec;
}

int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    if (!process_now()) return REAL(pthread_mutex_timedlock)(mutex, until);
    return lock_until(mutex, ns_of(until, CLOCK_REALTIME));
}

int pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes)
{
    return process_now() ? 0 : REAL(pthread_cond_init)(condition, attributes);
}

int pthread_cond_destroy(pthread_cond_t *condition)
{
    return process_now() ? 0 : REAL(pthread_cond_destroy)(condition);
}

static int wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t until_ns)
{
    *owner_of(mutex) = 0;
    fibers_wake(process_now(), mutex, 1);
    const bool was_woken = fiber_wait(condition, until_ns);
    fiber_take_signals();
    const bool is_over = !was_woken && machine.now_ns >= until_ns;
    lock_until(mutex, NEVER_NS);
    return is_over ? ETIMEDOUT : 0;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    if (!process_now()) return REAL(pthread_cond_wait)(condition, mutex);
    return wait_until(condition, mutex, NEVER_NS);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                           const struct timespec *until)
{
    if (!process_now()) return REAL(pthread_cond_timedwait)(condition, mutex, until);
    return wait_until(condition, mutex, ns_of(until, CLOCK_REALTIME));
}

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *until)
{
    if (!process_now()) return REAL(pthread_cond_clockwait)(condition, mutex, clock, until);
    return wait_until(condition, mutex, ns_of(until, clock));
}

int pthread_cond_signal(pthread_cond_t *condition)
{
    if (!process_now()) return REAL(pthread_cond_signal)(condition);
    fibers_wake(process_now(), condition, 1);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
    if (!process_now()) return REAL(pthread_cond_broadcast)(condition);
    fibers_wake(process_now(), condition, 0);
    return 0;
}

/* Both begin with an int that is 0 until it was done: 1 while it is, 2 then. */
static void do_once(int *state, void (*act)(void))
{
    while (*state == 1) fiber_wait(state, NEVER_NS);
    if (*state == 2) return;
    *state = 1;
    act();
    *state = 2;
    fibers_wake(process_now(), state, 0);
}

int pthread_once(pthread_once_t *once, void (*act)(void))
{
    if (!process_now()) return REAL(pthread_once)(once, act);
    do_once((int *)once, act);
    return 0;
}

void call_once(once_flag *once, void (*act)(void))
{
    if (process_now())
        do_once((int *)once, act);
    else
        REAL(call_once)(once, act);
}

/* ---- the clock ---- */

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    if (!process_now()) return REAL(clock_gettime)(clock, ret);
    machine.now_ns += LOOK_NS;
    const int64_t s = (int64_t)(machine.now_ns / SECOND_NS);
    *ret = (struct timespec){s + (clock == CLOCK_REALTIME ? EPOCH_S : 0),
                             (long)(machine.now_ns % SECOND_NS)};
    return 0;
}

time_t time(time_t *ret)
{
    if (!process_now()) return REAL(time)(ret);
    const time_t now = EPOCH_S + (time_t)(machine.now_ns / SECOND_NS);
    if (ret) *ret = now;
    return now;
}

int nanosleep(const struct timespec *pause, struct timespec *ret_left)
{
    if (!process_now()) return REAL(nanosleep)(pause, ret_left);
    const uint64_t ns = (uint64_t)pause->tv_sec * SECOND_NS + (uint64_t)pause->tv_nsec;
    call_begins("nanosleep", 0);
    const uint64_t until_ns = machine.now_ns + ns;
    fiber_wait(NULL, until_ns);
    return fiber_take_signals() && machine.now_ns < until_ns ? call_fails(EINTR) : 0;
}

int sched_yield(void)
{
    if (!process_now()) return REAL(sched_yield)();
    machine.now_ns += YIELD_NS;
    fiber_yield();
    return 0;
}

int pause(void)
{
    if (!process_now()) return REAL(pause)();
    while (!fiber_take_signals()) fiber_wait(NULL, NEVER_NS);
    return call_fails(EINTR);
}

ssize_t getrandom(void *to, size_t count, unsigned flags)
{
    if (!process_now()) return REAL(getrandom)(to, count, flags);
    for (size_t i = 0; i < count; i++) ((unsigned char *)to)[i] = (unsigned char)draw();
    return (ssize_t)count;
}
