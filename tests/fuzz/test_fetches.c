/* test_fetches.c - what a peer can change while it is read is fetched once: a ps hears pushes and
 * rows, and a worker takes rows and asks for them, whose windows cannot be read but under a
 * handler, which lets one instruction through at a time and notes where it read. A place that is
 * fetched twice for one message could be one number when it is checked and another when it is used.
 * What a worker has written for a ps it does not read at all: the ps can write there as well.
 */
#include "core/base/log.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/runner/runner_ps.h"
#include "core/cluster/runner/runner_worker_inside.h"
#include "tests/fuzz/job.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h> /* last: it has a macro named fail */

enum {
    FETCHES_MAX = 1 << 16,
    WATCHED = 2,         /* messages of each kind, of a job */
    WATCHED_TAKES = 4,   /* of rows, by its worker: asked for, and come with values */
    FIRST_WITH_ROWS = 2, /* of the kinds of tests/fuzz/job.c */
    TURNS_MAX = 20000,
    WAITED_MS = 20,
    ONE_COPY_FETCHES = 64,
    ONE_COPY_BYTES =
        4096, /* of a library's code: what a copy reads twice on its way, it keeps once */
    TRAP_FLAG = 0x100,
    OF_A_WRITE = 2, /* bit of the error code of a page fault */
};

static struct {
    char *base;
    size_t bytes; /* 0: nothing is watched */
    struct fetch {
        size_t at; /* 1 + the byte of the window; 0: a write */
        uintptr_t code;
    } fetches[FETCHES_MAX];
    int count, messages[MESSAGE_TYPES], all;
    size_t of_worker; /* bytes that a worker has written, while it is watched; 0: a ps is */
    int takes;        /* how often a worker was */
} watched;

#if defined(__x86_64__)

static void protect(int how)
{
    if (mprotect(watched.base, watched.bytes, how)) _exit(3);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    ucontext_t *c = context;
    const uintptr_t at = (uintptr_t)info->si_addr - (uintptr_t)watched.base;
    (void)signal;
    if (!watched.bytes || at >= watched.bytes || watched.count == FETCHES_MAX) _exit(4);
    const bool is_write = c->uc_mcontext.gregs[REG_ERR] & OF_A_WRITE;
    watched.fetches[watched.count++] =
        (struct fetch){is_write ? 0 : 1 + at, (uintptr_t)c->uc_mcontext.gregs[REG_RIP]};
    protect(PROT_READ | PROT_WRITE);
    c->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
    ucontext_t *c = context;
    (void)signal;
    (void)info;
    protect(PROT_NONE);
    c->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void watch(const struct window *w)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    watched.base = w->base;
    watched.bytes = (w->bytes + page - 1) / page * page;
    watched.count = 0;
    protect(PROT_NONE);
}

/* memcpy of libc, or of a sanitizer in its place, begins with the first bytes once more where it is
 * to go on from an even place, and reads the last ones by vectors that overlap. Our own code has no
 * such excuse, however near its reads are. */
static bool is_librarys(uintptr_t code)
{
    Dl_info at, own;
    fuzz_holds(dladdr((void *)&watched, &own) != 0, "the program knows where it lies");
    return dladdr((void *)code, &at) && at.dli_fbase != own.dli_fbase;
}

/* Whether another instruction of one copy has just fetched it: a second copy does so by the same
 * ones. */
static bool is_of_a_copy(int i)
{
    const struct fetch *f = &watched.fetches[i];
    for (int before = i - 1; before >= 0 && before >= i - ONE_COPY_FETCHES; before--) {
        const struct fetch *b = &watched.fetches[before];
        if (b->at == f->at)
            return b->code < f->code && f->code - b->code < ONE_COPY_BYTES &&
                   is_librarys(b->code) && is_librarys(f->code);
    }
    return false;
}

