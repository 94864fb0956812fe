/* machine.c - see machine.h: the clock, who runs, and what happens later. */
#include "tests/world/machine.h"

#include "tests/world/image.h"
#include "tests/world/real.h"

#include <errno.h>
#include <execinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    STACK_BYTES = 1 << 20,
    EVENTS_MAX = 1 << 16,
    TURN_NS = 2000, /* the most that one turn of a thread takes of the clock by itself */
    LOG_LINE_MAX = 1024,
};
static const uint64_t START_NS = 1000 * SECOND_NS;

struct machine machine;

struct event {
    uint64_t at_ns, order, number;
    event_act *act;
    void *subject;
};
static struct event events[EVENTS_MAX]; /* a heap: the first one is the next */
static int event_count;
static uint64_t event_order;

/* ---- chance ---- */

uint64_t draw(void)
{
    uint64_t x = machine.random += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t draw_below(uint64_t count)
{
    return draw() % count;
}

bool draw_chance(int of_1024)
{
    return draw_below(1024) < (uint64_t)of_1024;
}

void machine_start(uint64_t seed)
{
    machine.seed = machine.random = seed;
    machine.now_ns = START_NS;
    machine.hash = UINT64_C(0xcbf29ce484222325);
    machine.preempts = 64;
}

uint64_t machine_ns(void)
{
    return machine.now_ns - START_NS;
}

/* ---- what is told ---- */

static void add_to_hash(const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++)
        machine.hash = (machine.hash ^ at[i]) * UINT64_C(0x100000001b3);
}

void machine_note(const char *what, uint64_t number)
{
    const uint64_t note[3] = {machine.now_ns,
                              machine.running ? (uint64_t)machine.running->number : 0, number};
    machine.calls++;
    add_to_hash(what, strlen(what));
    add_to_hash(note, sizeof note);
}

static void put_line(const char *who, const char *line)
{
    char text[LOG_LINE_MAX * 4];
    const int length = snprintf(text, sizeof text, "%12.6f %-12s %s\n",
                                (double)(machine.now_ns - START_NS) / 1e9, who, line);
    const size_t bytes = length < (int)sizeof text ? (size_t)length : sizeof text - 1;
    (void)!REAL(write)(STDERR_FILENO, text, bytes);
}

void machine_say(const char *format, ...)
{
    char text[LOG_LINE_MAX];
    va_list arguments;
    if (!machine.is_traced) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    put_line("*", text);
}

void machine_fail(const char *format, ...)
{
    char text[LOG_LINE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!machine.failed) machine.failed = strdup(text);
    if (machine.is_traced) put_line("* FAILED", text);
}

/* Whole lines are shown as they end. */
void process_says(struct process *process, const char *bytes, size_t count)
{
    add_to_hash(bytes, count);
    if (process->said_bytes + count + 1 > process->said_room) {
        process->said_room = 2 * (process->said_bytes + count + 1);
        process->said = realloc(process->said, process->said_room);
    }
    memcpy(process->said + process->said_bytes, bytes, count);
    process->said_bytes += count;
    process->said[process->said_bytes] = '\0';
    char *line = process->said + process->line_at, *end;
    for (; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        if (machine.is_traced) put_line(process->name, line);
        *end = '\n';
    }
    process->line_at = (size_t)(line - process->said);
}

/* ---- events ---- */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static void swap_events(int a, int b)
{
    const struct event kept = events[a];
    events[a] = events[b];
    events[b] = kept;
}

void event_at(uint64_t at_ns, event_act *act, void *subject, uint64_t number)
{
    if (event_count == EVENTS_MAX) {
        machine_fail("more than %d events wait", EVENTS_MAX);
        return;
    }
    int i = event_count++;
    events[i] = (struct event){at_ns, event_order++, number, act, subject};
    for (; i > 0 && is_before(&events[i], &events[(i - 1) / 2]); i = (i - 1) / 2)
        swap_events(i, (i - 1) / 2);
}

