/* apart_async.c - what goes on beside the queue, behind the wall: done at once, since the CPU's
 * kernels are. Nothing is recorded. */
#include "tests/device/apart_inside.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct inlet {
    void *host, *memory;
    size_t bytes;
};

static bool is_pinned(const struct apart *a, const void *host, size_t bytes)
{
    const char *at = host;
    for (int i = 0; i < PINS_MAX; i++) {
        const struct block *pin = &a->pins[i];
        if (pin->base && at >= pin->base && at + bytes <= pin->base + pin->bytes) return true;
    }
    return false;
}

static struct block *pin_at(struct apart *a, const void *host)
{
    for (int i = 0; i < PINS_MAX; i++)
        if (a->pins[i].base == host) return &a->pins[i];
    return NULL;
}

/* What somebody has pinned nobody else can. */
static bool pin(struct device *d, void *host, size_t bytes, bool is_written)
{
    struct apart *a = d->state;
    apart_is_host(d, host, bytes);
    if (pin_at(a, host)) return false;
    struct block *free_pin = pin_at(a, NULL);
    assert_non_null(free_pin);
    *free_pin = (struct block){host, bytes};
    return true;
}

static void unpin(struct device *d, void *host)
{
    struct block *pinned = pin_at(d->state, host);
    assert_non_null(host);
    assert_non_null(pinned);
    *pinned = (struct block){0};
}

static void upload_pinned(struct device *d, void *device_memory, const void *host, size_t bytes)
{
    assert_true(is_pinned(d->state, host, bytes));
    d->kernels->upload(d, device_memory, host, bytes);
}

static void download_pinned(struct device *d, void *host, const void *device_memory, size_t bytes)
{
    assert_true(is_pinned(d->state, host, bytes));
    d->kernels->download(d, host, device_memory, bytes);
}

/* What comes down is there at once. */
static err mark_open(struct device *d, struct mark **ret)
{
    *ret = malloc(1);
    assert_non_null(*ret);
    return OK;
}

static void mark_close(struct device *d, struct mark *mark)
{
    free(mark);
}

static void mark_set(struct device *d, struct mark *mark, enum mark_of of)
{
    assert_non_null(mark);
}

static void mark_follow(struct device *d, struct mark *mark)
{
    assert_non_null(mark);
}

static bool mark_await(struct device *d, struct mark *mark)
{
    return mark != NULL;
}

static err inlet_open(struct device *d, size_t bytes, struct inlet **ret)
{
    struct inlet *inlet = calloc(1, sizeof *inlet);
    assert_non_null(inlet);
    inlet->bytes = bytes;
    inlet->host = malloc(bytes);
    assert_non_null(inlet->host);
    const err e = d->kernels->allocate(d, bytes, &inlet->memory);
    if (e) {
        free(inlet->host);
        free(inlet);
        return e;
    }
    *ret = inlet;
    return OK;
}

static void inlet_close(struct device *d, struct inlet *inlet)
{
    if (!inlet) return;
    d->kernels->release(d, inlet->memory);
    free(inlet->host);
    free(inlet);
}

static void *inlet_room(struct device *d, struct inlet *inlet)
{
    return inlet->host;
}

static void inlet_send(struct device *d, struct inlet *inlet, size_t bytes)
{
    assert_true(bytes <= inlet->bytes);
    d->kernels->upload(d, inlet->memory, inlet->host, bytes);
}

static void inlet_take(struct device *d, struct inlet *inlet, const struct inlet_part *parts,
                       int count)
{
    (void)apart_enter(d, "inlet_take");
    for (int i = 0; i < count; i++) {
        const char *from = (const char *)inlet->memory + parts[i].offset;
        apart_has(d, from, parts[i].bytes);
        apart_has(d, parts[i].to, parts[i].bytes);
        memcpy(parts[i].to, from, parts[i].bytes);
    }
    apart_leave(d);
}

void apart_fill_async(struct kernels *table)
{
    static const struct async async = {
        .pin = pin,
        .unpin = unpin,
        .upload_pinned = upload_pinned,
        .download_pinned = download_pinned,
        .upload_beside = upload_pinned,
        .mark_open = mark_open,
        .mark_close = mark_close,
        .mark_set = mark_set,
        .mark_follow = mark_follow,
        .mark_await = mark_await,
        .inlet_open = inlet_open,
        .inlet_close = inlet_close,
        .inlet_room = inlet_room,
        .inlet_send = inlet_send,
        .inlet_take = inlet_take,
    };
    table->async = &async;
}
