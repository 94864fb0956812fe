/* cluster.c - see cluster.h. */
#include "tests/core/train/checkpoint/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

/* As in the fixtures: the embedding is partitioned there. The scalar is ours. */
const struct variable variables[VARIABLES] = {
    {"words/embedding_weights", {2, {11, 3}}},
    {"hidden/kernel", {2, {3, 4}}},
    {"hidden/bias", {1, {4}}},
    {"scale", {0}},
};

static void open_shard(struct cluster *cluster, int ps)
{
    struct shard *shard = &cluster->shards[ps];
    *shard = (struct shard){
        .ps = ps,
        .ps_count = cluster->ps_count,
        .slices = cluster->slices[ps],
        .values = cluster->blocks[ps][0],
        .slot_count = 2,
        .slot_names = {{2, {"Adam", "Adam_1"}}},
        .slots = {cluster->blocks[ps][1], cluster->blocks[ps][2]},
        .power_count = 2,
        .power_names = {"beta1_power", "beta2_power"},
        .owns_powers = ps == cluster->ps_count - 1,
        .workers = WORKERS,
        .ledger = cluster->ledgers[ps],
    };
    for (int i = 0; i < cluster->layout->slice_count; i++) {
        const struct slice *slice = &cluster->layout->slices[i];
        if (slice->ps == ps) cluster->slices[ps][shard->slice_count++] = *slice;
    }
}

/* The first `count` variables; axis and parts: of the partitioner, parts 0 for none. */
struct cluster *cluster_open(int count, int ps_count, int axis, int parts)
{
    struct cluster *cluster = calloc(1, sizeof *cluster);
    assert_non_null(cluster);
    char placement[160] = "{\"placement\": {}}";
    if (parts > 0)
        snprintf(placement, sizeof placement,
                 "{\"placement\": {\"partitioner\": {\"type\": \"fixed_size\", \"axis\": %d, "
                 "\"num_shards\": %d}}}",
                 axis, parts);
    const struct placement_spec spec = fixture_placement(placement, &cluster->arena);
    assert_int_equal(
        layout_make(&spec, variables, count, ps_count, &cluster->arena, &cluster->layout), OK);
    assert_in_range(cluster->layout->slice_count, 1, SLICES_SOME);
    cluster->ps_count = ps_count;
    for (int ps = 0; ps < ps_count; ps++) {
        assert_in_range(cluster->layout->block_floats[ps], 0, BLOCK_FLOATS);
        for (int array = 0; array < ARRAYS; array++) {
            for (int i = 0; i < BLOCK_FLOATS; i++) cluster->blocks[ps][array][i] = POISON;
        }
        open_shard(cluster, ps);
    }
    return cluster;
}

void cluster_close(struct cluster *cluster)
{
    arena_free(&cluster->arena);
    free(cluster);
}

/* Array `array` (0: values, 1 and 2: slots) of a variable: any bits, those of a NaN too. */
void cluster_whole(int variable, int array, float ret[WHOLE_FLOATS])
{
    for (int i = 0; i < WHOLE_FLOATS; i++) {
        const uint32_t bits = (uint32_t)random_u64((uint64_t)(variable * ARRAYS + array), i);
        memcpy(&ret[i], &bits, sizeof bits);
    }
}

void cluster_fill(struct cluster *cluster)
{
    float whole[WHOLE_FLOATS], *blocks[PS_SOME];
    for (int array = 0; array < ARRAYS; array++) {
        for (int ps = 0; ps < PS_SOME; ps++) blocks[ps] = cluster->blocks[ps][array];
        for (int v = 0; v < cluster->layout->variable_count; v++) {
            cluster_whole(v, array, whole);
            layout_scatter(cluster->layout, v, whole, blocks);
        }
    }
    for (int ps = 0; ps < cluster->ps_count; ps++) {
        struct shard *shard = &cluster->shards[ps];
        shard->global_step = 41;
        shard->powers[0] = 0.6561f;
        shard->powers[1] = 0.996006f;
        for (int w = 0; w < WORKERS; w++) {
            int64_t *row = shard->ledger + w * LEDGER_COLUMNS;
            row[0] = 100 * w + ps + 10, row[1] = 100 * w + ps, row[2] = 40 - ps;
        }
    }
}

