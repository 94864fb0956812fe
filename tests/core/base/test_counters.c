/* test_counters.c - counters: their names, their text, and what comes as bytes. */
#include "core/base/counters.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* The naming conventions of Prometheus, of every row. */
static void names_are_of_the_convention(void **state)
{
    for (int c = 0; c < COUNTERS; c++) {
        const struct counter_row *row = &counter_rows[c];
        const size_t length = strlen(row->family);
        const bool ends_total = length > 6 && strcmp(row->family + length - 6, "_total") == 0;
        assert_int_equal(ends_total, row->type == TYPE_TOTAL);
        for (const char *l = row->family; *l; l++)
            assert_true((*l >= 'a' && *l <= 'z') || *l == '_' || (*l >= '0' && *l <= '9'));
        const bool goes_on = c > 0 && strcmp(row->family, counter_rows[c - 1].family) == 0;
        assert_int_equal(goes_on, row->help[0] == '\0');
        for (int before = 0; before < c - 1 && !goes_on; before++)
            assert_string_not_equal(row->family, counter_rows[before].family);
        char key[COUNTER_KEY_MAX], other[COUNTER_KEY_MAX];
        for (int before = 0; before < c; before++)
            assert_string_not_equal(counter_key((enum counter)c, key),
                                    counter_key((enum counter)before, other));
    }
}

static void bytes_come_back(void **state)
{
    struct counters counters = {0}, back;
    unsigned char bytes[COUNTERS_BYTES];
    for (int c = 0; c < COUNTERS; c++) counters.at[c] = 0.5 + c;
    counters.at[COUNTER_LOSS] = (double)NAN;
    counters_pack(&counters, bytes);
    assert_true(counters_unpack(bytes, sizeof bytes, &back));
    assert_true(isnan(back.at[COUNTER_LOSS]));
    assert_true(back.at[COUNTER_EPOCH] == counters.at[COUNTER_EPOCH]);
    assert_false(counters_unpack(bytes, sizeof bytes - 1, &back));
}

static void what_is_no_number_is_refused(void **state)
{
    static const double wrong[] = {-1, (double)INFINITY, (double)NAN};
    unsigned char bytes[COUNTERS_BYTES];
    for (int c = 0; c < COUNTERS; c++)
        for (int i = 0; i < 3; i++) {
            struct counters counters = {0}, back;
            if (c == COUNTER_LOSS || c == COUNTER_GRADIENT_NORM) continue;
            counters.at[c] = wrong[i];
            counters_pack(&counters, bytes);
            assert_false(counters_unpack(bytes, sizeof bytes, &back));
        }
}

static char *text_of(const struct task_status *status, int count)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    counters_write_text(out, status, count);
    fclose(out);
    return text;
}

/* Each family once, with all its samples behind it; none that no task counts. */
static void text_has_each_family_once(void **state)
{
    struct task_status status[2] = {{.task = "ps/0", .is_ps = true},
                                    {.task = "worker/1", .index = 1}};
    status[1].counters.at[COUNTER_STALENESS_ANY] = 3;
    status[1].counters.at[COUNTER_LOSS] = (double)INFINITY;
    char *text = text_of(status, 2);
    assert_non_null(strstr(text, "# TYPE dtrain_global_step gauge\n"
                                 "dtrain_global_step{task=\"ps/0\"} 0\n"
                                 "dtrain_global_step{task=\"worker/1\"} 0\n"));
    assert_non_null(strstr(text, "dtrain_staleness_bucket{task=\"worker/1\",le=\"+Inf\"} 3\n"
                                 "dtrain_staleness_sum{task=\"worker/1\"} 0\n"));
    assert_non_null(strstr(text, "dtrain_loss{task=\"worker/1\"} +Inf\n"));
    assert_null(strstr(text, "dtrain_loss{task=\"ps/0\"}"));
    free(text);
    text = text_of(status, 1);
    assert_null(strstr(text, "dtrain_staleness"));
    free(text);
}

static void buckets_are_cumulative(void **state)
{
    struct counters counters = {0};
    counters_note_staleness(&counters, 0);
    counters_note_staleness(&counters, 3);
    counters_note_staleness(&counters, UINT64_MAX >> 20);
    assert_true(counters.at[COUNTER_STALENESS_0] == 1);
    assert_true(counters.at[COUNTER_STALENESS_2] == 1);
    assert_true(counters.at[COUNTER_STALENESS_4] == 2);
    assert_true(counters.at[COUNTER_STALENESS_ANY] == 3);
    assert_true(counters.at[COUNTER_STALENESS_COUNT] == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_of_the_convention),  cmocka_unit_test(bytes_come_back),
        cmocka_unit_test(what_is_no_number_is_refused), cmocka_unit_test(text_has_each_family_once),
        cmocka_unit_test(buckets_are_cumulative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
