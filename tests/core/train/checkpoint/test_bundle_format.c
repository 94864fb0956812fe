/* test_bundle_format.c - what is written is TensorFlow's byte for byte, and what others may write
 * is read or refused.
 *
 * By hand: test_bundle_format PREFIX... writes each of these checkpoints again and compares.
 */
#include "tests/core/train/checkpoint/bundle_made.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/crc32c.h"
#include "core/train/checkpoint/bundle/ordered.h"

/* The empty block of meta data with its trailer, and the magic number. */
#define NO_META "\0\0\0\0\1\0\0\0\0\xc0\xf2\xa1\xb0"
#define MAGIC "\x57\xfb\x80\x8b\x24\x75\x47\xdb"

static void two_tensors_give_the_bytes_of_tensorflow(void **folder)
{
    static const char wanted[] =
        "\0\0\6\10\1\32\2\10\1"
        "\0\13\13global_step\10\11\22\0\50\10\65\xbb\xd7\x9f\x11"
        "\0\1\25w\10\1\22\10\22\2\10\2\22\2\10\2\40\10\50\20\65\x4c\x28\x98\x74"
        "\0\0\0\0\1\0\0\0\0\x3d\x24\x2f\xca" NO_META
        "\0\1\2x\0\x43\0\0\0\0\1\0\0\0\0\x0c\xdf\xec\xbf"
        "\x48\x08\x55\x0e\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "\0" MAGIC;
    static const uint8_t data[] = {7, 0, 0, 0,    0, 0, 0,    0,    0, 0, 0x80, 0x3f,
                                   0, 0, 0, 0x40, 0, 0, 0x40, 0x40, 0, 0, 0x80, 0x40};
    const int64_t step = 7;
    const struct made made[] = {
        {{"global_step", BUNDLE_INT64}, &step},
        {{"w", BUNDLE_FLOAT, {2, {2, 2}}}, (float[]){1, 2, 3, 4}},
    };
    const char *prefix = folder_path(*folder, "a");
    write_bundle(prefix, made, 2);
    assert_file_holds(folder_path(*folder, "a.index"), wanted, sizeof wanted - 1);
    assert_file_holds(folder_path(*folder, "a.data-00000-of-00001"), data, sizeof data);
    assert_int_equal(folder_count(*folder, "*"), 2);
}

static void two_shards_with_a_sliced_tensor_give_the_bytes_of_tensorflow(void **folder)
{
    static const char begin[] =
        "\0\0\6\10\2\32\2\10\1"
        "\0\14\23\0emb\0\1\1\2\x80\x82\x80\x82\10\1\22\10\22\2\10\2\22\2\10\2\50\20\65\x4c\x28\x98"
        "\x74"
        "\10\4\27\x82\x81\x80\x82\10\1\22\10\22\2\10\1\22\2\10\2\30\1\40\4\50\10\65\x2c\xb9\xff\x52"
        "\0\4\21bias\10\1\22\4\22\2\10\1\30\1\50\4\65\x06\x38\x27\x1f";
    static const char end[] = "\xb1\x01\x08\xbe\x01\x0f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                              "\0\0\0\0\0\0\0\0\0\0\0\0" MAGIC;
    static const uint8_t data[] = {0, 0, 0, 0x3f, 0, 0, 0xa0, 0x40, 0, 0, 0xc0, 0x40};
    static struct bytes index;
    write_both(*folder);
    bytes_load(folder_path(*folder, "model.ckpt-7.index"), &index);
    assert_int_equal(index.count, 258);
    assert_memory_equal(index.at, begin, sizeof begin - 1);
    assert_memory_equal(index.at + 0xac + 1, "\x08\x1e\x70\xa2", 4); /* of the data block */
    assert_memory_equal(index.at + 258 - 48, end, 48);
    assert_file_holds(folder_path(*folder, "model.ckpt-7.data-00001-of-00002"), data, sizeof data);
    assert_int_equal(folder_count(*folder, "*"), 3);
}

/* ---- TensorFlow's own, written again ---- */

