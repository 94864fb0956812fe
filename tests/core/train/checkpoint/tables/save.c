/* save.c - see save.h. */
#include "tests/core/train/fixture.h"

#include <stdio.h>

#include "core/train/variables/aside.h"
#include "tests/core/train/checkpoint/tables/save.h"

void world_open(struct world *w, int parts, int mod)
{
    assert_true(parts <= SHARDS_MAX);
    *w = (struct world){.device = fixture_device(), .parts = parts, .mod = mod};
    w->spec = fixture_optimizer("{\"optimizer\": {\"type\": \"adagrad\", \"learning_rate\": 0.1}}",
                                &w->arena);
    w->values = fixture_block(&w->device, 16);
    assert_int_equal(fixture_store(&w->spec, &w->device, 16, w->values, &w->dense), OK);
}

void world_open_part(struct world *w, const struct slice *slice,
                     const struct initializer *initializer, const struct growth *growth,
                     uint64_t global_step)
{
    const int part = slice->part;
    const struct table_description is = {.name = slice->name,
                                         .shape = slice->shape,
                                         .start = slice->start,
                                         .length = slice->length,
                                         .initializer = initializer,
                                         .growth = growth,
                                         .mod = slice->mod};
    w->slices[part] = *slice;
    w->tables[part] = (struct shard_table){.slice = &w->slices[part]};
    assert_int_equal(table_open(&is, &w->dense.updaters[0], &w->device, &w->tables[part].rows), OK);
    w->shards[part] = (struct shard){.ps = part,
                                     .ps_count = w->parts,
                                     .slot_names = {{1, {"Adagrad"}}},
                                     .tables = &w->tables[part],
                                     .table_count = 1,
                                     .global_step = global_step,
                                     .workers = 1,
                                     .ledger = w->ledger};
}

void world_close(struct world *w)
{
    for (int part = 0; part < w->parts; part++) table_close(w->tables[part].rows);
    store_close(&w->dense);
    fixture_release(&w->device, w->values);
    arena_free(&w->arena);
    device_close(&w->device);
}

void save_shards(const struct shard *shards, const struct shard_table *tables, int count,
                 const char *folder, char ret_prefix[FOLDER_PATH_MAX])
{
    const char *names[SHARDS_MAX];
    char of_parts[SHARDS_MAX][FOLDER_PATH_MAX];
    struct aside_room room;
    assert_true(count <= SHARDS_MAX);
    aside_room_open(&room);
    for (int part = 0; part < count; part++) {
        snprintf(of_parts[part], FOLDER_PATH_MAX, "%.4000s/part-%d", folder, part);
        names[part] = of_parts[part];
        aside_room_begin(&room);
        table_save_begin(tables[part].rows, &room);
        assert_int_equal(shard_write(&shards[part], names[part]), OK);
        table_save_end(tables[part].rows);
    }
    aside_room_close(&room);
    snprintf(ret_prefix, FOLDER_PATH_MAX, "%.4000s/whole", folder);
    if (bundle_remove(ret_prefix) || bundle_merge(names, count, ret_prefix))
        fail_msg("%s", error_text());
}