void cluster_gather(const struct cluster *cluster, int array, int variable, float *ret)
{
    const float *blocks[PS_SOME];
    for (int ps = 0; ps < PS_SOME; ps++) blocks[ps] = cluster->blocks[ps][array];
    layout_gather(cluster->layout, variable, blocks, ret);
}

void cluster_check(const struct cluster *cluster, int array)
{
    float wanted[WHOLE_FLOATS], got[WHOLE_FLOATS];
    for (int v = 0; v < cluster->layout->variable_count; v++) {
        const size_t bytes = (size_t)shape_count(&variables[v].shape) * sizeof(float);
        cluster_whole(v, array, wanted);
        cluster_gather(cluster, array, v, got);
        assert_memory_equal(got, wanted, bytes);
    }
}

/* How many floats of an array were never written. */
int64_t cluster_poisoned(const struct cluster *cluster, int array)
{
    int64_t count = 0;
    for (int ps = 0; ps < cluster->ps_count; ps++) {
        for (int i = 0; i < BLOCK_FLOATS; i++) count += cluster->blocks[ps][array][i] == POISON;
    }
    return count;
}

/* All shards of the cluster, joined to one checkpoint in the folder. */
void cluster_save(const struct cluster *cluster, const char *folder, char prefix[FOLDER_PATH_MAX])
{
    char parts[PS_SOME][FOLDER_PATH_MAX];
    const char *names[PS_SOME];
    for (int ps = 0; ps < cluster->ps_count; ps++) {
        snprintf(parts[ps], FOLDER_PATH_MAX, "%s/part-%d", folder, ps);
        assert_int_equal(shard_write(&cluster->shards[ps], parts[ps]), OK);
        names[ps] = parts[ps];
    }
    snprintf(prefix, FOLDER_PATH_MAX, "%s/model.ckpt-41", folder);
    assert_int_equal(bundle_merge(names, cluster->ps_count, prefix), OK);
}

err cluster_restore(struct cluster *cluster, const char *prefix, const struct warm_start *warm)
{
    struct bundle *bundle = NULL;
    assert_int_equal(bundle_open(prefix, &bundle), OK);
    err e = OK;
    for (int ps = 0; !e && ps < cluster->ps_count; ps++) {
        e = shard_read(bundle, warm, &cluster->shards[ps]);
    }
    bundle_close(bundle);
    return e;
}

/* A checkpoint of all variables by two ps, the matrices and vectors cut in three. */
void cluster_save_some(const char *folder, char prefix[FOLDER_PATH_MAX])
{
    struct cluster *cluster = cluster_open(VARIABLES, 2, 0, 3);
    cluster_fill(cluster);
    cluster_save(cluster, folder, prefix);
    cluster_close(cluster);
}

void assert_says(const char *text, const char *what)
{
    if (!strstr(text, what)) fail_msg("expected \"%s\" in: %s", what, text);
}

/* A bundle of one tensor. */
void write_one(const char *prefix, const struct bundle_piece *piece, const void *elements)
{
    struct bundle_writer *writer = NULL;
    assert_int_equal(bundle_create(prefix, &writer), OK);
    assert_int_equal(bundle_add(writer, piece, elements), OK);
    assert_int_equal(bundle_finish(writer), OK);
}

const char *cluster_refusal(const char *prefix, struct shard *shard)
{
    struct bundle *bundle = NULL;
    assert_int_equal(bundle_open(prefix, &bundle), OK);
    assert_int_equal(shard_read(bundle, NULL, shard), ERR_INPUT);
    bundle_close(bundle);
    return error_text();
}