struct again {
    struct bundle *bundle;
    struct bundle_writer *writer;
    int shard;
    int64_t offset; /* of the piece that comes next */
};

static bool add_piece_at(const struct again *a, const struct bundle_entry *entry)
{
    const int stored = entry->slice_count ? entry->slice_count : 1;
    for (int i = 0; i < stored; i++) {
        const struct bundle_place place = bundle_place(a->bundle, entry, i);
        if (place.shard != a->shard || place.offset != a->offset) continue;
        void *values = malloc((size_t)place.bytes);
        assert_non_null(values);
        assert_int_equal(bundle_read(a->bundle, entry, &place.box, values, (size_t)place.bytes),
                         OK);
        const struct bundle_piece piece = {entry->name, entry->dtype, entry->shape, &place.box};
        assert_int_equal(bundle_add(a->writer, &piece, values), OK);
        free(values);
        return true;
    }
    return false;
}

/* The piece that stands where the last one ended; false: there is none. */
static bool add_next(struct again *a)
{
    for (int i = 0; i < bundle_entries(a->bundle); i++) {
        const struct bundle_entry *entry = bundle_at(a->bundle, i);
        if (!add_piece_at(a, entry)) continue;
        const int stored = entry->slice_count ? entry->slice_count : 1;
        for (int j = 0; j < stored; j++) {
            const struct bundle_place place = bundle_place(a->bundle, entry, j);
            if (place.shard != a->shard || place.offset != a->offset) continue;
            a->offset += place.bytes;
            return true;
        }
    }
    return false;
}

static void assert_same_file(const char *prefix, const char *again, const char *suffix)
{
    uint8_t *wanted, *got;
    size_t wanted_bytes, got_bytes;
    char path[FOLDER_PATH_MAX];
    snprintf(path, sizeof path, "%s%s", prefix, suffix);
    assert_int_equal(bundle_file_load(path, PTRDIFF_MAX, &wanted, &wanted_bytes), OK);
    snprintf(path, sizeof path, "%s%s", again, suffix);
    assert_int_equal(bundle_file_load(path, PTRDIFF_MAX, &got, &got_bytes), OK);
    assert_int_equal(got_bytes, wanted_bytes);
    assert_memory_equal(got, wanted, got_bytes);
    free(wanted);
    free(got);
}

enum { SHARDS_SOME = 8 };

static void write_again(const char *folder, const char *prefix)
{
    struct again a = {.bundle = opened(prefix)};
    const int shards = bundle_shards(a.bundle);
    char paths[SHARDS_SOME][FOLDER_PATH_MAX];
    const char *parts[SHARDS_SOME];
    assert_in_range(shards, 1, SHARDS_SOME);
    for (a.shard = 0; a.shard < shards; a.shard++) {
        snprintf(paths[a.shard], FOLDER_PATH_MAX, "%s/part-%d", folder, a.shard);
        parts[a.shard] = paths[a.shard];
        assert_int_equal(bundle_create(parts[a.shard], &a.writer), OK);
        for (a.offset = 0; add_next(&a);) {
        }
        assert_true(a.offset > 0);
        assert_int_equal(bundle_finish(a.writer), OK);
    }
    bundle_close(a.bundle);
    const char *again = folder_path(folder, "again");
    merge_shards(parts, shards, again);
    assert_same_file(prefix, again, ".index");
    for (int i = 0; i < shards; i++) {
        char suffix[64];
        snprintf(suffix, sizeof suffix, ".data-%05d-of-%05d", i, shards);
        assert_same_file(prefix, again, suffix);
    }
    assert_int_equal(bundle_remove(again), OK);
    assert_int_equal(folder_count(folder, "*"), 0);
}

static void checkpoints_of_tensorflow_are_written_again_byte_for_byte(void **folder)
{
    write_again(*folder, FIXTURES "/cluster_adam/model.ckpt-3");
    write_again(*folder, FIXTURES "/cluster_ftrl/model.ckpt-3");
}

/* ---- encodings ---- */

