/* test_spec.c - reading specs: a good one, and what is said about each kind of bad one. */
#include "tests/core/train/fixture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/train/spec/last_spec.h"
#include "core/train/spec/spec.h"

static const char good[] =
    "{\n"
    "  \"name\": \"digits\",\n"
    "  \"seed\": 3,\n"
    "  \"data\": {\"train\": {\"format\": \"idx\", \"features\": \"x.gz\", \"labels\": \"y.gz\",\n"
    "                     \"take\": 1000},\n"
    "           \"eval\": {\"format\": \"idx\", \"features\": \"u.gz\", \"labels\": \"v.gz\"},\n"
    "           \"batch_size\": 50, \"shuffle\": true, \"scale\": 0.5},\n"
    "  \"model\": [{\"op\": \"flatten\"},\n"
    "            {\"op\": \"dense\", \"name\": \"hidden\", \"units\": 20},\n"
    "            {\"op\": \"dense\", \"name\": \"logits\", \"units\": 10}],\n"
    "  \"loss\": {\"op\": \"softmax_cross_entropy\"},\n"
    "  \"metrics\": [\"accuracy\"],\n"
    "  \"optimizer\": {\"type\": \"momentum\", \"momentum\": 0.9,\n"
    "                \"learning_rate\": {\"type\": \"exponential_decay\", \"learning_rate\": 0.5,\n"
    "                                  \"decay_steps\": 100, \"decay_rate\": 0.9},\n"
    "                \"clip\": {\"type\": \"global_norm\", \"norm\": 5}},\n"
    "  \"placement\": {\"strategy\": \"greedy\", \"pins\": [{\"match\": \"hidden/*\", \"ps\": "
    "1}]},\n"
    "  \"train\": {\"mode\": \"sync\", \"last_step\": 1000}\n"
    "}\n";

/* A file of this test's own, in a folder of its own. */
struct place {
    char directory[64], path[128];
};

