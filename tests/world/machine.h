/* machine.h - hosts, processes, threads and a clock, made of one thread of the system.
 *
 * The program runs here as it is: each of its processes has a copy of its code and data (image.h),
 * each of its threads a stack of its own. What it asks of the system (clock, threads, descriptors,
 * sockets, files, signals) is answered by functions of the same names, which stand in front of the
 * C library's (calls_*.c). One thread runs at a time, until a call of it waits or the seed gives
 * the processor to another one; the clock continues by microseconds for what is done, and to the
 * next event when nobody can run. So a seed says all: the same one gives the same run, call by
 * call.
 *
 * Nothing is freed but what grows: a machine lives as long as the process of the system that it is
 * in, which is for one seed.
 */
#ifndef TESTS_WORLD_MACHINE_H
#define TESTS_WORLD_MACHINE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>

enum {
    HOSTS_MAX = 16,
    PROCESSES_MAX = 512, /* lives of them, all in all */
    FIBERS_MAX = 2048,
    DESCRIPTORS_MAX = 256,
    NAME_BYTES = 32,
    SIGNALS = 65,
};
#define NEVER_NS UINT64_MAX
#define SECOND_NS UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)

struct description;
struct image;
struct process;

enum fiber_state { FIBER_READY, FIBER_WAITS, FIBER_ENDED };

/* A thread. */
struct fiber {
    int number;
    struct process *process;
    enum fiber_state state;
    const void *waits_for; /* an address; NULL: for time or a signal alone */
    uint64_t until_ns;
    bool was_woken, was_interrupted;
    void *(*run)(void *);
    void *argument, *result;
    bool has_begun;
    bool is_in_system; /* which continues though the process stands */
    uint64_t blocked;  /* signals: bit (number - 1) */
    int kept_errno;
    void *tls;
    void *stack;
    ucontext_t context;
};

enum process_state { PROCESS_RUNS, PROCESS_STANDS, PROCESS_ENDED };

struct process {
    int pid, host;
    char name[NAME_BYTES];
    enum process_state state;
    int code;      /* how it ended: what a shell says */
    int killed_by; /* a signal; 0: it ended by itself */
    uint64_t started_ns, ended_ns;
    struct image *image;
    int argc;
    char **argv;
    struct description *descriptors[DESCRIPTORS_MAX];
    uint64_t pending; /* signals */
    struct sigaction actions[SIGNALS];
    FILE *standard_output; /* what it has made of stdout */
    char *said;            /* on descriptors 1 and 2 */
    size_t said_bytes, said_room, line_at;
};

struct machine {
    uint64_t seed, random, now_ns, switches, hash, calls;
    struct fiber *fibers[FIBERS_MAX];
    int fiber_count, fiber_numbers;
    struct process *processes[PROCESSES_MAX];
    int process_count;
    struct fiber *running;
    ucontext_t home;
    bool is_traced;     /* what processes say, as they say it */
    int preempts;       /* of 1024 calls so many give the processor away */
    const char *failed; /* the first thing that cannot be */
};
extern struct machine machine;

void machine_start(uint64_t seed);
uint64_t machine_ns(void); /* since then */

/* Somebody of the program runs now: its calls are answered here. */
static inline struct process *process_now(void)
{
    return machine.running ? machine.running->process : NULL;
}

/* ---- chance ---- */

uint64_t draw(void);
uint64_t draw_below(uint64_t count);
bool draw_chance(int of_1024);

/* ---- what happens later ---- */

typedef void event_act(void *subject, uint64_t number);
void event_at(uint64_t at_ns, event_act *act, void *subject, uint64_t number);
/* One turn: what is due, then one thread, or the clock. false: nothing can ever happen again. */
bool machine_turn(void);

/* ---- threads ---- */

struct fiber *fiber_start(struct process *, void *(*run)(void *), void *argument);
/* Both from the one that runs. false: the time came first, or a signal (was_interrupted). */
bool fiber_wait(const void *what, uint64_t until_ns);
void fiber_wait_in_system(uint64_t until_ns);
void fiber_yield(void);
void fiber_may_yield(void); /* as the seed says */
void fiber_end(void *result) __attribute__((noreturn));
/* The first of those of a process that wait for it; most: 0 for all. */
void fibers_wake(const struct process *, const void *what, int most);
/* Handlers of signals that wait for the one that runs. true: one was called. */
bool fiber_take_signals(void);

/* ---- processes ---- */

struct process *process_start(const char *name, int host, int argc, const char *const *argv);
void process_signal(struct process *, int signo); /* SIGKILL, SIGSTOP and SIGCONT, too */
void process_end(struct process *, int code, int killed_by);
void process_says(struct process *, const char *bytes, size_t count);

/* ---- what is told of a run ---- */

void machine_show(void);                              /* what threads wait for */
void machine_note(const char *what, uint64_t number); /* goes into the hash */
void machine_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void machine_say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* where traced */

#endif