static void signed_numbers_are_ordered_as_tensorflow_writes_them(void **state)
{
    static const struct {
        int64_t value;
        const char *bytes;
    } cases[] = {
        {0, "\x80"},
        {1, "\x81"},
        {-1, "\x7f"},
        {63, "\xbf"},
        {64, "\xc0\x40"},
        {127, "\xc0\x7f"},
        {784, "\xc3\x10"},
        {8192, "\xe0\x20\x00"},
        {100000, "\xe1\x86\xa0"},
        {1000000, "\xef\x42\x40"},
        {INT64_C(1) << 31, "\xf8\x80\x00\x00\x00"},
        {-64, "\x40"},
        {-65, "\x3f\xbf"},
        {INT64_MAX, "\xff\xc0\x7f\xff\xff\xff\xff\xff\xff\xff"},
    };
    static const size_t lengths[] = {1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 5, 1, 2, 10};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer b = {0};
        buffer_ordered_signed(&b, cases[i].value);
        assert_int_equal(b.used, lengths[i]);
        assert_memory_equal(b.at, cases[i].bytes, lengths[i]);
        buffer_drop(&b);
    }
}

/* Numbers around every change of length, from the least to the greatest. */
static void ordered_numbers_sort_as_numbers_do(void **state)
{
    struct buffer last = {0};
    int64_t before = INT64_MIN;
    buffer_ordered_signed(&last, before);
    for (int i = -125; i <= 125; i++) {
        const int shift = (i < 0 ? -i : i) / 2;
        const int64_t size = (INT64_C(1) << shift) - 1 + (i & 1);
        const int64_t value = i < 0 ? -size : size;
        if (value <= before) continue;
        struct buffer now = {0};
        buffer_ordered_signed(&now, value);
        const size_t shorter = now.used < last.used ? now.used : last.used;
        assert_true(memcmp(last.at, now.at, shorter) < 0);
        buffer_drop(&last);
        last = now;
        before = value;
    }
    assert_true(before >= INT64_C(1) << 61);
    buffer_drop(&last);
}

static void varints_that_end_early_or_are_too_long_are_refused(void **state)
{
    static const uint8_t longest[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
    static const uint8_t too_big[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2};
    uint64_t value = 0;
    struct view s = {longest, longest + sizeof longest};
    assert_true(view_varint(&s, &value));
    assert_true(value == UINT64_MAX);
    for (size_t bytes = 0; bytes < sizeof longest; bytes++) {
        s = (struct view){longest, longest + bytes};
        assert_false(view_varint(&s, &value));
    }
    s = (struct view){too_big, too_big + sizeof too_big};
    assert_false(view_varint(&s, &value));
}

/* ---- tables ---- */

enum { KEYS = 9000, KEY_ROOM = 128 };

static struct view text_span(const char *text)
{
    return (struct view){(const uint8_t *)text, (const uint8_t *)text + strlen(text)};
}

static void many_keys_fill_several_blocks_and_come_back_in_order(void **folder)
{
    struct sorted_writer writer;
    struct buffer file;
    static char key[KEY_ROOM];
    const char *path = folder_path(*folder, "table");
    sorted_begin(&writer);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "layer_%05d/some/kernel/that/has/a/name/of/its/own/%05d", i, i);
        sorted_add(&writer, &(struct sorted_item){text_span(key), text_span(key)});
    }
    assert_int_equal(sorted_end(&writer, &file), OK);
    assert_true(file.used > 2 * TABLE_BLOCK_BYTES);
    bytes_store(path, file.at, file.used);
    buffer_drop(&file);

    static struct sorted_reader reader;
    struct sorted_item item;
    assert_int_equal(sorted_open(path, &reader), OK);
    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "layer_%05d/some/kernel/that/has/a/name/of/its/own/%05d", i, i);
        assert_int_equal(sorted_next(&reader, &item), OK);
        assert_int_equal(view_bytes(item.key), strlen(key));
        assert_memory_equal(item.key.at, key, strlen(key));
        assert_memory_equal(item.value.at, key, strlen(key));
    }
    assert_int_equal(sorted_next(&reader, &item), OK);
    assert_null(item.key.at);
    sorted_close(&reader);
}