static struct place write_spec(const char *bytes, size_t length)
{
    struct place place = {.directory = "/tmp/dtrain-spec-XXXXXX"};
    assert_non_null(mkdtemp(place.directory));
    snprintf(place.path, sizeof place.path, "%s/spec.json", place.directory);
    FILE *file = fopen(place.path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    return place;
}

static void remove_spec(const struct place *place)
{
    unlink(place->path);
    rmdir(place->directory);
}

static err load_text(const char *text, const char *const *sets, int count, struct spec *ret)
{
    const struct place place = write_spec(text, strlen(text));
    const struct spec_options options = {
        .path = place.path, .overrides = {.at = (const char **)sets, .count = count}, .seed = -1};
    const err e = spec_load(&options, ret);
    remove_spec(&place);
    return e;
}

/* The good spec with these changes. */
static struct spec load_good(const char *const *sets, int count)
{
    struct spec spec;
    if (load_text(good, sets, count, &spec) != OK) fail_msg("%s", error_text());
    return spec;
}

static void a_good_spec_is_read_as_it_stands(void **state)
{
    struct spec spec = load_good(NULL, 0);
    assert_string_equal(spec.name, "digits");
    assert_int_equal(spec.seed, 3);
    assert_int_equal(spec.data.batch_size, 50);
    assert_int_equal(spec.data.train.take, 1000);
    assert_string_equal(spec.data.eval.format.kind->object->name, "idx");
    assert_int_equal(spec.model.nodes.count, 3);
    const struct node_spec *nodes = spec.model.nodes.at;
    assert_string_equal(nodes[1].name, "hidden");
    assert_string_equal(nodes[2].op.kind->object->name, "dense");
    assert_string_equal(spec.model.loss.loss.kind->object->name, "softmax_cross_entropy");
    assert_int_equal(spec.model.metrics.count, 1);
    const struct variant *metrics = spec.model.metrics.at;
    assert_string_equal(metrics[0].kind->object->name, "accuracy");
    assert_string_equal(spec.optimizer.optimizer.kind->object->name, "momentum");
    assert_int_equal(optimizer_clip(&spec.optimizer).type, CLIP_GLOBAL_NORM);
    assert_true(schedule_rate(optimizer_learning_rate(&spec.optimizer), 0) == 0.5);
    assert_int_equal(spec.placement.strategy, PLACE_GREEDY);
    assert_int_equal(spec.placement.pins.count, 1);
    assert_int_equal(spec.train.mode, MODE_SYNC);
    assert_int_equal(spec.train.last_step, 1000);
    assert_int_equal(strlen(spec.fingerprint), 16);
    assert_true(json_is_object(spec.json));
    spec_free(&spec);
}

/* Numbers, texts, parts of texts and whole nodes; the command line changes what is defined. */
static void what_is_defined_stands_where_it_is_used(void **state)
{
    static const char text[] =
        "{\"define\": {\"wide\": 8, \"net\": {\"op\": \"dense\", \"units\": \"$wide\"}},"
        " \"name\": \"$$wide\", \"data\": {\"train\": \"digits\"},"
        " \"model\": [\"$net\", {\"op\": \"concat\", \"inputs\": [\"a\", \"x{9..11}y\"]}],"
        " \"loss\": \"softmax_cross_entropy\", \"optimizer\": \"adam\", \"train\": {\"epochs\": "
        "2}}";
    static const char plain[] =
        "{\"name\": \"$wide\", \"data\": {\"train\": \"digits\"},"
        " \"model\": [{\"op\": \"dense\", \"units\": 5},"
        " {\"op\": \"concat\", \"inputs\": [\"a\", \"x9y\", \"x10y\", \"x11y\"]}],"
        " \"loss\": \"softmax_cross_entropy\", \"optimizer\": \"adam\", \"train\": {\"epochs\": "
        "2}}";
    static const char *const sets[] = {"define.wide=5"};
    struct spec spec, as_plain;
    if (load_text(text, sets, 1, &spec) != OK) fail_msg("%s", error_text());
    if (load_text(plain, NULL, 0, &as_plain) != OK) fail_msg("%s", error_text());
    assert_true(json_equal(spec.json, as_plain.json));
    assert_string_equal(spec.fingerprint, as_plain.fingerprint);
    spec_free(&spec);
    spec_free(&as_plain);
}

/* A spec with these members, which say "model" among others. */
static char *with_model(const char *members)
{
    static char text[8192];
    snprintf(text, sizeof text,
             "{%s, \"loss\": \"softmax_cross_entropy\", \"optimizer\": \"adam\","
             " \"train\": {\"epochs\": 2}}",
             members);
    return text;
}

#define DIGITS "\"data\": {\"train\": \"digits\"}, "
#define COLUMNS                                                                                    \
    "\"data\": {\"train\": {\"format\": \"csv\", \"file\": \"x\", \"label\": \"y\"}, "             \
    "\"columns\": ["                                                                               \
    "{\"column\": \"numeric\", \"name\": \"C{1..3}\"}, {\"column\": \"numeric\", \"name\": "       \
    "\"d\"}]}, "
#define IDS                                                                                        \
    "\"data\": {\"train\": {\"format\": \"csv\", \"file\": \"x\", \"label\": \"y\"}, "             \
    "\"columns\": [{\"column\": \"ids\", \"name\": \"C{1..2}\", \"rows\": 9}]}, "
#define DENSE(name, more) "{\"op\": \"dense\", \"name\": \"" name "\", \"units\": 4" more "}"
#define EXPERT(number)                                                                             \
    DENSE("m/expert_" number "/layer_0", ", \"inputs\": [\"a\"], \"activation\": \"linear\"")
#define PROJECTION(name, input)                                                                    \
    "{\"op\": \"dense\", \"name\": \"t/" name "\", \"inputs\": [\"" input "\"], \"units\": 4, "    \
    "\"use_bias\": false, \"kernel_initializer\": \"glorot_uniform\"}"
#define RESIDUAL                                                                                   \
    "\"blocks\": {\"residual\": {\"parameters\": [\"units\"], \"nodes\": ["                        \
    "{\"op\": \"dense\", \"units\": \"$units\", \"activation\": \"$how\"},"                        \
    "{\"op\": \"dense\", \"name\": \"b\", \"units\": \"$units\"},"                                 \
    "{\"op\": \"add\", \"inputs\": [\"input\", \"b\"]}]}}, "

/* In short, and the same model in full */
static const struct {
    const char *shorter, *full;
} in_short[] = {
    /* columns in their order; where none matches, nodes, whatever they stand for */
    {COLUMNS "\"model\": [{\"op\": \"concat\", \"inputs\": [\"d\", \"C*\"]}]",
     COLUMNS "\"model\": [{\"op\": \"concat\", \"name\": \"concat\", \"inputs\": [\"d\", \"C1\", "
             "\"C2\", \"C3\"]}]"},
    {COLUMNS "\"model\": [" DENSE(
         "e1", ", \"inputs\": [\"C1\"]") ", {\"op\": \"mlp\", \"name\": "
                                         "\"e2\", \"inputs\": [\"d\"], \"units\": 4}, {\"op\": "
                                         "\"concat\", \"inputs\": "
                                         "[\"e?\"]}]",
     COLUMNS "\"model\": [" DENSE("e1", ", \"inputs\": [\"C1\"]") ", " DENSE(
         "e2/layer_0",
         ", \"activation\": \"relu\", \"inputs\": [\"d\"]") ", {\"op\": \"concat\", \"name\": "
                                                            "\"concat\", \"inputs\": [\"e1\", "
                                                            "\"e2/layer_0\"]}]"},
    {DIGITS "\"model\": [{\"op\": \"mlp\", \"name\": \"net\", \"units\": [4], "
            "\"batch_normalization\": true}, \"relu\"]",
     DIGITS "\"model\": [" DENSE(
         "net/layer_0",
         ", \"activation\": \"relu\"") ", {\"op\": "
                                       "\"batch_normalization\", \"name\": "
                                       "\"net/batch_normalization_0\", \"momentum\": "
                                       "0.999}, {\"op\": \"relu\", \"name\": \"relu\"}]"},
    /* layers read one another, and who names the mlp its last node; names as tf.layers counts
     */
    {DIGITS "\"model\": [\"flatten\", {\"op\": \"mlp\", \"name\": \"net\", \"units\": [4, 4], "
            "\"dropout\": 0.5, \"use_bias\": false}, \"relu\", {\"op\": \"add\", \"inputs\": "
            "[\"net\", \"relu\"]}, \"relu\"]",
     DIGITS "\"model\": [{\"op\": \"flatten\", \"name\": \"flatten\"}, " DENSE(
         "net/layer_0",
         ", \"activation\": \"relu\", \"use_bias\": false") ", {\"op\": \"dropout\", \"name\": "
                                                            "\"net/dropout_0\", \"rate\": "
                                                            "0.5}, " DENSE("net/layer_1",
                                                                           ", \"activation\": "
                                                                           "\"relu\", "
                                                                           "\"use_bias\": "
                                                                           "false") ", "
                                                                                    "{\"op\": "
                                                                                    "\"dropout"
                                                                                    "\", "
                                                                                    "\"name\": "
                                                                                    "\"net/"
                                                                                    "dropout_"
                                                                                    "1\", "
                                                                                    "\"rate\": "
                                                                                    "0.5}, "
                                                                                    "{\"op\": "
                                                                                    "\"relu\", "
                                                                                    "\"name\": "
                                                                                    "\"relu\"},"
                                                                                    " {\"op\": "
                                                                                    "\"add\", "
                                                                                    "\"name\": "
                                                                                    "\"add\", "
                                                                                    "\"inputs\""
                                                                                    ": "
                                                                                    "[\"net/"
                                                                                    "dropout_"
                                                                                    "1\", "
                                                                                    "\"relu\"]}"
                                                                                    ", "
                                                                                    "{\"op\": "
                                                                                    "\"relu\", "
                                                                                    "\"name\": "
                                                                                    "\"relu_"
                                                                                    "1\"}]"},
    /* several inputs are put side by side */
    {COLUMNS "\"model\": [{\"op\": \"mlp\", \"inputs\": [\"C{1..2}\"], \"activation\": \"tanh\", "
             "\"units\": 4}]",
     COLUMNS "\"model\": [{\"op\": \"concat\", \"name\": \"mlp/concat\", \"inputs\": [\"C1\", "
             "\"C2\"]}, " DENSE("mlp/layer_0", ", \"activation\": \"tanh\"") "]"},
    /* one that uses the weights of another: what has none of its own needs no like there */
    {COLUMNS "\"model\": [{\"op\": \"embedding\", \"name\": \"e\", \"inputs\": [\"C1\"], "
             "\"dimension\": 2}, {\"op\": \"mlp\", \"name\": \"a\", \"units\": 4}, {\"op\": "
             "\"mlp\", \"name\": \"b\", \"inputs\": [\"C1\", \"C2\"], \"units\": 4, "
             "\"dropout\": 0.5, \"weights_of\": \"a\"}]",
     COLUMNS
     "\"model\": [{\"op\": \"embedding\", \"name\": \"e\", \"inputs\": [\"C1\"], "
     "\"dimension\": 2}, " DENSE(
         "a/layer_0",
         ", \"activation\": \"relu\"") ", "
                                       "{\"op\": \"concat\", \"name\": \"b/concat\", \"inputs\": "
                                       "[\"C1\", \"C2\"]}, " DENSE(
                                           "b/layer_0",
                                           ", \"activation\": \"relu\", \"weights_of\": "
                                           "\"a/layer_0\"") ", "
                                                            "{\"op\": \"dropout\", \"name\": "
                                                            "\"b/dropout_0\", \"rate\": 0.5}]"},
    /* a block reads what is before it, in every turn that of the one before */
    {"\"define\": {\"how\": \"elu\"}, " RESIDUAL DIGITS
     "\"model\": [\"flatten\", {\"repeat\": 2, \"block\": [{\"op\": \"residual\", \"name\": "
     "\"r\", "
     "\"units\": 4}]}]",
     DIGITS "\"model\": [{\"op\": \"flatten\", \"name\": \"flatten\"}, " DENSE(
         "repeat/block_0/r/dense",
         ", \"activation\": \"elu\"") ", " DENSE("repeat/block_0/r/b",
                                                 "") ", {\"op\": \"add\", \"name\": "
                                                     "\"repeat/block_0/r/add\", \"inputs\": "
                                                     "[\"flatten\", "
                                                     "\"repeat/block_0/r/b\"]}, " DENSE(
                                                         "repeat/block_1/r/dense",
                                                         ", \"activation\": \"elu\"") ","
                                                                                      " " DENSE(
                                                                                          "repeat/"
                                                                                          "block_1/"
                                                                                          "r/b",
                                                                                          "") ", "
                                                                                              "{\"o"
                                                                                              "p\":"
                                                                                              " \"a"
                                                                                              "dd\""
                                                                                              ", "
                                                                                              "\"na"
                                                                                              "me\""
                                                                                              ": "
                                                                                              "\"re"
                                                                                              "peat"
                                                                                              "/blo"
                                                                                              "ck_"
                                                                                              "1/r/"
                                                                                              "add"
                                                                                              "\", "
                                                                                              "\"in"
                                                                                              "puts"
                                                                                              "\": "
                                                                                              "[\"r"
                                                                                              "epea"
                                                                                              "t/"
                                                                                              "bloc"
                                                                                              "k_0/"
                                                                                              "r/"
                                                                                              "add"
                                                                                              "\", "
                                                                                              "\"re"
                                                                                              "peat"
                                                                                              "/blo"
                                                                                              "ck_"
                                                                                              "1/r/"
                                                                                              "b\"]"
                                                                                              "}]"},
    /* a block that the program brings along; each of several inputs by itself */
    {
        COLUMNS "\"model\": [" DENSE("a", ", \"inputs\": [\"d\"]") ", " DENSE(
            "m", ", \"inputs\": [\"d\"]") ", {\"op\": \"multi_head_attention\", \"name\": \"t\", "
                                          "\"inputs\": [\"a\", \"m\"], \"units\": 4, \"heads\": 2, "
                                          "\"use_bias\": false, \"mask\": \"a\"}]",
        COLUMNS
        "\"model\": [" DENSE("a", ", \"inputs\": [\"d\"]") ", " DENSE("m", ", \"inputs\": [\"d\"]") ", " PROJECTION(
            "query",
            "a") ", " PROJECTION("key",
                                 "m") ", " PROJECTION("value",
                                                      "m") ", {\"op\": \"attention\", \"name\": "
                                                           "\"t/heads\", \"inputs\": [\"t/query\", "
                                                           "\"t/key\", \"t/value\"], \"heads\": 2, "
                                                           "\"causal\": false, \"mask\": "
                                                           "\"a\"}, " PROJECTION("output",
                                                                                 "t/heads") "]"},
    /* as many nodes as it says */
    {DIGITS "\"model\": [" DENSE(
         "a", "") ", {\"op\": \"experts\", \"name\": \"m\", "
                  "\"experts\": 2, \"units\": [4], \"activation\": \"linear\"}, {\"op\": \"gate\", "
                  "\"name\": \"g\", \"inputs\": [\"a\", \"m\"], \"experts\": 2}]",
     DIGITS "\"model\": [" DENSE("a", "") ", " EXPERT("0") ", " EXPERT(
         "1") ", {\"op\": \"stack\", "
              "\"name\": \"m/output\", \"inputs\": [\"m/expert_0/layer_0\", "
              "\"m/expert_1/layer_0\"], "
              "\"axis\": 1}, {\"op\": \"dense\", \"name\": \"g/score\", \"inputs\": [\"a\"], "
              "\"units\": 2}, {\"op\": \"softmax\", \"name\": \"g/weights\"}, {\"op\": \"stack\", "
              "\"name\": \"g/row\", \"inputs\": [\"g/weights\"], \"axis\": 1}, {\"op\": "
              "\"matmul\", "
              "\"name\": \"g/taken\", \"inputs\": [\"g/row\", \"m/output\"]}, {\"op\": \"reduce\", "
              "\"name\": \"g/output\", \"reduction\": \"sum\", \"axes\": [1]}]"},
    /* tables of several columns: each its own, or one for all */
    {IDS "\"model\": [{\"op\": \"embedding\", \"name\": \"e\", \"inputs\": [\"C{1..2}\"], "
         "\"dimension\": 3}, \"flatten\"]",
     IDS "\"model\": [{\"op\": \"embedding\", \"name\": \"e/C1\", \"inputs\": [\"C1\"], "
         "\"dimension\": 3}, {\"op\": \"embedding\", \"name\": \"e/C2\", \"inputs\": [\"C2\"], "
         "\"dimension\": 3}, {\"op\": \"stack\", \"name\": \"e\", \"inputs\": [\"e/C1\", "
         "\"e/C2\"], \"axis\": 1}, {\"op\": \"flatten\", \"name\": \"flatten\"}]"},
    {IDS "\"model\": [{\"op\": \"embedding\", \"name\": \"e\", \"inputs\": [\"C*\"], "
         "\"dimension\": 3, \"share\": true, \"capacity\": \"dynamic\"}, \"flatten\"]",
     IDS "\"model\": [{\"op\": \"embedding\", \"name\": \"e/C1\", \"inputs\": [\"C1\"], "
         "\"dimension\": 3, \"capacity\": \"dynamic\"}, {\"op\": \"embedding\", \"name\": "
         "\"e/C2\", \"inputs\": [\"C2\"], \"dimension\": 3, \"table\": \"e/C1\"}, {\"op\": "
         "\"stack\", \"name\": \"e\", \"inputs\": [\"e/C1\", \"e/C2\"], \"axis\": 1}, "
         "{\"op\": \"flatten\", \"name\": \"flatten\"}]"},
    /* one after the other, of several inputs and of one, in whatever way they are named */
    {IDS "\"model\": [{\"op\": \"embedding\", \"name\": \"e\", \"inputs\": [\"C{1..2}\"], "
         "\"dimension\": 3}, {\"op\": \"embedding\", \"name\": \"f\", \"inputs\": [\"C2\", "
         "\"C1\"], \"dimension\": 3, \"weights_of\": \"e\"}, \"flatten\"]",
     IDS "\"model\": [{\"op\": \"embedding\", \"name\": \"e/C1\", \"inputs\": [\"C1\"], "
         "\"dimension\": 3}, {\"op\": \"embedding\", \"name\": \"e/C2\", \"inputs\": [\"C2\"], "
         "\"dimension\": 3}, {\"op\": \"stack\", \"name\": \"e\", \"inputs\": [\"e/C1\", "
         "\"e/C2\"], \"axis\": 1}, {\"op\": \"embedding\", \"name\": \"f/C2\", \"inputs\": "
         "[\"C2\"], \"dimension\": 3, \"weights_of\": \"e/C1\"}, {\"op\": \"embedding\", "
         "\"name\": \"f/C1\", \"inputs\": [\"C1\"], \"dimension\": 3, \"weights_of\": \"e/C2\"}, "
         "{\"op\": \"stack\", \"name\": \"f\", \"inputs\": [\"f/C2\", \"f/C1\"], \"axis\": 1}, "
         "{\"op\": \"flatten\", \"name\": \"flatten\"}]"},
    {IDS "\"model\": [{\"op\": \"embedding\", \"name\": \"e\", \"inputs\": [\"C{1..2}\"], "
         "\"dimension\": 3, \"share\": true}, {\"op\": \"embedding\", \"name\": \"f\", "
         "\"inputs\": [\"C2\"], \"dimension\": 3, \"weights_of\": \"e\"}, {\"op\": "
         "\"embedding\", \"name\": \"g\", \"inputs\": [\"C1\"], \"dimension\": 3, \"table\": "
         "\"e\"}]",
     IDS "\"model\": [{\"op\": \"embedding\", \"name\": \"e/C1\", \"inputs\": [\"C1\"], "
         "\"dimension\": 3}, {\"op\": \"embedding\", \"name\": \"e/C2\", \"inputs\": [\"C2\"], "
         "\"dimension\": 3, \"table\": \"e/C1\"}, {\"op\": \"stack\", \"name\": \"e\", \"inputs\": "
         "[\"e/C1\", \"e/C2\"], \"axis\": 1}, {\"op\": \"embedding\", \"name\": \"f\", \"inputs\": "
         "[\"C2\"], \"dimension\": 3, \"weights_of\": \"e/C1\"}, {\"op\": \"embedding\", "
         "\"name\": \"g\", \"inputs\": [\"C1\"], \"dimension\": 3, \"table\": \"e/C1\"}]"},
    /* within a block that uses the weights of another, which reads other columns */
    {"\"blocks\": {\"tower\": {\"parameters\": [\"of\"], \"nodes\": [{\"op\": \"embedding\", "
     "\"name\": \"e\", \"inputs\": \"$of\", \"dimension\": 3}, \"flatten\"]}}, " IDS
     "\"model\": [{\"op\": \"tower\", \"name\": \"a\", \"of\": [\"C1\", \"C2\"]}, {\"op\": "
     "\"tower\", \"name\": \"b\", \"of\": [\"C2\", \"C1\"], \"weights_of\": \"a\"}]",
     IDS "\"model\": [{\"op\": \"embedding\", \"name\": \"a/e/C1\", \"inputs\": [\"C1\"], "
         "\"dimension\": 3}, {\"op\": \"embedding\", \"name\": \"a/e/C2\", \"inputs\": [\"C2\"], "
         "\"dimension\": 3}, {\"op\": \"stack\", \"name\": \"a/e\", \"inputs\": [\"a/e/C1\", "
         "\"a/e/C2\"], \"axis\": 1}, {\"op\": \"flatten\", \"name\": \"a/flatten\"}, {\"op\": "
         "\"embedding\", \"name\": \"b/e/C2\", \"inputs\": [\"C2\"], \"dimension\": 3, "
         "\"weights_of\": \"a/e/C1\"}, {\"op\": \"embedding\", \"name\": \"b/e/C1\", \"inputs\": "
         "[\"C1\"], \"dimension\": 3, \"weights_of\": \"a/e/C2\"}, {\"op\": \"stack\", \"name\": "
         "\"b/e\", \"inputs\": [\"b/e/C2\", \"b/e/C1\"], \"axis\": 1}, {\"op\": \"flatten\", "
         "\"name\": \"b/flatten\", \"weights_of\": \"a/flatten\"}]"},
    /* with inputs: its first node reads them, and inside others' names are seen */
    {"\"blocks\": {\"tail\": {\"nodes\": [\"relu\", {\"op\": \"add\", \"inputs\": [\"relu\", "
     "\"a\", "
     "\"input\"]}]}}, " DIGITS "\"model\": [" DENSE("a", "") ", " DENSE(
         "b", "") ", {\"op\": "
                  "\"tail\", \"name\": \"t\", \"inputs\": [\"b\"]}]",
     DIGITS "\"model\": [" DENSE("a", "") ", " DENSE(
         "b", "") ", {\"op\": \"relu\", \"name\": "
                  "\"t/relu\", \"inputs\": [\"b\"]}, {\"op\": \"add\", \"name\": \"t/add\", "
                  "\"inputs\": [\"t/relu\", \"a\", \"b\"]}]"},
};

static void nodes_in_short_are_those_in_full(void **state)
{
    for (size_t i = 0; i < sizeof in_short / sizeof *in_short; i++) {
        struct spec spec, full;
        if (load_text(with_model(in_short[i].shorter), NULL, 0, &spec))
            fail_msg("%s", error_text());
        if (load_text(with_model(in_short[i].full), NULL, 0, &full)) fail_msg("%s", error_text());
        if (!json_equal(spec.json, full.json)) fail_msg("%zu: %s", i, spec_text(&spec));
        assert_string_equal(spec.fingerprint, full.fingerprint);
        spec_free(&spec);
        spec_free(&full);
    }
}

/* Messages of the graph name the place that the user wrote. */
static void a_node_keeps_the_place_where_it_was_written(void **state)
{
    static const char members[] = "\"define\": {\"how\": \"elu\"}, " RESIDUAL DIGITS
                                  "\"model\": [{\"op\": \"mlp\", \"units\": [4, 4]}, {\"op\": "
                                  "\"residual\", \"units\": 4}, {\"repeat\": 2, \"block\": "
                                  "[\"relu\"]}]";
    static const char *const places[] = {"model[0]",
                                         "model[0]",
                                         "model[1] (residual \"residual\"): "
                                         "blocks.residual.nodes[0]",
                                         "model[1] (residual \"residual\"): "
                                         "blocks.residual.nodes[1]",
                                         "model[1] (residual \"residual\"): "
                                         "blocks.residual.nodes[2]",
                                         "model[2].block[0]",
                                         "model[2].block[0]"};
    struct spec spec;
    if (load_text(with_model(members), NULL, 0, &spec)) fail_msg("%s", error_text());
    const struct node_spec *nodes = spec.model.nodes.at;
    assert_int_equal(spec.model.nodes.count, 7);
    for (int i = 0; i < 7; i++) assert_string_equal(nodes[i].place, places[i]);
    spec_free(&spec);
}

static void what_is_left_out_has_its_default(void **state)
{
    static const char text[] =
        "{\"data\": {\"train\": \"digits\"}, \"model\": [{\"op\": \"dense\", \"units\": 10}],"
        " \"loss\": \"softmax_cross_entropy\", \"optimizer\": \"adam\","
        " \"train\": {\"epochs\": 2}}";
    struct spec spec;
    if (load_text(text, NULL, 0, &spec) != OK) fail_msg("%s", error_text());
    assert_string_equal(spec.name, "model");
    assert_int_equal(spec.seed, 1);
    assert_int_equal(spec.model.metrics.count, 0);
    assert_null(spec.data.eval.format.kind);
    assert_int_equal(optimizer_clip(&spec.optimizer).type, CLIP_NONE);
    assert_int_equal(spec.placement.strategy, PLACE_ROUND_ROBIN);
    assert_null(spec.placement.partitioner.kind);
    assert_int_equal(spec.train.mode, MODE_ASYNC);
    assert_int_equal(spec.train.last_step, 0);
    assert_int_equal(spec.train.replicas_to_aggregate, 0);
    assert_int_equal(spec.train.max_staleness, -1);
    assert_int_equal(spec.train.log_every_steps, 100);
    spec_free(&spec);
}

/* Bad ones: the good spec with one change, or a text of its own. */

struct broken {
    const char *text;    /* NULL: the good spec */
    const char *set;     /* NULL: as it stands */
    const char *message; /* ends with "..." where a list of kinds follows that may grow */
};

static const struct broken broken[] = {
    {"", NULL, "empty: expected a JSON object"},
    {"[]", NULL, "expected a JSON object, got a list"},
    {"3", NULL, "line 1, column 1: '[' or '{' expected near '3'; a spec is a JSON object"},
    {"user,item", NULL,
     "line 1, column 4: '[' or '{' expected near 'user'; a spec is a JSON object"},
    {"\xff\xfe{", NULL, "text in UTF-16: save it as UTF-8; a spec is a JSON object"},
    {"\x1f\x8b\x08", NULL, "packed by gzip: unpack it; a spec is a JSON object"},
    {"BZh91", NULL, "packed by bzip2: unpack it; a spec is a JSON object"},
    {"\xfd"
     "7zXZ",
     NULL, "packed by xz: unpack it; a spec is a JSON object"},
    {"\x28\xb5\x2f\xfd$", NULL, "packed by zstd: unpack it; a spec is a JSON object"},
    {"PK\3\4", NULL, "packed by zip: unpack it; a spec is a JSON object"},
    {"{\"name\": \"a\"", NULL, "line 1, column 12: '}' expected near end of file"},
    {"{\n  \"name\": \"a\",\n  \"seed\": 1,\n}\n", NULL,
     "line 4, column 1: string or '}' expected near '}'; the comma in front of it is one too many"},
    {"{\"name\": \"a\"\n  \"seed\": 1}", NULL,
     "line 2, column 8: '}' expected near '\"seed\"'; is a comma missing in front of it?"},
    {"{\"model\": [1 2]}", NULL,
     "line 1, column 14: ']' expected near '2'; is a comma missing in front of it?"},
    {"{\"model\": [1,]}", NULL,
     "line 1, column 14: unexpected token near ']'; the comma in front of it is one too many"},
    {"// a net\n{}", NULL,
     "line 1, column 1: '[' or '{' expected near '/'; a spec is a JSON object; JSON has no "
     "comments"},
    {"{\"seed\": 1 # one\n}", NULL,
     "line 1, column 12: '}' expected near '#'; JSON has no comments"},
    {"{'seed': 1}", NULL,
     "line 1, column 2: string or '}' expected near '''; names and texts stand in straight double "
     "quotes"},
    {"{\"name\": \xe2\x80\x9cnet\xe2\x80\x9d}", NULL,
     "line 1, column 10: invalid token near '\xe2\x80\x9c'; names and texts stand in straight "
     "double quotes"},
    {"{seed: 1}", NULL,
     "line 1, column 5: string or '}' expected near 'seed'; names and texts stand in straight "
     "double quotes"},
    {"{\"data\": None}", NULL, "line 1, column 13: invalid token near 'None'; JSON writes null"},
    {"{\"seed\": .5}", NULL,
     "line 1, column 10: invalid token near '.'; numbers are written as -12, 0.5 or 1e-3"},
    {"{\"seed\": 07}", NULL,
     "line 1, column 10: invalid token near '0'; numbers are written as -12, 0.5 or 1e-3"},
    {"{\"seed\": 1, \"seed\": 2}", NULL, "line 1, column 18: duplicate object key near '\"seed\"'"},
    {"{\"seed\": 1} x", NULL, "line 1, column 13: end of file expected near 'x'"},
    {"{\"name\": \"\\ud800\"}", NULL,
     "line 1, column 17: invalid Unicode '\\uD800' near '\"\\ud800\"'"},
    {"{}", NULL, "required key \"data\" is missing: expected an object"},
    {"{\"data\": {\"train\": \"digits\"}}", NULL,
     "required key \"model\" is missing: expected a list of 1 to 16384 ops"},
    {NULL, "naem=x", "unknown key \"naem\" (did you mean \"name\"?); spec knows ..."},
    {NULL, "seed=-1", "seed: expected an integer from 0 to 999999999999999, got -1"},
    {NULL, "seed=1.5", "seed: expected an integer from 0 to 999999999999999, got 1.5"},
    {NULL, "data=[]", "data: expected an object, got a list of 0"},
    {NULL, "data.train.format=idz",
     "data.train: unknown data format \"idz\" (did you mean \"idx\"?); known are ..."},
    {NULL, "data.train.feature=x",
     "data.train: unknown key \"feature\" (did you mean \"features\"?); idx knows ..."},
    {NULL, "data.train=null", "data.train: expected an object with \"format\", or one of ..."},
    {NULL, "data.batch_size=0", "data.batch_size: expected an integer from 1 to 16777216, got 0"},
    {NULL, "data.batch_size=1e3000",
     "data.batch_size: expected an integer from 1 to 16777216, got \"1e3000\""},
    {NULL, "model=[]", "model: expected a list of 1 to 16384 ops, got a list of 0"},
    {NULL, "model[1].op=densse",
     "model[1]: unknown op \"densse\" (did you mean \"dense\"?); known are ..."},
    {NULL, "model[1].unit=3",
     "model[1]: unknown key \"unit\" (did you mean \"units\"?); dense knows ..."},
    {NULL, "model[1].units=ten",
     "model[1].units: expected an integer from 1 to 16777216, got \"ten\""},
    {NULL, "model[1].units=0", "model[1].units: expected an integer from 1 to 16777216, got 0"},
    {NULL, "model[2].name=3", "model[2].name: expected a string, got 3"},
    {NULL, "model[7].units=3", "model[7]: the list has 3 members, counted from 0"},
    {NULL, "loss=null", "expected one of loss and heads, got none"},
    {NULL, "heads=[{\"name\": \"a\", \"loss\": \"hinge\"}]",
     "metrics: where there are heads each has its own"},
    {NULL, "loss=softmax",
     "loss: unknown loss \"softmax\" (did you mean \"softmax_cross_entropy\"?); known are ..."},
    {NULL, "metrics=accuracy", "metrics: expected a list of 0 to 32 metrics, got \"accuracy\""},
    {NULL, "metrics[0]=acuracy",
     "metrics[0]: unknown metric \"acuracy\" (did you mean \"accuracy\"?); known are ..."},
    {NULL, "optimizer=momentum",
     "optimizer: required key \"learning_rate\" is missing: expected an object with \"type\", a "
     "number, or one of ..."},
    {NULL, "optimizer.type=sgd",
     "optimizer: unknown optimizer \"sgd\": say gradient_descent; known are ..."},
    {NULL, "optimizer.momentum=1.5", "optimizer.momentum: expected a number from 0 to 1, got 1.5"},
    {NULL, "optimizer.learning_rate=-0.1",
     "optimizer.learning_rate: expected a number from 0 to 1000000, got -0.10000000000000001"},
    {NULL, "optimizer.learning_rate=fast",
     "optimizer.learning_rate: unknown schedule \"fast\"; known are ..."},
    {NULL, "optimizer.learning_rate.decay_steps=0",
     "optimizer.learning_rate.decay_steps: expected an integer from 1 to 2000000000, got 0"},
    {NULL, "optimizer.learning_rate.warmup=5",
     "optimizer.learning_rate: unknown key \"warmup\" (did you mean \"warmup_steps\"?); "
     "exponential_decay knows type, "
     "learning_rate, decay_steps, decay_epochs, decay_rate, staircase, warmup_steps, "
     "warmup_epochs"},
    {NULL, "optimizer.learning_rate={\"type\": \"cosine_decay\", \"learning_rate\": 0.1}",
     "optimizer.learning_rate: expected one of decay_steps and decay_epochs, got none"},
    {NULL,
     "optimizer.learning_rate={\"type\": \"cyclical\", \"learning_rate\": 0.1, "
     "\"maximal_learning_rate\": 1, \"step_size\": 3, \"epoch_size\": 3}",
     "optimizer.learning_rate: expected one of step_size and epoch_size, got both"},
    {NULL, "optimizer.learning_rate={\"type\": \"piecewise_constant\", \"values\": [1, 2, 3]}",
     "optimizer.learning_rate: expected one of boundaries and boundary_epochs, got none"},
    {NULL,
     "optimizer.learning_rate={\"type\": \"piecewise_constant\", \"values\": [1, 2, 3], "
     "\"boundary_epochs\": [2, 1]}",
     "optimizer.learning_rate.boundary_epochs[1]: expected more than the 2 before it, got 1"},
    {NULL,
     "optimizer.learning_rate={\"type\": \"constant\", \"learning_rate\": 0.1, \"warmup_steps\": "
     "3, \"warmup_epochs\": 0.5}",
     "optimizer.learning_rate: expected one of warmup_steps and warmup_epochs, got both"},
    {NULL,
     "optimizer.learning_rate={\"type\": \"piecewise_constant\", \"boundaries\": [10, 20], "
     "\"values\": [1, 2]}",
     "optimizer.learning_rate.values: expected 3 numbers, one more than boundaries, got 2"},
    {NULL,
     "optimizer.learning_rate={\"type\": \"piecewise_constant\", \"boundaries\": [10, 10], "
     "\"values\": [1, 2, 3]}",
     "optimizer.learning_rate.boundaries[1]: expected more than the 10 before it, got 10"},
    {NULL, "train.accumulate=0", "train.accumulate: expected an integer from 1 to 65536, got 0"},
    {NULL, "train={\"last_step\": 1, \"towers\": 2, \"accumulate\": 2}",
     "train.accumulate: not beside train.towers, which share each batch"},
    {NULL, "train.weight_decay={\"rates\": 1}",
     "train.weight_decay: unknown key \"rates\" (did you mean \"rate\"?); weight_decay knows rate, "
     "match, except"},
    {NULL, "train.freeze=kernel",
     "train.freeze: expected a list of 0 to 1024 strings, got \"kernel\""},
    {NULL, "optimizer.clip=5",
     "optimizer.clip: expected an object with \"type\", or one of value, norm, global_norm, got 5"},
    {NULL, "optimizer.clip.norm=0",
     "optimizer.clip.norm: expected a number from 1e-30 to 1e+30, got 0"},
    {NULL, "optimizer.clip={\"type\": \"value\", \"min\": 1, \"max\": -1}",
     "optimizer.clip.max: expected at least min (1), got -1"},
    {NULL, "optimizer={\"type\": \"adam\", \"beta1\": 1}",
     "optimizer.beta1: expected a number from 0 to 0.999999, got 1"},
    {NULL,
     "optimizer={\"type\": \"adagrad\", \"learning_rate\": 0.1, \"initial_accumulator_value\": 0}",
     "optimizer.initial_accumulator_value: expected a number from 1e-30 to 1e+30, got 0"},
    {NULL, "optimizer=null", "expected one of optimizer and optimizers, got none"},
    {NULL, "optimizers=[{\"type\": \"ftrl\", \"l1\": 1}]",
     "optimizers[0]: required key \"learning_rate\" is missing: expected an object with \"type\", "
     "a "
     "number, or one of ..."},
    {NULL, "optimizers=[\"adam\", {\"type\": \"adan\"}]",
     "optimizers[1]: unknown optimizer \"adan\" (did you mean \"adam\"?); known are ..."},
    {NULL,
     "optimizers=[{\"type\": \"adam\", \"clip\": {\"type\": \"value\", \"min\": 1, \"max\": "
     "-1}}]",
     "optimizers[0].clip.max: expected at least min (1), got -1"},
    {NULL, "placement.strategy=greedi",
     "placement.strategy: expected one of round_robin, greedy, got \"greedi\" (did you mean "
     "\"greedy\"?)"},
    {NULL, "placement.pins[0].ps=1024",
     "placement.pins[0].ps: expected an integer from 0 to 1023, got 1024"},
    {NULL, "placement.pins[0]={\"ps\": 1}",
     "placement.pins[0]: required key \"match\" is missing: expected a string"},
    {NULL, "placement.partitioner=fixed_size",
     "placement.partitioner: required key \"num_shards\" is missing: expected an integer from 1 to "
     "65536"},
    {NULL, "placement.partitioner={\"type\": \"min_max_variable\", \"axis\": 6}",
     "placement.partitioner.axis: expected an integer from 0 to 5, got 6"},
    {NULL, "train.mode=synch",
     "train.mode: expected one of async, sync, got \"synch\" (did you mean \"sync\"?)"},
    {NULL, "train={\"last_step\": 5, \"epochs\": 2}",
     "train: expected one of last_step, epochs and num_steps, got two of them"},
    {NULL, "train.last_step=0", "train: expected one of last_step, epochs and num_steps, got none"},
    {NULL, "train.last_step=1.5",
     "train.last_step: expected an integer from 0 to 2000000000, got 1.5"},
    {NULL, "train.max_staleness=3", "train.max_staleness: has a meaning with mode async only"},
    {NULL, "train={\"last_step\": 5, \"replicas_to_aggregate\": 2}",
     "train.replicas_to_aggregate: has a meaning with mode sync only"},
    {NULL, "train.log_every_steps=0",
     "train.log_every_steps: expected an integer from 1 to 2000000000, got 0"},
    {NULL, "train", "\"train\": expected path=value..."},
    {"{\"define\": {\"dim\": 4}, \"model\": [{\"op\": \"dense\", \"units\": \"$dimm\"}]}", NULL,
     "model[0].units: \"$dimm\" is not among what \"define\" has (did you mean \"dim\"?)"},
    {"{\"define\": {\"a\": [\"$b\"], \"b\": \"$a\"}, \"seed\": \"$a\"}", NULL, "seed[0][0]..."},
    {"{\"define\": 4}", NULL, "define: expected an object"},
    {"{\"define\": {\"a\": [\"$b\", \"$b\", \"$b\", \"$b\", \"$b\", \"$b\", \"$b\", \"$b\", "
     "\"$b\", "
     "\"$b\"], \"b\": [\"$c\", \"$c\", \"$c\", \"$c\", \"$c\", \"$c\", \"$c\", \"$c\", \"$c\", "
     "\"$c\"],"
     " \"c\": [\"$d\", \"$d\", \"$d\", \"$d\", \"$d\", \"$d\", \"$d\", \"$d\", \"$d\", \"$d\"], "
     "\"d\": "
     "[\"$e\", \"$e\", \"$e\", \"$e\", \"$e\", \"$e\", \"$e\", \"$e\", \"$e\", \"$e\"], \"e\": "
     "[\"$f\", "
     "\"$f\", \"$f\", \"$f\", \"$f\", \"$f\", \"$f\", \"$f\", \"$f\", \"$f\"], \"f\": 1}, "
     "\"seed\": [\"$a\"]}",
     NULL, "seed..."},
    {NULL, "model[1].inputs=[\"x{3..1}\"]",
     "model[1].inputs[0]: {3..1}: expected a range upwards of at most 4096"},
    {NULL, "model[1].inputs=[\"x{0..4096}\"]",
     "model[1].inputs[0]: {0..4096}: expected a range upwards of at most 4096"},
    {NULL, "train.last_step.x=1", "train.last_step.x: ..."},
    {NULL, "model[1].inputs=[\"hid*\"]",
     "model[1].inputs[0]: \"hid*\" matches no name of a column in data.columns, nor of an earlier "
     "node"},
    {NULL, "model[1]={\"op\": \"mlp\", \"unit\": 3}",
     "model[1]: unknown key \"unit\" (did you mean \"units\"?); mlp knows ..."},
    {NULL, "model[1]={\"op\": \"mlp\", \"units\": []}", "model[1].units: expected ..."},
    {NULL, "model[1]={\"op\": \"mlp\", \"units\": 3, \"name\": 4}",
     "model[1].name: expected a string, got 4"},
    {NULL, "model[1]=mlp", "model[1]: required key \"units\" is missing: ..."},
    {NULL, "model[1]={\"op\": \"mlp\", \"units\": 3, \"name\": \"logits\"}",
     "model[2]: the name \"logits\" is taken by an earlier node"},
    {NULL, "model[1]={\"repeat\": 0, \"block\": [\"relu\"]}",
     "model[1].repeat: expected an integer from 1 to 16384, got 0"},
    {NULL, "model[1]={\"repeat\": 2, \"block\": []}", "model[1].block: expected a list of nodes"},
    {NULL, "model[1]={\"repeat\": 2, \"block\": [\"relu\", {\"op\": \"dense\", \"units\": 0}]}",
     "model[1].block[1].units: expected an integer from 1 to 16777216, got 0"},
    {NULL, "model[1]={\"repeat\": 129, \"block\": [{\"repeat\": 129, \"block\": [\"relu\"]}]}",
     "model[1].block[0].block[0]: more than 16384 nodes"},
    {NULL, "blocks=4", "blocks: expected an object"},
    {NULL, "blocks={\"dense\": {\"nodes\": []}}", "blocks.dense: an op is called that"},
    {"{\"blocks\": {\"b\": {\"node\": []}}, \"model\": [\"b\"]}", NULL,
     "blocks.b: unknown key \"node\" (did you mean \"nodes\"?); ..."},
    {"{\"blocks\": {\"b\": {\"parameters\": [\"size\"], \"nodes\": [\"relu\"]}}, \"model\": "
     "[\"b\"]}",
     NULL, "model[0]: required key \"size\" is missing: block b takes it"},
    {"{\"blocks\": {\"b\": {\"nodes\": [\"relu\"]}}, \"model\": [{\"op\": \"b\", \"size\": 3}]}",
     NULL, "model[0]: unknown key \"size\": block b has no such parameter"},
    {"{\"model\": [{\"op\": \"target_attention\", \"units\": [2]}]}", NULL,
     "model[0]: inputs: target_attention reads 2, got 1: name them in \"inputs\""},
    {"{\"model\": [{\"op\": \"multi_head_attention\", \"units\": 4}]}", NULL,
     "model[0]: required key \"heads\" is missing: ..."},
    {"{\"blocks\": {\"b\": {\"nodes\": [\"relu\", \"b\"]}}, \"model\": [\"b\"]}", NULL,
     "model[0] (b \"b\"): blocks.b.nodes[1] (b \"b\"): ..."},
    {"{\"blocks\": {\"b\": {\"parameters\": [\"n\"], \"nodes\": [\"relu\", {\"op\": \"dense\", "
     "\"units\": \"$n\"}]}, \"a\": {\"nodes\": [{\"op\": \"b\", \"name\": \"x\", \"n\": "
     "\"ten\"}]}}, "
     "\"model\": [\"a\"]}",
     NULL,
     "model[0] (a \"a\"): blocks.a.nodes[0] (b \"x\"): blocks.b.nodes[1].units: expected an "
     "integer from 1 to 16777216, got \"ten\""},
};

static void expect_message(const char *got, const char *wanted)
{
    const size_t length = strlen(wanted);
    if (length > 3 && strcmp(wanted + length - 3, "...") == 0) {
        if (strncmp(got, wanted, length - 3) != 0) fail_msg("%s: got %s", wanted, got);
        return;
    }
    assert_string_equal(got, wanted);
}

static void every_broken_spec_is_refused_with_its_message(void **state)
{
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        const struct broken *b = &broken[i];
        struct spec spec = {.seed = 77};
        assert_int_equal(load_text(b->text ? b->text : good, &b->set, b->set != NULL, &spec),
                         ERR_INPUT);
        const char *message = strstr(error_text(), "/spec.json: ");
        assert_non_null(message);
        expect_message(message + strlen("/spec.json: "), b->message);
        assert_int_equal(spec.seed, 77); /* not touched */
    }
}

