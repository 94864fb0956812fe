/* Memory of an arena: aligned, zeroed, apart from each other, freed at once. */
#include "core/base/arena.h"
#include "core/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void memory_is_aligned_zeroed_and_not_shared(void **state)
{
    struct arena arena = {0};
    uint8_t *pieces[200];
    for (size_t i = 0; i < 200; i++) {
        const size_t bytes = i * 37 % 5000;
        pieces[i] = arena_new(&arena, bytes);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        for (size_t b = 0; b < bytes; b++) assert_int_equal(pieces[i][b], 0);
        memset(pieces[i], (int)i, bytes);
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t b = 0; b < i * 37 % 5000; b++) assert_int_equal(pieces[i][b], (uint8_t)i);
    arena_free(&arena);
}

static void even_empty_pieces_have_addresses_of_their_own(void **state)
{
    struct arena arena = {0};
    assert_ptr_not_equal(arena_new(&arena, 0), arena_new(&arena, 0));
    arena_free(&arena);
}

static void pieces_larger_than_a_block_are_given(void **state)
{
    struct arena arena = {0};
    uint8_t *small = arena_new(&arena, 1);
    uint8_t *large = arena_new(&arena, 3 << 20);
    large[0] = large[(3 << 20) - 1] = *small = 1;
    arena_free(&arena);
}

static void strings_are_copied_and_formatted(void **state)
{
    struct arena arena = {0};
    char word[] = "dense";
    const char *copy = arena_string(&arena, word);
    word[0] = 'x';
    assert_string_equal(copy, "dense");
    assert_string_equal(arena_format(&arena, "%s_%d", copy, 2), "dense_2");
    assert_int_equal(strlen(arena_format(&arena, "%100000d", 1)), 100000);
    arena_free(&arena);
}

static void a_freed_arena_is_empty_and_can_be_used_again(void **state)
{
    struct arena arena = {0};
    arena_free(&arena);
    arena_new(&arena, 10);
    arena_free(&arena);
    assert_null(arena.blocks);
    assert_non_null(arena_new(&arena, 10));
    arena_free(&arena);
}

/* A size that cannot be had ends the process with a message and a code that says do not retry. */
static void sizes_beyond_all_memory_end_the_process(void **state)
{
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct arena arena = {0};
        close(STDERR_FILENO);
        arena_array(&arena, SIZE_MAX / 2, 3);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_FAILURE);
}

static void the_clock_never_goes_back(void **state)
{
    uint64_t before_ns = clock_ns();
    for (int i = 0; i < 1000; i++) {
        const uint64_t now_ns = clock_ns();
        assert_true(now_ns >= before_ns);
        before_ns = now_ns;
    }
    const uint64_t low_ms = clock_ns() / 1000000, now_ms = clock_ms();
    assert_in_range(now_ms, low_ms, clock_ns() / 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_zeroed_and_not_shared),
        cmocka_unit_test(even_empty_pieces_have_addresses_of_their_own),
        cmocka_unit_test(pieces_larger_than_a_block_are_given),
        cmocka_unit_test(strings_are_copied_and_formatted),
        cmocka_unit_test(a_freed_arena_is_empty_and_can_be_used_again),
        cmocka_unit_test(sizes_beyond_all_memory_end_the_process),
        cmocka_unit_test(the_clock_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