/* The kind of the first block of the table, with a checksum that fits. */
static void set_kind(struct bytes *index, size_t block_bytes, uint8_t kind)
{
    index->at[block_bytes] = kind;
    const uint32_t crc = crc32c_mask(crc32c(index->at, block_bytes + 1));
    memcpy(index->at + block_bytes + 1, &crc, sizeof crc);
}

static void snappy_blocks_are_refused_by_name(void **folder)
{
    static struct bytes index;
    struct bundle *bundle;
    const char *prefix = write_both(*folder);
    bytes_load(folder_path(*folder, "model.ckpt-7.index"), &index);
    set_kind(&index, 172, TABLE_SNAPPY);
    bytes_store(folder_path(*folder, "model.ckpt-7.index"), index.at, index.count);
    assert_refused(bundle_open(prefix, &bundle), ERR_INPUT, "snappy");
    set_kind(&index, 172, 9);
    bytes_store(folder_path(*folder, "model.ckpt-7.index"), index.at, index.count);
    assert_refused(bundle_open(prefix, &bundle), ERR_INPUT, "unknown kind of block");
}

/* A table of a header and so many entries as they are given. */
struct raw {
    const char *key;
    size_t key_bytes;
    const char *value;
    size_t value_bytes;
};
#define RAW(key, value)                                                                            \
    {                                                                                              \
        key, sizeof key - 1, value, sizeof value - 1                                               \
    }
#define HEADER RAW("", "\10\1\32\2\10\1")

static void write_raw(const char *path, const struct raw *raw, int count)
{
    struct sorted_writer writer;
    struct buffer file;
    sorted_begin(&writer);
    for (int i = 0; i < count; i++) {
        const uint8_t *key = (const uint8_t *)raw[i].key, *value = (const uint8_t *)raw[i].value;
        sorted_add(&writer, &(struct sorted_item){{key, key + raw[i].key_bytes},
                                                  {value, value + raw[i].value_bytes}});
    }
    assert_int_equal(sorted_end(&writer, &file), OK);
    bytes_store(path, file.at, file.used);
    buffer_drop(&file);
}

/* 12 bytes, as TensorFlow writes ["ab", "", "xyz"], and their entry. */
static const uint8_t strings[] = {2, 0, 3, 0x1b, 0x42, 0x8b, 0xca, 'a', 'b', 'x', 'y', 'z'};
#define STRINGS RAW("words", "\10\7\22\4\22\2\10\3\50\14\65\x10\xad\xc4\x3f")

static void strings_are_listed_and_verified_but_not_read(void **folder)
{
    const struct raw raw[] = {HEADER, STRINGS};
    const char *prefix = folder_path(*folder, "s");
    const char *path = folder_path(*folder, "s.data-00000-of-00001");
    uint8_t data[sizeof strings], values[16];
    write_raw(folder_path(*folder, "s.index"), raw, 2);
    bytes_store(path, strings, sizeof strings);
    struct bundle *bundle = opened(prefix);
    const struct bundle_entry *words = bundle_find(bundle, "words");
    assert_string_equal(bundle_dtype_name(words->dtype), "string");
    assert_int_equal(bundle_verify(bundle), OK);
    assert_refused(bundle_read(bundle, words, NULL, values, 3), ERR_INPUT, "cannot be read");
    for (size_t i = 0; i < sizeof strings; i++) {
        for (int bit = 0; bit < 8; bit++) {
            memcpy(data, strings, sizeof strings);
            data[i] ^= (uint8_t)(1 << bit);
            bytes_store(path, data, sizeof data);
            assert_refused(bundle_verify(bundle), ERR_INPUT, "words");
        }
    }
    bundle_close(bundle);
}

