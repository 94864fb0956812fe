/* shard_device.c - a shard whose blocks are in device memory that the host cannot access: read into
 * host memory, then uploaded. */
#include <stdlib.h>

#include "core/train/checkpoint/shard.h"

/* blocks: [1 + slot_count] contiguous blocks: values, then slots. */
static struct shard with_blocks(const struct shard *shard, int64_t block_floats, float *blocks)
{
    struct shard staged = *shard;
    staged.values = blocks;
    for (int i = 0; i < shard->slot_count; i++) staged.slots[i] = blocks + (i + 1) * block_floats;
    return staged;
}

static void bring(struct device *d, const struct shard *from, struct shard *to, size_t bytes)
{
    struct shard result = *from;
    d->kernels->upload(d, to->values, from->values, bytes);
    result.values = to->values;
    for (int i = 0; i < from->slot_count; i++) {
        d->kernels->upload(d, to->slots[i], from->slots[i], bytes);
        result.slots[i] = to->slots[i];
    }
    *to = result;
}

err shard_read_on(struct device *d, int64_t block_floats, struct bundle *bundle,
                  const struct warm_start *warm, struct shard *shard)
{
    if (!d->is_separate) return shard_read(bundle, warm, shard);
    const size_t count = (size_t)block_floats * (1 + (size_t)shard->slot_count);
    float *blocks = calloc(count + 1, sizeof *blocks);
    if (!blocks) return fail(ERR_MEMORY, "no memory to read %zu numbers", count);
    struct shard staged = with_blocks(shard, block_floats, blocks);
    err e = shard_read(bundle, warm, &staged);
    if (!e) {
        bring(d, &staged, shard, (size_t)block_floats * sizeof(float));
        e = d->kernels->synchronize(d);
    }
    free(blocks);
    return e;
}