static void a_file_that_is_not_there_is_named(void **state)
{
    const struct spec_options options = {.path = "/nonexistent/spec.json", .seed = -1};
    struct spec spec;
    assert_int_equal(spec_load(&options, &spec), ERR_INPUT);
    assert_string_equal(error_text(),
                        "/nonexistent/spec.json: cannot be opened: No such file or directory");
}

static void a_folder_is_no_spec(void **state)
{
    const struct spec_options options = {.path = "/", .seed = -1};
    struct spec spec;
    assert_int_equal(spec_load(&options, &spec), ERR_INPUT);
    assert_string_equal(error_text(), "/: cannot be read: Is a directory");
}

static void a_spec_of_endless_length_is_not_read_to_its_end(void **state)
{
    enum { BYTES = (16 << 20) + 4096 };
    char *text = malloc(BYTES);
    assert_non_null(text);
    memset(text, ' ', BYTES);
    text[0] = '{';
    text[BYTES - 1] = '}';
    const struct place place = write_spec(text, BYTES);
    const struct spec_options options = {.path = place.path, .seed = -1};
    struct spec spec;
    assert_int_equal(spec_load(&options, &spec), ERR_INPUT);
    assert_non_null(strstr(error_text(), "spec.json: longer than 16777216 bytes: not a spec"));
    remove_spec(&place);
    free(text);
}