/* One element of 3 bytes with a checksum of its own, which the checksum of all includes. */
static void variants_are_verified_with_the_checksums_between_them(void **folder)
{
    static const uint8_t counted[] = {3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c'};
    uint8_t data[] = {3, 'a', 'b', 'c', 0, 0, 0, 0};
    const uint32_t own = crc32c(counted, sizeof counted), masked = crc32c_mask(own);
    memcpy(data + 4, &masked, sizeof masked);
    const uint32_t all = crc32c_mask(crc32c_extend(own, data + 4, 4));
    char value[] = "\10\25\22\4\22\2\10\1\50\10\65----";
    memcpy(value + sizeof value - 5, &all, sizeof all);
    const struct raw raw[] = {HEADER, RAW("v", value)};
    const char *path = folder_path(*folder, "v.data-00000-of-00001");
    write_raw(folder_path(*folder, "v.index"), raw, 2);
    bytes_store(path, data, sizeof data);
    struct bundle *bundle = opened(folder_path(*folder, "v"));
    assert_int_equal(bundle_verify(bundle), OK);
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] ^= 1;
        bytes_store(path, data, sizeof data);
        assert_refused(bundle_verify(bundle), ERR_INPUT, "v: ");
        data[i] ^= 1;
    }
    bundle_close(bundle);
}

/* ---- entries that cannot be, with good checksums ---- */