static int compare(const void *a, const void *b)
{
    const struct fetch *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Of what was fetched for one message; 0: all of it once, else 1 + the byte */
static size_t fetched_twice(void)
{
    int kept = 0;
    for (int i = watched.count - 1; i >= 0; i--)
        if (is_of_a_copy(i)) watched.fetches[i].at = 0;
    for (int i = 0; i < watched.count; i++)
        if (watched.fetches[i].at) watched.fetches[kept++] = watched.fetches[i];
    qsort(watched.fetches, (size_t)kept, sizeof *watched.fetches, compare);
    watched.all += kept;
    for (int i = 1; i < kept; i++)
        if (watched.fetches[i].at == watched.fetches[i - 1].at) return watched.fetches[i].at;
    return 0;
}

static char wrong[256];

void __real_link_deliver(struct link *, const struct message *);
void __wrap_link_deliver(struct link *, const struct message *);

static void pass_over(struct link *link, const struct message *m)
{
    protect(PROT_READ | PROT_WRITE);
    __real_link_deliver(link, m);
    protect(PROT_NONE);
}

/* To the ps: what is shared is the worker's to write. */
void __wrap_link_deliver(struct link *link, const struct message *m)
{
    if (watched.of_worker) {
        pass_over(link, m);
        return;
    }
    const struct link_windows *all = &link->shared.windows;
    const struct window *w = message_has_rows(m->type) ? &all->rows : &all->gradients;
    const bool is_heard = watched.messages[m->type] < WATCHED && !link->is_active && m->length &&
                          w->base && w->bytes &&
                          (message_has_rows(m->type) || message_has_stretch(m->type));
    if (is_heard) watch(w);
    __real_link_deliver(link, m);
    if (!is_heard) return;
    protect(PROT_READ | PROT_WRITE);
    const size_t twice = fetched_twice();
    watched.bytes = 0;
    watched.messages[m->type]++;
    if (twice && !wrong[0])
        snprintf(wrong, sizeof wrong, "%s: byte %zu of %zu is fetched twice", message_name(m->type),
                 twice - 1, w->bytes);
}

static void look_at_worker(void)
{
    for (int i = 0; i < watched.count; i++)
        if (watched.fetches[i].at && watched.fetches[i].at <= watched.of_worker && !wrong[0])
            snprintf(wrong, sizeof wrong, "a worker reads byte %zu of what it has written",
                     watched.fetches[i].at - 1);
    const size_t twice = fetched_twice();
    if (twice && !wrong[0])
        snprintf(wrong, sizeof wrong, "a worker fetches byte %zu of its rows twice", twice - 1);
}

err __real_rows_fetch(struct rows *, const struct graph *, const struct prepared *);
err __wrap_rows_fetch(struct rows *, const struct graph *, const struct prepared *);

/* By a worker: what is shared is the ps' to write, all of it. */
err __wrap_rows_fetch(struct rows *r, const struct graph *graph, const struct prepared *p)
{
    const struct window w = {.base = r->links[0].window, .bytes = rows_window_bytes(r, 0)};
    const bool is_heard = w.base && watched.takes < WATCHED_TAKES;
    if (is_heard) watched.of_worker = r->links[0].area.front, watch(&w);
    const err e = __real_rows_fetch(r, graph, p);
    if (!is_heard) return e;
    protect(PROT_READ | PROT_WRITE);
    look_at_worker();
    watched.bytes = watched.of_worker = 0;
    watched.takes++;
    return e;
}

/* ---- a job ---- */

static void drive(void *context, int turn)
{
    (void)turn;
    if (ps_role_step(((struct task *)context)->role) >= JOB_LAST_STEP - 2) peer_pass(WAITED_MS);
}

static void watch_job(uint8_t kind)
{
    struct loop *loop;
    struct runner_ps *ps = NULL;
    struct runner_worker *chief = NULL;
    struct spec *spec = job_spec(kind);
    const struct cluster_spec of_ps = job_cluster(JOB_PS, 0), of_chief = job_cluster(JOB_WORKER, 0);
    assert_int_equal(loop_open(&loop), OK);
    const struct task_options ps_options = job_options(&of_ps, loop, spec);
    struct runner_worker_options options = {
        .task = job_options(&of_chief, loop, spec), .spec = spec, .device = job_device()};
    assert_int_equal(runner_ps_open(&ps_options, job_device(), &ps), OK);
    assert_int_equal(runner_worker_open(&options, &chief), OK);
    struct task *const tasks[] = {runner_ps_task(ps), runner_worker_task(chief)};
    struct job_turns turns = {.drive = drive, .context = tasks[0], .most = TURNS_MAX};
    memset(watched.messages, 0, sizeof watched.messages);
    watched.all = watched.takes = 0;
    job_run(&turns, tasks, 2);
    assert_int_equal(tasks[1]->code, EXIT_DONE);
    assert_int_equal(runner_worker_end(chief), OK);
    runner_worker_close(chief);
    runner_ps_close(ps);
    loop_close(loop);
    assert_int_equal(watched.messages[MESSAGE_PUSH], WATCHED);
    assert_int_equal(watched.messages[MESSAGE_ROWS], kind < FIRST_WITH_ROWS ? 0 : WATCHED);
    assert_int_equal(watched.takes, kind < FIRST_WITH_ROWS ? 0 : WATCHED_TAKES);
    assert_true(watched.all > 4 * WATCHED);
    if (wrong[0]) fail_msg("job %d: %s", kind, wrong);
}

static void nobody_fetches_twice_what_the_other_can_change(void **state)
{
    (void)state;
    const struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    const struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    assert_int_equal(sigaction(SIGSEGV, &fault, NULL), 0);
    assert_int_equal(sigaction(SIGTRAP, &trap, NULL), 0); /* cmocka's own end the test */
    for (uint8_t kind = 0; kind < 4; kind++) watch_job(kind);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_fetches_twice_what_the_other_can_change),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else /* how an instruction is let through is the processor's */

int main(void)
{
    return 77;
}

#endif
