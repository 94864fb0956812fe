/* bench_machine.c - what the GPU and the way to it are like, before any kernel of ours is judged:
 * how long it takes to queue a kernel, to wait for one, to start a recording, and how fast memory
 * of the host crosses: pinned, not pinned, and mapped as the window of a parameter server is.
 *
 * Lines for a reader, and no goals: what is slow here is slow in every step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "tests/cuda/bench/bench_graph.h"

enum {
    CROSSING_BYTES = 64 << 20,
    QUEUED = 1000, /* kernels of a sample: less than a queue holds */
    WAITS = 200,
    RECORDED = 20, /* kernels of a recording, about as many as a small model's step has */
    STARTS = 200,
    CROSSINGS = 8,
};

static double us_since(uint64_t begin_ns, int count)
{
    return (double)(clock_ns() - begin_ns) / 1e3 / count;
}

static void touch(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->fill(&b->d, b->out, 0.0f, 1);
}

static void say_us(const char *what, double us)
{
    printf("%-48s %10.2f us\n", what, us);
    (void)fflush(stdout);
}

static void measure_queue(struct bench *b)
{
    const int queued = (int)bench_scaled(b, QUEUED), waits = (int)bench_scaled(b, WAITS);
    touch(b, NULL, 0);
    bench_wait(b);
    uint64_t begin_ns = clock_ns();
    for (int i = 0; i < queued; i++) touch(b, NULL, i);
    say_us("a kernel is queued", us_since(begin_ns, queued));
    bench_wait(b);
    say_us("a kernel is queued and done, one of many", us_since(begin_ns, queued));
    begin_ns = clock_ns();
    for (int i = 0; i < waits; i++) {
        touch(b, NULL, i);
        bench_wait(b);
    }
    say_us("a kernel is queued and waited for", us_since(begin_ns, waits));
}

static void measure_recording(struct bench *b)
{
    const struct timed timed = {.body = touch};
    const int starts = (int)bench_scaled(b, STARTS);
    struct recording *r;
    if (recorded_open(b, &timed, RECORDED, &r)) {
        printf("nothing was recorded: %s\n", error_text());
        return;
    }
    (void)recorded_us(b, r, 1);
    say_us("a recording of 20 kernels is started, and done", recorded_us(b, r, starts) / starts);
    const uint64_t begin_ns = clock_ns();
    for (int i = 0; i < starts; i++) (void)recorded_us(b, r, 1);
    say_us("the same, each waited for", us_since(begin_ns, starts));
    recorded_close(b, r);
}

struct crossing {
    const char *name;
    void *host;
    size_t bytes;
    bool is_written; /* the host may: what comes down goes there too */
};

static void say_rate(const struct crossing *c, const char *way, double us)
{
    printf("%-30s %-17s %10.2f us %9.2f GB/s\n", c->name, way, us, (double)c->bytes / us * 1e-3);
    (void)fflush(stdout);
}

static void cross(struct bench *b, const struct crossing *c, bool is_pinned, bool up)
{
    const struct async *async = b->d.kernels->async;
    if (up && is_pinned)
        async->upload_pinned(&b->d, b->out, c->host, c->bytes);
    else if (up)
        b->d.kernels->upload(&b->d, b->out, c->host, c->bytes);
    else if (is_pinned)
        async->download_pinned(&b->d, c->host, b->out, c->bytes);
    else
        b->d.kernels->download(&b->d, c->host, b->out, c->bytes);
}

static void time_crossing(struct bench *b, const struct crossing *c, bool is_pinned, bool up)
{
    const int count = b->scale > 1 ? 1 : CROSSINGS;
    cross(b, c, is_pinned, up);
    bench_wait(b);
    const uint64_t begin_ns = clock_ns();
    for (int i = 0; i < count; i++) cross(b, c, is_pinned, up);
    bench_wait(b);
    say_rate(c, up ? "up" : "down", us_since(begin_ns, count));
}

/* Memory of the host as it is, and pinned where that can be. */
static void measure_crossing(struct bench *b, const struct crossing *c)
{
    const struct async *async = b->d.kernels->async;
    struct crossing pinned = *c;
    char name[64];
    time_crossing(b, c, false, true);
    if (c->is_written) time_crossing(b, c, false, false);
    if (!async) return;
    snprintf(name, sizeof name, "%s, pinned", c->name);
    pinned.name = name;
    if (!async->pin(&b->d, c->host, c->bytes, c->is_written)) {
        printf("%s: cannot be pinned\n", c->name);
        return;
    }
    time_crossing(b, &pinned, true, true);
    if (c->is_written) time_crossing(b, &pinned, true, false);
    async->unpin(&b->d, c->host);
}

/* As a worker has the values of a parameter server on its host: a file in memory, to be read. */
static void *map_window(size_t bytes)
{
    const int file = memfd_create("bench_window", MFD_CLOEXEC);
    void *own = MAP_FAILED, *ret = MAP_FAILED;
    if (file >= 0 && ftruncate(file, (off_t)bytes) == 0)
        own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (own != MAP_FAILED) {
        memset(own, 1, bytes);
        (void)munmap(own, bytes);
        ret = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    }
    if (file >= 0) (void)close(file);
    return ret;
}

static void measure_crossings(struct bench *b)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t most = (size_t)b->capacity * sizeof(float),
                 all = (size_t)bench_scaled(b, CROSSING_BYTES);
    const size_t bytes = (all < most ? all : most) / page * page;
    void *own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *window = map_window(bytes);
    if (own == MAP_FAILED || window == MAP_FAILED) {
        (void)fail(ERR_MEMORY, "no memory to cross from");
        bench_give_up();
    }
    memset(own, 1, bytes);
    measure_crossing(b, &(struct crossing){"memory of the host", own, bytes, true});
    measure_crossing(b, &(struct crossing){"a window to be read", window, bytes, false});
    (void)munmap(own, bytes);
    (void)munmap(window, bytes);
}

void bench_machine(struct bench *b)
{
    measure_queue(b);
    measure_recording(b);
    measure_crossings(b);
}