static struct event take_event(void)
{
    const struct event ret = events[0];
    events[0] = events[--event_count];
    for (int i = 0, next; (next = 2 * i + 1) < event_count; i = next) {
        if (next + 1 < event_count && is_before(&events[next + 1], &events[next])) next++;
        if (!is_before(&events[next], &events[i])) break;
        swap_events(i, next);
    }
    return ret;
}

static void act_on_events(void)
{
    while (event_count > 0 && events[0].at_ns <= machine.now_ns) {
        const struct event event = take_event();
        event.act(event.subject, event.number);
    }
}

/* ---- threads ---- */

static void begin_fiber(unsigned low, unsigned high)
{
    struct fiber *fiber = (struct fiber *)((uintptr_t)high << 32 | low);
    fiber->has_begun = true;
    fiber_end(fiber->run(fiber->argument));
}

static void make_context(struct fiber *fiber)
{
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&fiber->context, (void (*)(void))begin_fiber, 2, (unsigned)(uintptr_t)fiber,
                (unsigned)((uintptr_t)fiber >> 32));
}

struct fiber *fiber_start(struct process *process, void *(*run)(void *), void *argument)
{
    if (machine.fiber_count == FIBERS_MAX) return NULL;
    struct fiber *fiber = calloc(1, sizeof *fiber);
    fiber->number = ++machine.fiber_numbers;
    fiber->process = process;
    fiber->run = run;
    fiber->argument = argument;
    fiber->until_ns = NEVER_NS;
    fiber->tls = calloc(1, process->image->tls_bytes + 1);
    fiber->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (machine.running) fiber->blocked = machine.running->blocked;
    make_context(fiber);
    machine.fibers[machine.fiber_count++] = fiber;
    return fiber;
}

static void forget_fiber(int index)
{
    struct fiber *fiber = machine.fibers[index];
    munmap(fiber->stack, STACK_BYTES);
    fiber->stack = NULL;
    machine.fibers[index] = machine.fibers[--machine.fiber_count];
}

static bool shows_stacks; /* who runs says where it is, and nothing else */

static void show_stack(const struct fiber *fiber)
{
    enum { FRAMES_MAX = 40 };
    void *frames[FRAMES_MAX];
    const int count = backtrace(frames, FRAMES_MAX);
    char **names = backtrace_symbols(frames, count);
    char text[LOG_LINE_MAX];
    snprintf(text, sizeof text, "thread %d, state %d, until %.6f, waits for %p", fiber->number,
             (int)fiber->state, (double)fiber->until_ns / 1e9, fiber->waits_for);
    put_line(fiber->process->name, text);
    for (int i = 2; names && i < count; i++) put_line("", names[i]);
    free(names);
}

static void leave(void)
{
    struct fiber *fiber = machine.running;
    do {
        if (shows_stacks) show_stack(fiber);
        swapcontext(&fiber->context, &machine.home);
    } while (shows_stacks);
}

static ssize_t say_error(void *cookie, const char *bytes, size_t count)
{
    process_says(process_now(), bytes, count);
    return (ssize_t)count;
}

/* Standard error of whoever runs. */
static FILE *error_stream(void)
{
    static FILE *stream;
    if (stream) return stream;
    stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = say_error});
    setvbuf(stream, NULL, _IONBF, 0);
    return stream;
}

static void run_fiber(struct fiber *fiber)
{
    struct process *process = fiber->process;
    const struct image *image = process->image;
    FILE *const own = stdout, *const own_error = stderr;
    machine.switches++;
    machine.now_ns += 1 + draw_below(TURN_NS);
    fiber->state = FIBER_READY;
    fiber->until_ns = NEVER_NS;
    fiber->waits_for = NULL;
    if (process->standard_output) stdout = process->standard_output;
    stderr = error_stream();
    memcpy(image->tls, fiber->tls, image->tls_bytes);
    machine.running = fiber;
    errno = fiber->kept_errno;
    swapcontext(&machine.home, &fiber->context);
    fiber->kept_errno = errno;
    machine.running = NULL;
    memcpy(fiber->tls, image->tls, image->tls_bytes);
    process->standard_output = stdout;
    stdout = own;
    stderr = own_error;
}

