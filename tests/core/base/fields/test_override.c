/* One value of a JSON tree changed by an assignment. */
#include "core/base/fields/fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *const before =
    "{\"model\": [{\"op\": \"flatten\"}, {\"op\": \"dense\", \"units\": 10}], \"seed\": 1, "
    "\"train\": null}";

/* `after` in jansson's compact form with sorted keys. */
static void assert_override(const char *assignment, const char *after)
{
    json_t *json = json_loads(before, 0, NULL);
    assert_non_null(json);
    if (fields_override(NULL, json, assignment)) fail_msg("%s", error_text());
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, after);
    free(text);
    json_decref(json);
}

static void assert_refused(const char *assignment, const char *message)
{
    json_t *json = json_loads(before, 0, NULL);
    assert_non_null(json);
    assert_int_equal(fields_override(NULL, json, assignment), ERR_INPUT);
    assert_string_equal(error_text(), message);
    json_decref(json);
}

static void values_are_replaced_added_and_nested(void **state)
{
    assert_override("seed=7", "{\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":10}],"
                              "\"seed\":7,\"train\":null}");
    assert_override("model[1].units=20", "{\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\","
                                         "\"units\":20}],\"seed\":1,\"train\":null}");
    assert_override("model[0]=\"relu\"", "{\"model\":[\"relu\",{\"op\":\"dense\",\"units\":10}],"
                                         "\"seed\":1,\"train\":null}");
    assert_override("model=[]", "{\"model\":[],\"seed\":1,\"train\":null}");
}

static void members_are_made_where_there_is_nothing(void **state)
{
    assert_override("train.last_step=200",
                    "{\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\","
                    "\"units\":10}],\"seed\":1,\"train\":{\"last_step\":200}}");
    assert_override("data.train.format=digits",
                    "{\"data\":{\"train\":{\"format\":\"digits\"}},\"model\":[{\"op\":\"flatten\"},"
                    "{\"op\":\"dense\",\"units\":10}],\"seed\":1,\"train\":null}");
}

static void values_are_json_or_else_text(void **state)
{
    static const struct {
        const char *text, *after;
    } cases[] = {
        {"model=1e3", "{\"model\":1000.0,\"seed\":1,\"train\":null}"},
        {"model=true", "{\"model\":true,\"seed\":1,\"train\":null}"},
        {"model=yes", "{\"model\":\"yes\",\"seed\":1,\"train\":null}"},
        {"model=", "{\"model\":\"\",\"seed\":1,\"train\":null}"},
        {"model=a=b", "{\"model\":\"a=b\",\"seed\":1,\"train\":null}"},
        {"model=[1,", "{\"model\":\"[1,\",\"seed\":1,\"train\":null}"},
        {"model={\"a\":1,\"a\":2}",
         "{\"model\":\"{\\\"a\\\":1,\\\"a\\\":2}\",\"seed\":1,\"train\":null}"},
        {"model={\"x\": null}", "{\"model\":{\"x\":null},\"seed\":1,\"train\":null}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_override(cases[i].text, cases[i].after);
}

static void malformed_assignments_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "=",
        "=1",
        "seed",
        ".seed=1",
        "a..b=1",
        "a.=1",
        "model[]=1",
        "[0]=1",
        "seed.[0]=1",
        "model[x]=1",
        "model[-1]=1",
        "model[0=1",
        "a]=1",
        "model[0]b=1",
        "model[0",
        "model[99999999999999999999999]=1",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *json = json_loads(before, 0, NULL);
        json_t *same = json_deep_copy(json);
        assert_int_equal(fields_override(NULL, json, bad[i]), ERR_INPUT);
        assert_non_null(strstr(error_text(), "expected path=value, such as train.last_step=200"));
        assert_true(json_equal(json, same));
        json_decref(json);
        json_decref(same);
    }
}

