/* test_gzip.c - what clients pack, and what only looks as if they had. */
#include "net/gzip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <cmocka.h>

enum { PLAIN = 100000, PACKED = PLAIN + 1000, GZIP = 31, ZLIB = 15 };

static unsigned char plain[PLAIN], packed[PACKED], unpacked[PLAIN];

/* Neither all the same nor without any order */
static void write_plain(void)
{
    for (size_t i = 0; i < PLAIN; i++) plain[i] = (unsigned char)(i * i / 251);
}

static size_t pack(size_t count, int window)
{
    z_stream z = {
        .next_in = plain, .avail_in = (uInt)count, .next_out = packed, .avail_out = PACKED};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

/* In pieces of at most so many bytes; GZIP_MORE: there is more than *ret_count was. */
static enum gzip_state unpack(const void *from, size_t bytes, size_t piece, size_t *ret_count)
{
    struct gzip *g = gzip_open(from, bytes);
    enum gzip_state state = GZIP_MORE;
    size_t most = *ret_count, count = 0;
    assert_non_null(g);
    *ret_count = 0;
    while (state == GZIP_MORE && *ret_count < most) {
        const size_t left = most - *ret_count, room = left < piece ? left : piece;
        unsigned char *to = malloc(room); /* so that a byte behind it is found */
        assert_non_null(to);
        state = gzip_read(g, to, room, &count);
        assert_in_range(count, 0, room);
        memcpy(unpacked + *ret_count, to, count);
        *ret_count += count;
        free(to);
    }
    gzip_close(g);
    return state;
}

static void is_damaged(const void *from, size_t bytes)
{
    for (size_t piece = 1; piece <= 4096; piece *= 16) {
        size_t count = PLAIN;
        assert_int_equal(unpack(from, bytes, piece, &count), GZIP_DAMAGED);
    }
}

static void what_is_packed_comes_back(void **state)
{
    static const size_t pieces[] = {1, 7, 4096, PLAIN};
    write_plain();
    for (size_t count = 0; count < PLAIN; count = 3 * count + 1)
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            const size_t bytes = pack(count, GZIP);
            size_t came = PLAIN;
            assert_int_equal(unpack(packed, bytes, pieces[i], &came), GZIP_DONE);
            assert_int_equal(came, count);
            assert_memory_equal(unpacked, plain, count);
        }
}

static void what_is_cut_or_damaged_is_refused(void **state)
{
    write_plain();
    const size_t bytes = pack(1000, GZIP);
    for (size_t cut = 0; cut < bytes; cut++) is_damaged(packed, cut);
    for (size_t at = bytes - 8; at < bytes; at++) { /* of its checksum and its size */
        packed[at] ^= 1;
        is_damaged(packed, bytes);
        packed[at] ^= 1;
    }
    packed[bytes] = 0;
    is_damaged(packed, bytes + 1);
    is_damaged(plain, 1000);
    is_damaged(packed, pack(1000, ZLIB));
    is_damaged(NULL, 0);
}

static void no_more_is_written_than_there_is_room_for(void **state)
{
    write_plain();
    const size_t bytes = pack(PLAIN, GZIP);
    for (size_t most = 1; most < PLAIN; most += 9973) {
        size_t count = most;
        assert_int_equal(unpack(packed, bytes, PLAIN, &count), GZIP_MORE);
        assert_int_equal(count, most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_packed_comes_back),
        cmocka_unit_test(what_is_cut_or_damaged_is_refused),
        cmocka_unit_test(no_more_is_written_than_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
