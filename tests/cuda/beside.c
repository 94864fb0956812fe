/* beside.c - see beside.h. */
#include "tests/cuda/beside.h"

#include <sys/mman.h>

struct device open_gpu(void)
{
    struct device d;
    if (device_open_emulated(&d)) fail_msg("%s", error_text());
    return d;
}

static void *device_memory(struct device *d)
{
    void *memory;
    if (d->kernels->allocate(d, BYTES, &memory)) fail_msg("%s", error_text());
    return memory;
}

/* Of the host, on pages of its own */
float *host_memory(void)
{
    float *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

void set_all(float *x, float value)
{
    for (int i = 0; i < COUNT; i++) x[i] = value;
}

void assert_all(const float *x, float value)
{
    for (int i = 0; i < COUNT; i++)
        if (!(x[i] == value))
            fail_msg("number %d is %g and not %g", i, (double)x[i], (double)value);
}

void assert_device(struct device *d, const float *x, float value)
{
    static float here[COUNT];
    d->kernels->download(d, here, x, BYTES);
    assert_int_equal(d->kernels->synchronize(d), OK);
    assert_all(here, value);
}

static void open_scene(struct scene *s)
{
    s->d = open_gpu();
    s->async = s->d.kernels->async;
    s->x = device_memory(&s->d);
    s->y = device_memory(&s->d);
    s->from = host_memory();
    s->to = host_memory();
    assert_true(s->async->pin(&s->d, s->from, BYTES, false));
    assert_true(s->async->pin(&s->d, s->to, BYTES, true));
    if (s->async->inlet_open(&s->d, BYTES, &s->inlet)) fail_msg("%s", error_text());
}

static void close_scene(struct scene *s)
{
    struct device *d = &s->d;
    s->async->inlet_close(d, s->inlet);
    s->async->unpin(d, s->from);
    s->async->unpin(d, s->to);
    munmap(s->from, BYTES);
    munmap(s->to, BYTES);
    d->kernels->release(d, s->x);
    d->kernels->release(d, s->y);
    assert_int_equal(d->kernels->synchronize(d), OK);
    device_close(d);
    assert_int_equal(emulated_memory_taken(), 0);
    assert_int_equal(emulated_pinned(), 0);
}

void play(void (*act)(struct scene *))
{
    for (int is_hasty = 0; is_hasty < 2; is_hasty++) {
        struct scene s;
        emulated_set_hasty_copies(is_hasty);
        open_scene(&s);
        act(&s);
        close_scene(&s);
    }
    emulated_set_hasty_copies(true);
}

void send_batch(struct scene *s, float value)
{
    float *room = s->async->inlet_room(&s->d, s->inlet);
    assert_non_null(room);
    set_all(room, value);
    s->async->inlet_send(&s->d, s->inlet, BYTES);
}

void take_batch(struct scene *s, float *to)
{
    const struct inlet_part whole = {0, BYTES, to};
    s->async->inlet_take(&s->d, s->inlet, &whole, 1);
}

void queue_pass(struct scene *s)
{
    struct device *d = &s->d;
    d->kernels->scale(d, s->x, 10, COUNT);
    d->kernels->axpy(d, s->x, 1, s->y, COUNT);
    s->async->download_pinned(d, s->to, s->x, BYTES / 2);
    s->async->download_pinned(d, s->to + COUNT / 2, s->x + COUNT / 2, BYTES / 2);
}

struct recording *record_pass(struct scene *s)
{
    struct recording *recording;
    if (s->async->record(&s->d)) fail_msg("%s", error_text());
    queue_pass(s);
    if (s->async->record_end(&s->d, &recording)) fail_msg("%s", error_text());
    return recording;
}