static void paths_that_lead_nowhere_are_refused(void **state)
{
    assert_refused("model[2].units=1", "model[2]: the list has 2 members, counted from 0");
    assert_refused(
        "model.units=1",
        "model.units: expected an object at model, got a list of 2, of which model[0] is the "
        "first");
    assert_refused("seed[0]=1", "seed[0]: expected a list at seed, got 1");
    assert_refused("seed.low=1", "seed.low: expected an object at seed, got 1");
    assert_refused("model[0].op.x=1",
                   "model[0].op.x: expected an object at model[0].op, got \"flatten\"");
}

static void very_deep_paths_are_refused(void **state)
{
    char path[FIELD_DEPTH_MAX * 2 + 8] = "a";
    for (int i = 1; i < FIELD_DEPTH_MAX; i++) strcat(path, ".a");
    json_t *json = json_object();
    strcat(path, "=1");
    assert_int_equal(fields_override(NULL, json, path), OK);
    strcpy(path + strlen(path) - 2, ".a=1");
    assert_int_equal(fields_override(NULL, json, path), ERR_INPUT);
    json_decref(json);
}

static void a_root_that_is_no_object_and_names_that_are_no_text_are_refused(void **state)
{
    json_t *list = json_array(), *object = json_object();
    assert_int_equal(fields_override(NULL, list, "a=1"), ERR_INPUT);
    assert_string_equal(error_text(), "a: expected an object, got a list of 0");
    assert_int_equal(fields_override(NULL, object, "\xff\xfe=1"), ERR_INPUT);
    assert_int_equal(fields_override(NULL, object, "\xff\xfe.b=1"), ERR_INPUT);
    assert_int_equal(json_object_size(object), 0);
    json_decref(list);
    json_decref(object);
}

/* How long: by steps or by epochs. How often: by seconds or by steps. */
static const struct field train_fields[] = {
    {.name = "steps", .type = FIELD_INT, .fallback = "0", .group = "end"},
    {.name = "epochs", .type = FIELD_FLOAT, .fallback = "0", .group = "end"},
    {.name = "save", .type = FIELD_INT, .fallback = "0", .group = "save"},
    {.name = "mode", .type = FIELD_STRING, .fallback = "null"},
    {0},
};
static const struct object train_object = {.name = "train", .fields = train_fields};
static const struct field root_fields[] = {
    {.name = "train", .type = FIELD_OBJECT, .object = &train_object}, {0}};
static const struct object root_object = {.name = "root", .fields = root_fields};

static void members_of_a_group_displace_each_other(void **state)
{
    static const struct {
        const char *assignment, *after;
    } cases[] = {
        {"train.steps=200", "{\"train\":{\"mode\":\"a\",\"save\":5,\"steps\":200}}"},
        {"train.epochs=2", "{\"train\":{\"epochs\":2,\"mode\":\"a\",\"save\":5}}"},
        {"train.steps=0", "{\"train\":{\"epochs\":3,\"mode\":\"a\",\"save\":5,\"steps\":0}}"},
        {"train.steps=null", "{\"train\":{\"epochs\":3,\"mode\":\"a\",\"save\":5,\"steps\":null}}"},
        {"train.mode=b", "{\"train\":{\"epochs\":3,\"mode\":\"b\",\"save\":5}}"},
        {"steps=1", "{\"steps\":1,\"train\":{\"epochs\":3,\"mode\":\"a\",\"save\":5}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *json =
            json_loads("{\"train\": {\"epochs\": 3, \"save\": 5, \"mode\": \"a\"}}", 0, NULL);
        assert_non_null(json);
        assert_int_equal(fields_override(&root_object, json, cases[i].assignment), OK);
        char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
        assert_string_equal(text, cases[i].after);
        free(text);
        json_decref(json);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_replaced_added_and_nested),
        cmocka_unit_test(members_are_made_where_there_is_nothing),
        cmocka_unit_test(values_are_json_or_else_text),
        cmocka_unit_test(malformed_assignments_are_refused),
        cmocka_unit_test(paths_that_lead_nowhere_are_refused),
        cmocka_unit_test(very_deep_paths_are_refused),
        cmocka_unit_test(a_root_that_is_no_object_and_names_that_are_no_text_are_refused),
        cmocka_unit_test(members_of_a_group_displace_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
