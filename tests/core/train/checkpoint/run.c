/* run.c - see run.h. */
#include "tests/core/train/checkpoint/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIXES = 4, LIST_MAX = 4096 };

struct checkpoints *run_open(const char *folder, int64_t keep_max, double now_s)
{
    struct checkpoints *c = NULL;
    const struct retention retention = {.keep_max = keep_max};
    assert_int_equal(checkpoints_open(folder, &retention, now_s, &c), OK);
    return c;
}

static err write_shard(const char *prefix, const struct bundle_piece *piece, float value)
{
    struct bundle_writer *writer = NULL;
    float floats[RUN_FLOATS];
    for (int i = 0; i < RUN_FLOATS; i++) floats[i] = value;
    TRY(bundle_create(prefix, &writer));
    err e = bundle_add(writer, piece, floats);
    if (!e) return bundle_finish(writer);
    bundle_abandon(writer);
    return e;
}

/* Each holds one half of the rows of w. */
err run_write_shards(const char *folder, float value)
{
    for (int i = 0; i < RUN_SHARDS; i++) {
        char prefix[CHECKPOINT_PATH_MAX];
        checkpoint_shard_prefix(folder, i, RUN_SHARDS, prefix);
        const struct bundle_box box = {.start = {i * RUN_FLOATS}, .length = {RUN_FLOATS}};
        const struct bundle_piece piece = {.name = "w",
                                           .dtype = BUNDLE_FLOAT,
                                           .shape = {1, {RUN_SHARDS * RUN_FLOATS}},
                                           .box = &box};
        TRY(write_shard(prefix, &piece, value));
    }
    return OK;
}

static char *next_prefix(void)
{
    static char prefixes[PREFIXES][CHECKPOINT_PATH_MAX];
    static int next;
    return prefixes[next++ % PREFIXES];
}

static err try_into(struct checkpoints *c, uint64_t step, float value, double now_s, char *prefix)
{
    char folder[CHECKPOINT_PATH_MAX];
    TRY(checkpoints_begin(c, step, 1 + (uint64_t)value, folder)); /* each attempt has its own */
    err e = run_write_shards(folder, value);
    if (!e) return checkpoints_publish(c, folder, RUN_SHARDS, step, now_s, prefix);
    checkpoints_abandon(c, folder);
    return e;
}

err run_try(struct checkpoints *c, uint64_t step, float value, double now_s)
{
    return try_into(c, step, value, now_s, next_prefix());
}

const char *run_publish(struct checkpoints *c, uint64_t step, double now_s)
{
    char *prefix = next_prefix();
    const err e = try_into(c, step, (float)step, now_s, prefix);
    if (e) fail_msg("%s", error_text());
    return prefix;
}

void run_check(const char *prefix, float value)
{
    struct bundle *bundle = NULL;
    float floats[RUN_SHARDS * RUN_FLOATS];
    if (bundle_open(prefix, &bundle)) fail_msg("%s", error_text());
    if (bundle_verify(bundle)) fail_msg("%s", error_text());
    const struct bundle_entry *entry = bundle_find(bundle, "w");
    assert_non_null(entry);
    assert_int_equal(bundle_read(bundle, entry, NULL, floats, sizeof floats), OK);
    for (int i = 0; i < RUN_SHARDS * RUN_FLOATS; i++) assert_true(floats[i] == value);
    bundle_close(bundle);
}

const char *run_list(const char *folder)
{
    static char text[LIST_MAX];
    char **prefixes = NULL;
    int count = 0, length = 0;
    if (checkpoint_list(folder, &prefixes, &count)) fail_msg("%s", error_text());
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        const char *slash = strrchr(prefixes[i], '/');
        length += snprintf(text + length, sizeof text - (size_t)length, "%s%s", i ? " " : "",
                           slash ? slash + 1 : prefixes[i]);
        assert_in_range(length, 0, sizeof text - 1);
    }
    free(prefixes);
    return text;
}