static const struct {
    struct raw raw[3];
    int count;
    const char *text;
} made_up[] = {
    {{RAW("a", "\10\1\22\0\50\4")}, 1, "no header"},
    {{RAW("", "\32\2\10\1")}, 1, "0 data files"},
    {{RAW("", "\10\xff\xff\xff\xff\7\32\2\10\1")}, 1, "data files, from 1 to"},
    {{RAW("", "\10\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\32\2\10\1")}, 1, "data files, from 1 to"},
    {{RAW("", "\10\1\20\1\32\2\10\1")}, 1, "big-endian"},
    {{RAW("", "\10\1\32\4\10\1\20\2")}, 1, "must not read it"},
    {{RAW("", "\10\1\32\5\10\1\32\1\1")}, 1, "must not read it"},
    {{RAW("", "\10\1\32\4\10\1\30\1")}, 1, "must not read it"},
    {{RAW("", "\10\1\32\13\10\xff\xff\xff\xff\xff\xff\xff\xff\xff\1")}, 1, "must not read it"},
    {{RAW("", "\10\1\32\5\10\1\32\1\xff")}, 1, "its version"},
    {{RAW("", "\12\1\1")}, 1, "its header"},
    {{RAW("", "\10")}, 1, "its header"},
    {{HEADER, RAW("a", "\10")}, 2, "a: its entry"},
    {{HEADER, RAW("a", "\12\1\1")}, 2, "a: its entry"},
    {{HEADER, RAW("a", "\13")}, 2, "a: its entry"},
    {{HEADER, RAW("a", "\10\xff\xff\xff\xff\x0f")}, 2, "a: a number out of range"},
    {{HEADER, RAW("a", "\10\1\22\0\50\xff\xff\xff\xff\xff\xff\xff\xff\xff\1")}, 2, "out of range"},
    {{HEADER, RAW("a", "\10\1\22\0\40\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\50\4")},
     2,
     "out of range"},
    {{HEADER, RAW("a", "\10\1\22\0\30\xc0\x84\x3d\50\4")}, 2, "out of range"},
    {{HEADER, RAW("a", "\10\1\22\0\30\1\50\4")}, 2, "a: data file 1 of 1"},
    {{HEADER, RAW("a", "\10\1\22\0\40\xff\xff\xff\xff\xff\xff\xff\xff\x7f\50\4")},
     2,
     "truncated: 4 bytes, a ends beyond them"},
    {{HEADER, RAW("a", "\10\1\22\0\50\5")}, 2, "a: 5 bytes are not what"},
    {{HEADER, RAW("a", "\10\1\22\2\30\1\50\4")}, 2, "a: its shape is not known"},
    {{HEADER, RAW("a", "\10\1\22\15\22\13\10\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\50\4")},
     2,
     "a: its shape is not known"},
    {{HEADER, RAW("a", "\10\1\22\1\22")}, 2, "a: its shape"},
    {{HEADER, RAW("a", "\10\1\22\3\22\1\10")}, 2, "a: its shape"},
    {{HEADER, RAW("a", "\10\1\22\22\22\0\22\0\22\0\22\0\22\0\22\0\22\0\22\0\22\0")},
     2,
     "more than 8 dimensions"},
    {{HEADER, RAW("a", "\10\1\22\20\22\6\10\x80\x80\x80\x80\x40\22\6\10\x80\x80\x80\x80\x40")},
     2,
     "too many elements"},
    {{HEADER,
      RAW("a", "\10\1\22\24\22\2\10\0\22\6\10\x80\x80\x80\x80\x40\22\6\10\x80\x80\x80\x80\x40")},
     2,
     "a: its shape has too many elements"},
    {{HEADER, RAW("a", "\10\1\22\4\22\2\10\2\72\4\12\2\20\1")}, 2, "more slices than entries"},
    {{HEADER, RAW("\0", "\10\1\22\0"), RAW("a", "\10\1\22\0\72\0")},
     3,
     "a: a slice of 0 dimensions"},
    {{HEADER, RAW("\0", "\10\1\22\0"), RAW("a", "\10\1\22\4\22\2\10\2\72\6\12\4\10\1\20\1")},
     3,
     "a: the entry of a slice is absent"},
    {{HEADER, RAW("\0", "\10\1\22\0"), RAW("a", "\10\1\22\4\22\2\10\2\72\4\12\2\10\1")},
     3,
     "a: a slice with a start or length"},
    {{HEADER, RAW("\0", "\10\1\22\0"), RAW("a", "\10\1\22\4\22\2\10\2\72\4\12\0\12\0")},
     3,
     "a: a slice of more dimensions"},
    {{HEADER, RAW("\0", "\10\1\22\0"), RAW("a", "\10\1\22\4\22\2\10\2\72\3\12\1\10")},
     3,
     "a: a slice"},
    {{HEADER, RAW("\0", "\10\1\22\0")}, 2, "0 slices are listed, 1 are there"},
    {{HEADER, RAW("\0a\0\1\1\1\x81\x82", "\10\1\22\4\22\2\10\2"),
      RAW("a", "\10\1\22\4\22\2\10\2\72\6\12\4\10\1\20\2")},
     3,
     "a: a slice that is not inside"},
    {{HEADER, RAW("\0a\0\1\1\1\x80\x81", "\10\2\22\4\22\2\10\1"),
      RAW("a", "\10\1\22\4\22\2\10\2\72\4\12\2\20\1")},
     3,
     "a: a slice whose entry has another"},
    {{HEADER, RAW("\0a\0\1\1\1\x80\x81", "\10\1\22\4\22\2\10\2"),
      RAW("a", "\10\1\22\4\22\2\10\2\72\4\12\2\20\1")},
     3,
     "a: a slice whose entry has another"},
    {{HEADER, RAW("a\0b", "\10\1\22\0\50\4")}, 2, "a name with a zero byte"},
    {{HEADER, RAW("b", "\10\1\22\0\50\4"), RAW("a", "\10\1\22\0\50\4")},
     3,
     "an entry that cannot be"},
    {{HEADER, RAW("a", "\10\1\22\0\50\4"), RAW("a", "\10\1\22\0\50\4")},
     3,
     "an entry that cannot be"},
};

static void entries_that_cannot_be_are_refused_with_their_reason(void **folder)
{
    const struct path prefix = path_of(*folder, "m"), index = path_of(*folder, "m.index");
    bytes_store(folder_path(*folder, "m.data-00000-of-00001"), "1234", 4);
    for (size_t i = 0; i < sizeof made_up / sizeof *made_up; i++) {
        struct bundle *bundle = NULL;
        write_raw(index.at, made_up[i].raw, made_up[i].count);
        const err e = bundle_open(prefix.at, &bundle);
        if (!e) print_error("opened: the one with \"%s\"\n", made_up[i].text);
        assert_refused(e, ERR_INPUT, made_up[i].text);
        assert_non_null(strstr(error_text(), "/m."));
    }
}

