/* test_bundle_write.c - shards are written whole or not at all, joined or left as they were. */
#include "tests/core/train/checkpoint/bundle_made.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const float one[] = {1, 2, 3};
static const struct bundle_piece piece_a = {"a", BUNDLE_FLOAT, {1, {3}}};

static void an_abandoned_bundle_leaves_nothing_behind(void **folder)
{
    struct bundle_writer *w;
    assert_int_equal(bundle_create(folder_path(*folder, "a"), &w), OK);
    assert_int_equal(bundle_add(w, &piece_a, one), OK);
    assert_int_equal(folder_count(*folder, "a.data-00000-of-00001.tempstate*"), 1);
    assert_int_equal(folder_count(*folder, "*"), 1);
    bundle_abandon(w);
    assert_int_equal(folder_count(*folder, "*"), 0);
    bundle_abandon(NULL);
}

static void pieces_that_cannot_be_are_refused(void **folder)
{
    static char long_name[BUNDLE_NAME_MAX + 2];
    memset(long_name, 'n', BUNDLE_NAME_MAX + 1);
    const struct bundle_box outside = {{1}, {3}};
    const struct {
        struct bundle_piece piece;
        const char *text;
    } cases[] = {
        {{"", BUNDLE_FLOAT}, "name of 0 bytes"},
        {{long_name, BUNDLE_FLOAT}, "name of 4097 bytes"},
        {{"a", 7}, "a: string cannot be written"},
        {{"a", 99}, "a: unknown type cannot"},
        {{"a", BUNDLE_FLOAT, {9}}, "a: 9 dimensions"},
        {{"a", BUNDLE_FLOAT, {1, {-1}}}, "a: too many elements"},
        {{"a", BUNDLE_FLOAT, {2, {INT64_MAX, 2}}}, "a: too many elements"},
        {{"a", BUNDLE_DOUBLE, {1, {INT64_MAX / 4}}}, "a: too many elements"},
        {{"a", BUNDLE_FLOAT, {1, {3}}, &outside}, "a: a slice that is not inside"},
    };
    struct bundle_writer *w;
    assert_int_equal(bundle_create(folder_path(*folder, "a"), &w), OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(bundle_add(w, &cases[i].piece, one), ERR_INPUT, cases[i].text);
    bundle_abandon(w);
}

/* Finds out when all are there. */
static void assert_finish_refuses(const char *folder, const struct made *made, const char *text)
{
    struct bundle_writer *w;
    assert_int_equal(bundle_create(folder_path(folder, "a"), &w), OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(bundle_add(w, &made[i].piece, made[i].elements), OK);
    assert_refused(bundle_finish(w), ERR_INPUT, text);
    assert_int_equal(folder_count(folder, "*"), 0);
}

static void a_name_comes_again_only_with_another_slice_of_the_same_tensor(void **folder)
{
    const struct bundle_box first = {{0}, {1}}, second = {{1}, {2}};
    const struct made whole_twice[] = {{piece_a, one}, {piece_a, one}};
    const struct made whole_and_slice[] = {{piece_a, one},
                                           {{"a", BUNDLE_FLOAT, {1, {3}}, &first}, one}};
    const struct made slice_twice[] = {{{"a", BUNDLE_FLOAT, {1, {3}}, &first}, one},
                                       {{"a", BUNDLE_FLOAT, {1, {3}}, &first}, one}};
    const struct made two_types[] = {{{"a", BUNDLE_FLOAT, {1, {3}}, &first}, one},
                                     {{"a", BUNDLE_INT32, {1, {3}}, &second}, one}};
    const struct made two_shapes[] = {{{"a", BUNDLE_FLOAT, {1, {3}}, &first}, one},
                                      {{"a", BUNDLE_FLOAT, {1, {4}}, &second}, one}};
    assert_finish_refuses(*folder, whole_twice, "a is there twice");
    assert_finish_refuses(*folder, whole_and_slice, "a is there twice");
    assert_finish_refuses(*folder, slice_twice, "a slice of a is there twice");
    assert_finish_refuses(*folder, two_types, "a has slices of tensors that differ");
    assert_finish_refuses(*folder, two_shapes, "a has slices of tensors that differ");
}

/* ---- in stretches ---- */

enum { ROWS = 700, COLUMNS = 131 }; /* more than what is written at once */
static const struct bundle_shape table_shape = {2, {ROWS, COLUMNS}};

static void append_in_stretches(struct bundle_writer *w, const struct made *made, size_t bytes,
                                size_t stretch)
{
    assert_int_equal(bundle_begin(w, &made->piece, 1), OK);
    for (size_t done = 0; done < bytes; done += stretch) {
        const size_t now = bytes - done < stretch ? bytes - done : stretch;
        assert_int_equal(bundle_append(w, 0, (const uint8_t *)made->elements + done, now), OK);
        assert_int_equal(bundle_append(w, 0, NULL, 0), OK);
    }
    assert_int_equal(bundle_end(w), OK);
}

static void assert_same_file(const char *folder, const char *a, const char *b)
{
    char command[2 * FOLDER_PATH_MAX + 16];
    const struct path left = path_of(folder, a), right = path_of(folder, b);
    snprintf(command, sizeof command, "cmp '%s' '%s'", left.at, right.at);
    assert_int_equal(system(command), 0);
}

static void stretches_make_the_same_file_as_the_whole(void **folder)
{
    static float table[ROWS][COLUMNS];
    static const size_t stretches[] = {1001, sizeof *table, 3 * sizeof *table, sizeof table};
    const struct bundle_box box = {{100, 0}, {500, COLUMNS}};
    const struct made made[] = {
        {{"a", BUNDLE_FLOAT, {1, {3}}}, one},
        {{"empty", BUNDLE_FLOAT, {2, {0, 7}}}, NULL},
        {{"scalar", BUNDLE_FLOAT}, one},
        {{"slice", BUNDLE_FLOAT, table_shape, &box}, table},
        {{"table", BUNDLE_FLOAT, table_shape}, table},
    };
    static const size_t bytes[] = {12, 0, 4, 500 * sizeof *table, sizeof table};
    for (size_t i = 0; i < ROWS * COLUMNS; i++) table[i / COLUMNS][i % COLUMNS] = (float)i;
    write_bundle(folder_path(*folder, "whole"), made, 5);
    for (size_t s = 0; s < sizeof stretches / sizeof *stretches; s++) {
        struct bundle_writer *w;
        assert_int_equal(bundle_create(folder_path(*folder, "cut"), &w), OK);
        for (int i = 0; i < 5; i++) append_in_stretches(w, &made[i], bytes[i], stretches[s]);
        assert_int_equal(bundle_finish(w), OK);
        assert_same_file(*folder, "whole.data-00000-of-00001", "cut.data-00000-of-00001");
        assert_same_file(*folder, "whole.index", "cut.index");
    }
}

/* By turns, of one more than of the other */
static void pieces_side_by_side_make_the_same_file(void **folder)
{
    static float table[ROWS][COLUMNS];
    const struct made made[] = {{{"empty", BUNDLE_FLOAT, {2, {0, 7}}}, NULL},
                                {{"table", BUNDLE_FLOAT, table_shape}, table},
                                {{"three", BUNDLE_FLOAT, {1, {3}}}, one},
                                {{"table/slot", BUNDLE_FLOAT, table_shape}, table}};
    const struct bundle_piece pieces[] = {made[0].piece, made[1].piece, made[2].piece,
                                          made[3].piece};
    struct bundle_writer *w;
    for (size_t i = 0; i < ROWS * COLUMNS; i++) table[i / COLUMNS][i % COLUMNS] = (float)i;
    const struct made all[] = {
        made[0], made[1], made[2], made[3], {{"b", BUNDLE_FLOAT, {1, {3}}}, one}};
    write_bundle(folder_path(*folder, "whole"), all, 5);
    assert_int_equal(bundle_create(folder_path(*folder, "cut"), &w), OK);
    assert_int_equal(bundle_begin(w, pieces, 4), OK);
    for (int i = 0, behind = 0; behind < ROWS; i += 100) {
        for (; behind < i && behind < ROWS; behind += 50)
            assert_int_equal(bundle_append(w, 3, table[behind], 50 * sizeof *table), OK);
        if (i < ROWS) assert_int_equal(bundle_append(w, 1, table[i], 100 * sizeof *table), OK);
        if (i < 300) assert_int_equal(bundle_append(w, 2, one + i / 100, 4), OK);
    }
    assert_int_equal(bundle_end(w), OK);
    assert_int_equal(bundle_add(w, &all[4].piece, one), OK);
    assert_int_equal(bundle_finish(w), OK);
    assert_same_file(*folder, "whole.data-00000-of-00001", "cut.data-00000-of-00001");
    assert_same_file(*folder, "whole.index", "cut.index");
}

/* ---- where a file takes bytes at its end alone, as behind URLs ---- */

static const char *const schemes[] = {"appended", NULL};
static const char url[] = "appended://";

struct appended {
    struct file_writer is;
    char *path, *bytes;
    size_t count;
    FILE *to;
};

static err append_create(const struct file_system *system, const char *path,
                         struct file_writer **ret)
{
    struct appended *a = calloc(1, sizeof *a);
    assert_non_null(a);
    a->is.system = system;
    a->path = strdup(path + strlen(url));
    a->to = open_memstream(&a->bytes, &a->count);
    assert_true(a->path && a->to);
    *ret = &a->is;
    return OK;
}

static err append_write(struct file_writer *w, const void *from, size_t bytes)
{
    assert_int_equal(fwrite(from, 1, bytes, ((struct appended *)w)->to), bytes);
    return OK;
}

static err append_finish(struct file_writer *w)
{
    struct appended *a = (struct appended *)w;
    FILE *file = fopen(a->path, "w");
    assert_true(file && fflush(a->to) == 0);
    assert_int_equal(fwrite(a->bytes, 1, a->count, file), a->count);
    return fclose(file) ? ERR_IO : OK;
}

static void append_drop(struct file_writer *w)
{
    struct appended *a = (struct appended *)w;
    if (!a) return;
    fclose(a->to);
    free(a->bytes);
    free(a->path);
    free(a);
}

static err append_remove(const char *path)
{
    unlink(path + strlen(url));
    return OK;
}

static const struct file_system append_only = {
    .schemes = schemes,
    .create = append_create,
    .write = append_write,
    .finish = append_finish,
    .drop = append_drop,
    .remove = append_remove,
};

enum { TABLES_MAX = 3, PIECES_MAX = 4, TABLE_BYTES = 3 << 20, CASES = 60 };
static uint8_t pattern[TABLE_BYTES];

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % below;
}

/* Tables of up to four pieces from nothing to more than what is joined at once; of each some bytes
 * at a time, in any order */
static void write_tables(const char *prefix, uint64_t seed)
{
    static char names[TABLES_MAX * PIECES_MAX][16];
    struct bundle_writer *w;
    uint64_t state = seed * 2 + 1;
    assert_int_equal(bundle_create(prefix, &w), OK);
    const uint64_t tables = 1 + draw(&state, TABLES_MAX);
    for (uint64_t t = 0; t < tables; t++) {
        struct bundle_piece pieces[PIECES_MAX] = {0};
        int64_t left[PIECES_MAX], all = 0;
        const int count = 1 + (int)draw(&state, PIECES_MAX);
        const uint64_t limit = (uint64_t[]){3, 5000, 400000, TABLE_BYTES / 4}[draw(&state, 4)];
        for (int i = 0; i < count; i++) {
            char *name = names[t * PIECES_MAX + (uint64_t)i];
            snprintf(name, sizeof names[0], "t%d/%d", (int)t, i);
            const int64_t floats = (int64_t)draw(&state, limit);
            pieces[i] = (struct bundle_piece){name, BUNDLE_FLOAT, {1, {floats}}};
            left[i] = floats * 4;
            all += left[i];
        }
        const uint64_t most = 1 + draw(&state, 2) * (limit * 4) + (uint64_t)all / 50;
        const bool is_in_order = draw(&state, 2);
        assert_int_equal(bundle_begin(w, pieces, count), OK);
        while (all > 0) {
            int i = is_in_order ? 0 : (int)draw(&state, (uint64_t)count);
            while (left[i] == 0) i = (i + 1) % count;
            int64_t now = 1 + (int64_t)draw(&state, most);
            if (now > left[i]) now = left[i];
            assert_int_equal(bundle_append(w, i, pattern + TABLE_BYTES - left[i], (size_t)now), OK);
            left[i] -= now;
            all -= now;
        }
        assert_int_equal(bundle_end(w), OK);
    }
    if (bundle_finish(w)) fail_msg("seed %llu: %s", (unsigned long long)seed, error_text());
}

static void tables_of_any_size_are_the_same_file_where_it_only_grows_at_its_end(void **folder)
{
    char there[FOLDER_PATH_MAX + sizeof url];
    snprintf(there, sizeof there, "%s%s/there", url, (const char *)*folder);
    for (size_t i = 0; i < TABLE_BYTES; i++) pattern[i] = (uint8_t)(i * 2654435761u >> 13);
    for (uint64_t seed = 0; seed < CASES; seed++) {
        write_tables(folder_path(*folder, "here"), seed);
        write_tables(there, seed);
        assert_same_file(*folder, "here.data-00000-of-00001", "there.data-00000-of-00001");
        assert_same_file(*folder, "here.index", "there.index");
    }
}

static void assert_spoiled(const char *folder, struct bundle_writer *w)
{
    const char *text = "a tensor could not be written";
    assert_refused(bundle_append(w, 0, one, 4), ERR_INPUT, text);
    assert_refused(bundle_end(w), ERR_INPUT, text);
    assert_refused(bundle_add(w, &piece_a, one), ERR_INPUT, text);
    assert_refused(bundle_finish(w), ERR_INPUT, text);
    assert_int_equal(folder_count(folder, "*"), 0);
}

static void too_few_or_too_many_bytes_spoil_the_writer(void **folder)
{
    struct bundle_writer *w;
    assert_int_equal(bundle_create(folder_path(*folder, "a"), &w), OK);
    assert_int_equal(bundle_begin(w, &piece_a, 1), OK);
    assert_int_equal(bundle_append(w, 0, one, 8), OK);
    assert_refused(bundle_end(w), ERR_INPUT, "a: 4 of its 12 bytes are missing");
    assert_spoiled(*folder, w);
    assert_int_equal(bundle_create(folder_path(*folder, "a"), &w), OK);
    assert_int_equal(bundle_begin(w, &piece_a, 1), OK);
    assert_int_equal(bundle_append(w, 0, one, 8), OK);
    assert_refused(bundle_append(w, 0, one, 8), ERR_INPUT, "a: more than its 12 bytes");
    assert_spoiled(*folder, w);
}

/* ---- joining ---- */

static void shards_with_the_same_tensor_are_refused_and_left_as_they_were(void **folder)
{
    const char *shards[] = {folder_path(*folder, "p"), folder_path(*folder, "q")};
    const char *prefix = folder_path(*folder, "m");
    const struct made made[] = {{piece_a, one}};
    write_bundle(shards[0], made, 1);
    write_bundle(shards[1], made, 1);
    assert_refused(bundle_merge(shards, 2, prefix), ERR_INPUT, "a is there twice");
    assert_int_equal(folder_count(*folder, "*"), 4);
    bundle_close(opened(shards[0]));
    bundle_close(opened(shards[1]));
    assert_refused(bundle_merge(shards, 0, prefix), ERR_INPUT, "no shards");
    assert_refused(bundle_merge(shards, 1, shards[0]), ERR_INPUT, "into itself");
    bundle_close(opened(shards[0]));
}

static void a_shard_that_is_damaged_is_not_joined(void **folder)
{
    const char *shards[] = {folder_path(*folder, "p"), folder_path(*folder, "q")};
    write_ps_0(shards[0]);
    write_ps_1(shards[1]);
    assert_int_equal(truncate(folder_path(*folder, "q.data-00000-of-00001"), 11), 0);
    assert_refused(bundle_merge(shards, 2, folder_path(*folder, "m")), ERR_INPUT, "truncated");
    assert_int_equal(folder_count(*folder, "m.*"), 0);
    assert_int_equal(folder_count(*folder, "*"), 4);
}

/* The second data file cannot get its name, since a folder has it. */
static void a_rename_that_fails_leaves_the_shards_as_they_were(void **folder)
{
    const char *shards[] = {folder_path(*folder, "p"), folder_path(*folder, "q")};
    const char *prefix = folder_path(*folder, "m");
    write_ps_0(shards[0]);
    write_ps_1(shards[1]);
    assert_int_equal(mkdir(folder_path(*folder, "m.index"), 0777), 0);
    assert_refused(bundle_merge(shards, 2, prefix), ERR_IO, "m.index");
    assert_int_equal(folder_count(*folder, "*"), 5);
    assert_int_equal(rmdir(folder_path(*folder, "m.index")), 0);
    const char *nowhere = folder_path(*folder, "absent/m");
    assert_refused(bundle_merge(shards, 2, nowhere), ERR_IO, "absent/m.data-00000-of-00002");
    assert_int_equal(folder_count(*folder, "*"), 4);
    assert_int_equal(bundle_merge(shards, 2, prefix), OK);
    bundle_close(opened(prefix));
}

static void bundles_already_joined_are_joined_again(void **folder)
{
    const struct made made[] = {{piece_a, one}};
    const char *parts[] = {folder_path(*folder, "z"), write_both(*folder)};
    const char *prefix = folder_path(*folder, "all");
    float emb[6];
    write_bundle(parts[0], made, 1);
    merge_shards(parts, 2, prefix);
    assert_int_equal(folder_count(*folder, "all.data-0000?-of-00003"), 3);
    assert_int_equal(folder_count(*folder, "*"), 4);
    struct bundle *b = opened(prefix);
    assert_int_equal(bundle_read(b, bundle_find(b, "emb"), NULL, emb, sizeof emb), OK);
    assert_true(emb[0] == 1 && emb[5] == 6);
    assert_int_equal(bundle_verify(b), OK);
    bundle_close(b);
}

static void a_shard_without_tensors_keeps_its_number(void **folder)
{
    const char *parts[] = {folder_path(*folder, "empty"), folder_path(*folder, "p")};
    write_bundle(parts[0], NULL, 0);
    write_ps_0(parts[1]);
    assert_int_equal(bundle_merge(parts, 2, folder_path(*folder, "m")), OK);
    struct bundle *b = opened(folder_path(*folder, "m"));
    assert_int_equal(bundle_shards(b), 2);
    assert_int_equal(bundle_place(b, bundle_find(b, "global_step"), 0).shard, 1);
    assert_int_equal(bundle_verify(b), OK);
    bundle_close(b);
}

/* Shards are not joined over it: a task that stood still for long may have been replaced. */
static void only_a_writer_replaces_a_checkpoint(void **folder)
{
    const struct made made[] = {{piece_a, one}};
    const char *prefix = write_both(*folder), *shard = folder_path(*folder, "p");
    write_bundle(shard, made, 1);
    const int before = folder_count(*folder, "*");
    assert_refused(bundle_merge(&shard, 1, prefix), ERR_PEER, "by another task");
    assert_int_equal(folder_count(*folder, "*"), before);
    bundle_close(opened(prefix));
    bundle_close(opened(shard));
    assert_int_equal(bundle_remove(prefix), OK);
    merge_shards(&shard, 1, prefix);
    write_bundle(prefix, made, 1);
    assert_int_equal(folder_count(*folder, "*"), 2);
    bundle_close(opened(prefix));
}

static void removing_takes_the_files_of_one_checkpoint_only(void **folder)
{
    const char *prefix = write_both(*folder), *other = folder_path(*folder, "model.ckpt-71");
    const struct made made[] = {{piece_a, one}};
    write_bundle(other, made, 1);
    assert_int_equal(bundle_remove(prefix), OK);
    assert_int_equal(folder_count(*folder, "*"), 2);
    bundle_close(opened(other));
    assert_int_equal(bundle_remove(prefix), OK); /* nothing is there */
    assert_int_equal(bundle_remove(folder_path(*folder, "absent/m")), OK);
}

/* ---- what the system refuses ---- */

enum { FILE_BYTES_MAX = 4096, BIG = 4000 };

/* In a process of its own whose files cannot grow beyond a limit: 0 where all was as it must be. */
static int fill_the_disk(const char *folder, size_t floats, bool is_refused_by_add)
{
    static float values[BIG];
    const struct bundle_piece big = {"big", BUNDLE_FLOAT, {1, {(int64_t)floats}}};
    struct bundle_writer *w;
    char path[FOLDER_PATH_MAX];
    snprintf(path, sizeof path, "%s/full", folder);
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit = {FILE_BYTES_MAX, FILE_BYTES_MAX};
    if (setrlimit(RLIMIT_FSIZE, &limit) || bundle_create(path, &w)) return 1;
    err e = bundle_add(w, &big, values);
    if ((e != OK) != is_refused_by_add) return 2;
    for (int i = 0; !e && i < 200; i++) { /* an index longer than the limit */
        char name[64];
        snprintf(name, sizeof name, "%02x/a/name/that/takes/some/space/in/the/index", i * 37 % 256);
        e = bundle_add(w, &(struct bundle_piece){name, BUNDLE_FLOAT}, values);
        if (e) return 3;
    }
    if (e)
        bundle_abandon(w);
    else
        e = bundle_finish(w);
    if (e != ERR_IO || !strstr(error_text(), path)) return 4;
    return strstr(error_text(), strerror(EFBIG)) ? 0 : 5;
}

static void assert_full_disk_leaves_nothing(const char *folder, size_t floats, bool by_add)
{
    int status = -1;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(fill_the_disk(folder, floats, by_add));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(folder_count(folder, "*"), 0);
}

static void a_full_disk_is_an_error_with_the_path_and_leaves_nothing(void **folder)
{
    assert_full_disk_leaves_nothing(*folder, BIG, true); /* data */
    assert_full_disk_leaves_nothing(*folder, 1, false);  /* index */
}

static void a_folder_that_is_absent_is_an_error_with_the_path(void **folder)
{
    struct bundle_writer *w;
    assert_refused(bundle_create(folder_path(*folder, "absent/a"), &w), ERR_IO, "absent/a.data");
}

/* The names are taken by folders: neither file gets its name, or only the data do. */
static void a_bundle_that_cannot_get_its_names_leaves_nothing(void **folder)
{
    static const char *const taken[] = {"a.data-00000-of-00001", "a.index"};
    for (int i = 0; i < 2; i++) {
        struct bundle_writer *w;
        assert_int_equal(mkdir(folder_path(*folder, taken[i]), 0777), 0);
        assert_int_equal(bundle_create(folder_path(*folder, "a"), &w), OK);
        assert_int_equal(bundle_add(w, &piece_a, one), OK);
        assert_refused(bundle_finish(w), ERR_IO, taken[i]);
        assert_int_equal(folder_count(*folder, "*"), 1);
        assert_int_equal(rmdir(folder_path(*folder, taken[i])), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(an_abandoned_bundle_leaves_nothing_behind),
        IN_FOLDER(pieces_that_cannot_be_are_refused),
        IN_FOLDER(a_name_comes_again_only_with_another_slice_of_the_same_tensor),
        IN_FOLDER(stretches_make_the_same_file_as_the_whole),
        IN_FOLDER(pieces_side_by_side_make_the_same_file),
        IN_FOLDER(tables_of_any_size_are_the_same_file_where_it_only_grows_at_its_end),
        IN_FOLDER(too_few_or_too_many_bytes_spoil_the_writer),
        IN_FOLDER(shards_with_the_same_tensor_are_refused_and_left_as_they_were),
        IN_FOLDER(a_shard_that_is_damaged_is_not_joined),
        IN_FOLDER(a_rename_that_fails_leaves_the_shards_as_they_were),
        IN_FOLDER(bundles_already_joined_are_joined_again),
        IN_FOLDER(a_shard_without_tensors_keeps_its_number),
        IN_FOLDER(only_a_writer_replaces_a_checkpoint),
        IN_FOLDER(removing_takes_the_files_of_one_checkpoint_only),
        IN_FOLDER(a_full_disk_is_an_error_with_the_path_and_leaves_nothing),
        IN_FOLDER(a_folder_that_is_absent_is_an_error_with_the_path),
        IN_FOLDER(a_bundle_that_cannot_get_its_names_leaves_nothing),
    };
    file_system_register(&append_only);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