bool fiber_wait(const void *what, uint64_t until_ns)
{
    struct fiber *fiber = machine.running;
    fiber->state = FIBER_WAITS;
    fiber->waits_for = what;
    fiber->until_ns = until_ns;
    fiber->was_woken = fiber->was_interrupted = false;
    leave();
    return fiber->was_woken;
}

void fiber_wait_in_system(uint64_t until_ns)
{
    machine.running->is_in_system = true;
    fiber_wait(NULL, until_ns);
    machine.running->is_in_system = false;
}

void fiber_yield(void)
{
    machine.running->state = FIBER_READY;
    leave();
}

void fiber_may_yield(void)
{
    if (draw_chance(machine.preempts)) fiber_yield();
}

void fiber_end(void *result)
{
    struct fiber *fiber = machine.running;
    fiber->result = result;
    fiber->state = FIBER_ENDED;
    fibers_wake(fiber->process, fiber, 0);
    for (;;) leave();
}

void fibers_wake(const struct process *process, const void *what, int most)
{
    int woken = 0;
    for (int i = 0; i < machine.fiber_count; i++) {
        struct fiber *fiber = machine.fibers[i];
        if (fiber->process != process || fiber->state != FIBER_WAITS || fiber->waits_for != what)
            continue;
        fiber->was_woken = true;
        fiber->state = FIBER_READY;
        if (++woken == most) return;
    }
}

/* Where each thread is, and what for. */
void machine_show(void)
{
    shows_stacks = true;
    for (int i = 0; i < machine.fiber_count; i++) {
        struct fiber *fiber = machine.fibers[i];
        if (!fiber->has_begun || fiber->process->state == PROCESS_ENDED ||
            fiber->state == FIBER_ENDED)
            continue;
        machine.running = fiber;
        swapcontext(&machine.home, &fiber->context);
        machine.running = NULL;
    }
    shows_stacks = false;
}

static bool may_run(const struct fiber *fiber)
{
    const enum process_state state = fiber->process->state;
    return state == PROCESS_RUNS || (state == PROCESS_STANDS && fiber->is_in_system);
}

static bool is_due(const struct fiber *fiber)
{
    if (!may_run(fiber)) return false;
    return fiber->state == FIBER_READY ||
           (fiber->state == FIBER_WAITS && fiber->until_ns <= machine.now_ns);
}

static void forget_ended(void)
{
    for (int i = machine.fiber_count - 1; i >= 0; i--) {
        const struct fiber *fiber = machine.fibers[i];
        if (fiber->process->state == PROCESS_ENDED || fiber->state == FIBER_ENDED) forget_fiber(i);
    }
}

/* One of those that can run, by chance. */
static struct fiber *choose(void)
{
    struct fiber *ret = NULL;
    uint64_t count = 0;
    forget_ended();
    for (int i = 0; i < machine.fiber_count; i++) count += is_due(machine.fibers[i]);
    if (!count) return NULL;
    uint64_t nth = draw_below(count);
    for (int i = 0; i < machine.fiber_count && !ret; i++)
        if (is_due(machine.fibers[i]) && nth-- == 0) ret = machine.fibers[i];
    return ret;
}

static uint64_t next_ns(void)
{
    uint64_t ret = event_count ? events[0].at_ns : NEVER_NS;
    for (int i = 0; i < machine.fiber_count; i++) {
        const struct fiber *fiber = machine.fibers[i];
        if (may_run(fiber) && fiber->until_ns < ret) ret = fiber->until_ns;
    }
    return ret;
}

bool machine_turn(void)
{
    act_on_events();
    struct fiber *fiber = choose();
    if (fiber) {
        run_fiber(fiber);
        return true;
    }
    const uint64_t next = next_ns();
    if (next == NEVER_NS) return false;
    if (next > machine.now_ns) machine.now_ns = next;
    return true;
}