/* Slices [0, 2) and [1, 3) of 3, with entries and data of both. */
static void slices_that_overlap_are_refused(void **folder)
{
    const struct raw raw[] = {
        HEADER,
        RAW("\0a\0\1\1\1\x80\x82", "\10\1\22\4\22\2\10\2\50\10"),
        RAW("\0a\0\1\1\1\x81\x82", "\10\1\22\4\22\2\10\2\50\10"),
        RAW("a", "\10\1\22\4\22\2\10\3\72\4\12\2\20\2\72\6\12\4\10\1\20\2"),
    };
    struct bundle *bundle;
    bytes_store(folder_path(*folder, "m.data-00000-of-00001"), "12345678", 8);
    write_raw(folder_path(*folder, "m.index"), raw, 4);
    assert_refused(bundle_open(folder_path(*folder, "m"), &bundle), ERR_INPUT,
                   "a: two slices overlap");
}

/* What TensorFlow writes for "-" in a slice: an extent without a length, a key with length -1. */
static void a_slice_may_say_that_an_axis_is_whole_by_leaving_its_length_out(void **folder)
{
    const struct raw raw[] = {
        HEADER,
        RAW("\0a\0\1\1\2\x80\x81\x80\x7f",
            "\10\4\22\10\22\2\10\1\22\2\10\2\50\2\65\xff\xff\xff\xff"),
        RAW("a", "\10\4\22\10\22\2\10\2\22\2\10\2\72\6\12\2\20\1\12\0"),
    };
    uint8_t value[2];
    bytes_store(folder_path(*folder, "m.data-00000-of-00001"), "\3\4", 2);
    write_raw(folder_path(*folder, "m.index"), raw, 3);
    struct bundle *bundle = opened(folder_path(*folder, "m"));
    const struct bundle_entry *a = bundle_find(bundle, "a");
    assert_int_equal(bundle_place(bundle, a, 0).box.length[1], 2);
    assert_refused(bundle_read(bundle, a, NULL, (uint8_t[4]){0}, 4), ERR_INPUT,
                   "a: its slices hold 2 of 4 elements");
    const struct bundle_box row = {{0, 0}, {1, 2}};
    assert_refused(bundle_read(bundle, a, &row, value, 2), ERR_INPUT, "checksum differs");
    assert_memory_equal(value, "\3\4", 2);
    bundle_close(bundle);
}

static char **by_hand; /* prefixes, the last NULL */

static void the_checkpoints_given_are_written_again_byte_for_byte(void **folder)
{
    for (char **prefix = by_hand; *prefix; prefix++) write_again(*folder, *prefix);
}

static int run_by_hand(char **prefixes)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(the_checkpoints_given_are_written_again_byte_for_byte),
    };
    by_hand = prefixes;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int count, char **arguments)
{
    if (count > 1) return run_by_hand(arguments + 1);
    const struct CMUnitTest tests[] = {
        IN_FOLDER(two_tensors_give_the_bytes_of_tensorflow),
        IN_FOLDER(two_shards_with_a_sliced_tensor_give_the_bytes_of_tensorflow),
        IN_FOLDER(checkpoints_of_tensorflow_are_written_again_byte_for_byte),
        cmocka_unit_test(signed_numbers_are_ordered_as_tensorflow_writes_them),
        cmocka_unit_test(ordered_numbers_sort_as_numbers_do),
        cmocka_unit_test(varints_that_end_early_or_are_too_long_are_refused),
        IN_FOLDER(many_keys_fill_several_blocks_and_come_back_in_order),
        IN_FOLDER(snappy_blocks_are_refused_by_name),
        IN_FOLDER(strings_are_listed_and_verified_but_not_read),
        IN_FOLDER(variants_are_verified_with_the_checksums_between_them),
        IN_FOLDER(entries_that_cannot_be_are_refused_with_their_reason),
        IN_FOLDER(slices_that_overlap_are_refused),
        IN_FOLDER(a_slice_may_say_that_an_axis_is_whole_by_leaving_its_length_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