static void cut_anywhere_a_spec_is_refused_and_nothing_leaks(void **state)
{
    char text[sizeof good];
    const size_t length = strlen(good) - 2; /* of the object, without its last brace */
    for (size_t cut = 0; cut <= length; cut += 7) {
        memcpy(text, good, cut);
        text[cut] = '\0';
        struct spec spec;
        assert_int_equal(load_text(text, NULL, 0, &spec), ERR_INPUT);
    }
}

static void a_dash_is_standard_input(void **state)
{
    const struct place place = write_spec(good, strlen(good));
    const int saved = dup(STDIN_FILENO), file = open(place.path, O_RDONLY);
    assert_true(saved >= 0 && file >= 0);
    assert_int_equal(dup2(file, STDIN_FILENO), STDIN_FILENO);
    const struct spec_options options = {.path = "-", .seed = -1};
    struct spec spec;
    const err e = spec_load(&options, &spec);
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(file);
    remove_spec(&place);
    assert_int_equal(e, OK);
    assert_string_equal(spec.name, "digits");
    assert_string_equal(spec.directory, ".");
    spec_free(&spec);
}

static void paths_of_data_are_relative_to_the_spec_unless_told_otherwise(void **state)
{
    const struct place place = write_spec(good, strlen(good));
    struct spec_options options = {.path = place.path, .seed = -1};
    struct spec spec;
    assert_int_equal(spec_load(&options, &spec), OK);
    assert_string_equal(spec.directory, place.directory);
    spec_free(&spec);
    options.data_dir = "/data/mnist";
    assert_int_equal(spec_load(&options, &spec), OK);
    assert_string_equal(spec.directory, "/data/mnist");
    spec_free(&spec);
    remove_spec(&place);
}

