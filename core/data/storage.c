/* storage.c - the memory behind a dataset: see storage.h. */
#include "core/data/storage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCK_HUGE_BYTES_MIN = 4 << 20, BLOCK_GROW_BYTES_MIN = 1 << 20 };

/* Call right after the failed call: uses errno. */
static err no_memory(uint64_t bytes)
{
    return fail(ERR_MEMORY, "no memory for %llu bytes of examples: %s", (unsigned long long)bytes,
                strerror(errno));
}

err block_new(uint64_t bytes, struct block *ret)
{
    void *at = MAP_FAILED;
    errno = ENOMEM;
    if (bytes > 0 && bytes <= PTRDIFF_MAX)
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return no_memory(bytes);
    /* advice only: without huge pages the first touch of each 4 KiB costs a fault */
    if (bytes >= BLOCK_HUGE_BYTES_MIN) (void)madvise(at, bytes, MADV_HUGEPAGE);
    *ret = (struct block){at, bytes};
    return OK;
}

/* mremap moves pages, so growing copies no bytes. */
err block_grow(struct block *b, uint64_t bytes)
{
    if (bytes <= b->bytes) return OK;
    uint64_t wanted = b->bytes + b->bytes / 2;
    if (wanted < bytes) wanted = bytes;
    if (wanted < BLOCK_GROW_BYTES_MIN) wanted = BLOCK_GROW_BYTES_MIN;
    if (!b->at) return block_new(wanted, b);
    if (wanted > PTRDIFF_MAX) return fail(ERR_MEMORY, "more examples than memory can hold");
    void *at = mremap(b->at, b->bytes, wanted, MREMAP_MAYMOVE);
    if (at == MAP_FAILED) return no_memory(wanted);
    *b = (struct block){at, wanted};
    return OK;
}

void block_drop(struct block *b)
{
    if (b->at) munmap(b->at, b->bytes);
    *b = (struct block){0};
}

void storage_drop(struct storage *s)
{
    block_drop(&s->features);
    block_drop(&s->labels);
    block_drop(&s->counts);
}

static void free_kept(struct storage *s)
{
    storage_drop(s);
    free((char *)s->name);
    free((char *)s->label_name);
    free((char *)s->use);
    free(s);
}

static void close_dataset(struct dataset *d)
{
    free_kept(d->owned);
}

/* The caller's struct is on its stack, so what close() needs later is copied to the heap. */
err storage_give(struct storage *s, struct dataset *d)
{
    struct storage *kept = calloc(1, sizeof *kept);
    if (!kept) return fail(ERR_MEMORY, "no memory for the name of %s", s->name);
    kept->name = strdup(s->name);
    kept->label_name = strdup(s->label_name ? s->label_name : s->name);
    kept->use = strdup(s->use ? s->use : "");
    if (!kept->name || !kept->label_name || !kept->use) {
        free_kept(kept);
        return fail(ERR_MEMORY, "no memory for the name of %s", s->name);
    }
    kept->features = s->features;
    kept->labels = s->labels;
    kept->counts = s->counts;
    kept->occurrences =
        (struct occurrences){(int64_t)(s->counts.bytes / sizeof(double)), s->counts.at};
    *s = (struct storage){0};
    memcpy(kept->columns, d->columns, sizeof kept->columns);
    d->columns = kept->columns;
    d->column_count = STORED_COLUMNS;
    d->columns[FEATURES].name = FEATURES_NAME;
    d->columns[FEATURES].at = kept->features.at;
    d->columns[LABELS].name = LABELS_NAME;
    d->columns[LABELS].at = kept->labels.at;
    if (kept->counts.at) d->columns[LABELS].occurrences = &kept->occurrences;
    d->name = kept->name;
    d->label_name = kept->label_name;
    d->use = kept->use;
    d->owned = kept;
    d->close = close_dataset;
    return OK;
}

err storage_bytes(const char *name, int64_t rows, const struct shape *shape, enum dtype dtype,
                  uint64_t *ret)
{
    uint64_t bytes = 0;
    if (__builtin_mul_overflow((uint64_t)rows, (uint64_t)shape_count(shape), &bytes) ||
        __builtin_mul_overflow(bytes, (uint64_t)dtype_size(dtype), &bytes) || bytes > PTRDIFF_MAX) {
        char text[SHAPE_TEXT_MAX];
        return fail(ERR_INPUT, "%s: %lld rows of shape %s are more than memory can hold", name,
                    (long long)rows, shape_text(shape, text));
    }
    *ret = bytes;
    return OK;
}

err storage_widen_labels(struct block *bytes, struct block *ret)
{
    struct block wide = {0};
    err e = block_new(bytes->bytes * sizeof(int32_t), &wide);
    const uint8_t *from = bytes->at;
    int32_t *to = wide.at;
    for (size_t i = 0; !e && i < bytes->bytes; i++) to[i] = from[i];
    block_drop(bytes);
    if (!e) *ret = wide;
    return e;
}

err storage_shape(const struct ints *dims, const char *what, struct shape *ret)
{
    if (dims->count > RANK_MAX)
        return fail(ERR_INPUT, "%s: %d dimensions; at most %d are supported", what, dims->count,
                    (int)RANK_MAX);
    struct shape shape = {.rank = dims->count};
    for (int i = 0; i < dims->count; i++) shape.dim[i] = dims->at[i];
    err e = shape_check(&shape);
    if (e) return fail_prefix(e, "%s", what);
    *ret = shape;
    return OK;
}
