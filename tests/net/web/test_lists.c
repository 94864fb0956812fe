/* Lists of files, of which a server says as much as it wants. */
#include "net/web/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#undef fail /* cmocka has a macro of this name */

static void drop(struct web_list *l)
{
    for (size_t i = 0; i < l->count; i++) free(l->keys[i]);
    free(l->keys);
}

static char *name_of(size_t bytes)
{
    char *name = malloc(bytes + 1);
    assert_non_null(name);
    memset(name, 'x', bytes);
    name[bytes] = '\0';
    return name;
}

static void names_take_no_more_memory_than_is_said(void **state)
{
    enum { LONG = 1 << 20 };
    struct web_list l = {0};
    char *name = name_of(LONG);
    err e = OK;
    while (!e && l.count < WEB_KEYS_MAX) e = web_list_add(&l, name);
    assert_int_equal(e, ERR_INPUT);
    assert_int_equal(l.count, WEB_LIST_BYTES_MAX / (LONG + 1));
    free(name);
    drop(&l);
}

static void there_are_no_more_names_than_is_said(void **state)
{
    struct web_list l = {.count = WEB_KEYS_MAX};
    assert_int_equal(web_list_add(&l, "x"), ERR_INPUT);
}

static void pages_have_an_end(void **state)
{
    const struct web_listing listing = {.scheme = "s3", .bucket = "b", .prefix = "p"};
    struct web_list l = {0};
    for (int i = 0; i < WEB_PAGES_MAX; i++) assert_int_equal(web_list_turn(&l, &listing), OK);
    assert_int_equal(web_list_turn(&l, &listing), ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_take_no_more_memory_than_is_said),
        cmocka_unit_test(there_are_no_more_names_than_is_said),
        cmocka_unit_test(pages_have_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
