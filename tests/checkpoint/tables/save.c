/* save.c - see save.h. */
#include "tests/train/fixture.h"

#include <stdio.h>

#include "core/train/variables/aside.h"
#include "tests/checkpoint/tables/save.h"

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
    if (bundle_merge(names, count, ret_prefix)) fail_msg("%s", error_text());
}