static void the_command_line_wins_over_the_file(void **state)
{
    static const char *sets[] = {"train.last_step=7", "model[1].units=5", "optimizer.clip=null",
                                 "name=other"};
    const struct place place = write_spec(good, strlen(good));
    const struct spec_options options = {
        .path = place.path, .overrides = {.at = sets, .count = 4}, .seed = 42};
    struct spec spec;
    if (spec_load(&options, &spec) != OK) fail_msg("%s", error_text());
    assert_int_equal(spec.train.last_step, 7);
    assert_int_equal(spec.seed, 42);
    assert_string_equal(spec.name, "other");
    assert_int_equal(optimizer_clip(&spec.optimizer).type, CLIP_NONE);
    assert_int_equal(json_integer_value(json_object_get(spec.json, "seed")), 42);
    spec_free(&spec);
    remove_spec(&place);
}

static void fingerprint_of(const char *set, char ret[17])
{
    struct spec spec = load_good(&set, set != NULL);
    memcpy(ret, spec.fingerprint, 17);
    spec_free(&spec);
}

static void tasks_that_train_the_same_have_the_same_fingerprint(void **state)
{
    static const char *const equal[] = {
        "name=other",
        "train.log_every_steps=1",
        "data.train.features=\"/elsewhere/x\"",
        "data.eval.labels=\"/elsewhere/v\"",
        "seed=3",
    };
    char plain[17], changed[17];
    fingerprint_of(NULL, plain);
    assert_int_equal(strspn(plain, "0123456789abcdef"), 16);
    for (size_t i = 0; i < sizeof equal / sizeof equal[0]; i++) {
        fingerprint_of(equal[i], changed);
        assert_string_equal(plain, changed);
    }
}

static void tasks_that_train_something_else_have_another(void **state)
{
    static const char *const different[] = {
        "seed=4",
        "data.batch_size=51",
        "data.train.take=999",
        "model[1].units=21",
        "loss.op=sigmoid_cross_entropy",
        "optimizer.momentum=0.8",
        "placement.strategy=round_robin",
        "train.last_step=1001",
        "train.mode=async",
    };
    char seen[sizeof different / sizeof different[0] + 1][17];
    fingerprint_of(NULL, seen[0]);
    for (size_t i = 0; i < sizeof different / sizeof different[0]; i++) {
        fingerprint_of(different[i], seen[i + 1]);
        for (size_t j = 0; j <= i; j++) assert_string_not_equal(seen[j], seen[i + 1]);
    }
}

static int64_t steps_of(const char *const *sets, int count, int64_t rows, int workers)
{
    struct spec spec = load_good(sets, count);
    const int64_t steps = spec_last_step(&spec, rows, workers);
    spec_free(&spec);
    return steps;
}

static void a_last_step_is_taken_as_it_is(void **state)
{
    assert_int_equal(steps_of(NULL, 0, 60000, 4), 1000);
}

static void epochs_become_steps_of_all_workers_together(void **state)
{
    static const char *const sync[] = {"train.last_step=0", "train.epochs=2"};
    assert_int_equal(steps_of(sync, 2, 60000, 1), 2400);
    assert_int_equal(steps_of(sync, 2, 60000, 4), 600);
    assert_int_equal(steps_of(sync, 2, 60001, 4), 601); /* begun is done */
    assert_int_equal(steps_of(sync, 2, 1, 4), 1);

    static const char *const fewer[] = {"train.last_step=0", "train.epochs=2",
                                        "train.replicas_to_aggregate=3"};
    assert_int_equal(steps_of(fewer, 3, 60000, 4), 800);

    static const char *const async[] = {"train.last_step=0", "train.epochs=2", "train.mode=async"};
    assert_int_equal(steps_of(async, 3, 60000, 4), 2400); /* every gradient is a step */

    static const char *const more[] = {"train.last_step=0", "train.epochs=1.1"};
    assert_int_equal(steps_of(more, 2, 50000, 1), 1100); /* 1100.0000000000002 in double */
}

static void assert_changes(const char *before, const char *now, const char *lines)
{
    char joined[4096] = "";
    json_t *was = json_loads(before, 0, NULL), *is = json_loads(now, 0, NULL), *line;
    json_t *changes = last_spec_changes(was, is);
    size_t i;
    assert_non_null(was);
    assert_non_null(is);
    json_array_foreach(changes, i, line)
    {
        strcat(joined, json_string_value(line));
        strcat(joined, "\n");
    }
    assert_string_equal(joined, lines);
    json_decref(changes);
    json_decref(was);
    json_decref(is);
}

static void what_has_changed_in_a_spec_is_a_line_a_key(void **state)
{
    assert_changes("{}", "{}", "");
    assert_changes("{\"a\": 1}", "{\"a\": 1.0, \"b\": null}", "");
    assert_changes("{\"optimizer\": {\"type\": \"adam\", \"learning_rate\": 0.001}}",
                   "{\"optimizer\": {\"type\": \"adam\", \"learning_rate\": 0.0003}}",
                   "optimizer.learning_rate: 0.001 -> 0.0003\n");
    assert_changes("{\"train\": {\"epochs\": 1}}", "{\"train\": {\"last_step\": 7}}",
                   "train.epochs: 1 -> (default)\ntrain.last_step: (default) -> 7\n");
    assert_changes("{\"model\": [{\"units\": 1}, {\"units\": 2}]}",
                   "{\"model\": [{\"units\": 1}, {\"units\": 3}]}", "model[1].units: 2 -> 3\n");
    assert_changes("{\"m\": [\"auc\"]}", "{\"m\": [\"auc\", \"loss\"]}",
                   "m: [\"auc\"] -> [\"auc\",\"loss\"]\n");
}

static void of_many_keys_that_changed_some_are_told(void **state)
{
    json_t *before = json_object(), *now = json_object(), *changes;
    for (int i = 0; i < LAST_SPEC_LINES_MAX + 3; i++) {
        char key[600];
        snprintf(key, sizeof key, "%0*d", 500, i);
        json_object_set_new(now, key, json_string(key));
    }
    changes = last_spec_changes(before, now);
    assert_int_equal(json_array_size(changes), LAST_SPEC_LINES_MAX + 1);
    assert_string_equal(json_string_value(json_array_get(changes, LAST_SPEC_LINES_MAX)),
                        "and 3 keys more");
    json_decref(changes);
    json_decref(before);
    json_decref(now);
}

/* Of `offset` letters, and 200 characters of several bytes behind them */
static void make_long(char ret[1024], int offset, const char *character)
{
    memset(ret, 'x', (size_t)offset);
    ret[offset] = '\0';
    for (int i = 0; i < 200; i++) strcat(ret, character);
}

static void what_changed_is_cut_between_two_characters(void **state)
{
    static const char *const characters[] = {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x99\x82"};
    for (int i = 0; i < 3 * 4; i++) {
        char text[1024];
        make_long(text, i % 4, characters[i / 4]);
        json_t *before = json_pack("{s{ss} ss}", text, "a key", "b", "a value", "b"),
               *now = json_pack("{s{ss} ss}", text, "a key", text, "a value", text);
        json_t *changes = last_spec_changes(before, now), *line;
        size_t at;
        assert_int_equal(json_array_size(changes), 2);
        json_array_foreach(changes, at, line) assert_true(json_string_length(line) > 80);
        json_decref(changes);
        json_decref(before);
        json_decref(now);
    }
}

static void every_field_of_the_spec_is_documented(void **state)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    fields_help(file, &spec_object, 0);
    fclose(file);
    json_t *schema = fields_schema(&spec_object);
    const json_t *properties = json_object_get(schema, "properties");
    for (const struct field *field = spec_object.fields; field->name; field++) {
        assert_non_null(strstr(text, field->name));
        assert_non_null(field->help);
        assert_non_null(json_object_get(properties, field->name));
    }
    json_decref(schema);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_spec_is_read_as_it_stands),
        cmocka_unit_test(what_is_defined_stands_where_it_is_used),
        cmocka_unit_test(nodes_in_short_are_those_in_full),
        cmocka_unit_test(a_node_keeps_the_place_where_it_was_written),
        cmocka_unit_test(what_is_left_out_has_its_default),
        cmocka_unit_test(every_broken_spec_is_refused_with_its_message),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
        cmocka_unit_test(a_folder_is_no_spec),
        cmocka_unit_test(a_spec_of_endless_length_is_not_read_to_its_end),
        cmocka_unit_test(cut_anywhere_a_spec_is_refused_and_nothing_leaks),
        cmocka_unit_test(a_dash_is_standard_input),
        cmocka_unit_test(paths_of_data_are_relative_to_the_spec_unless_told_otherwise),
        cmocka_unit_test(the_command_line_wins_over_the_file),
        cmocka_unit_test(tasks_that_train_the_same_have_the_same_fingerprint),
        cmocka_unit_test(tasks_that_train_something_else_have_another),
        cmocka_unit_test(a_last_step_is_taken_as_it_is),
        cmocka_unit_test(epochs_become_steps_of_all_workers_together),
        cmocka_unit_test(what_has_changed_in_a_spec_is_a_line_a_key),
        cmocka_unit_test(of_many_keys_that_changed_some_are_told),
        cmocka_unit_test(what_changed_is_cut_between_two_characters),
        cmocka_unit_test(every_field_of_the_spec_is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
