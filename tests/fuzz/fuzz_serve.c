/* What clients send to `dtrain serve`: the first byte says of which rows, and in which form. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "cmd/serve/intake.h"
#include "core/base/log.h"

enum { ROWS_MOST = 64, OF_CELLS = 0, OF_NUMBERS, KINDS };

static const char *const specs[KINDS] = {
    [OF_CELLS] =
        "{\"name\": \"cells\", \"data\": {\"train\": {\"format\": \"jsonl\", \"file\": \"none\", "
        "\"label\": "
        "\"click\", \"missing\": [\"NA\"]}, \"columns\": ["
        "{\"column\": \"numeric\", \"name\": \"age\", \"default\": 30},"
        "{\"column\": \"bucketized\", \"name\": \"ages\", \"source\": \"age\", \"boundaries\": "
        "[18, 65]},"
        "{\"column\": \"hash\", \"name\": \"city\", \"buckets\": 1000},"
        "{\"column\": \"vocabulary\", \"name\": \"colour\", \"words\": [\"red\", \"green\"], "
        "\"oov_buckets\": 1},"
        "{\"column\": \"hash\", \"name\": \"tags\", \"buckets\": 64, \"max\": 4},"
        "{\"column\": \"identity\", \"name\": \"device\", \"buckets\": 8, \"default\": 0},"
        "{\"column\": \"crossed\", \"name\": \"both\", \"keys\": [\"ages\", \"city\"], "
        "\"buckets\": 100},"
        "{\"column\": \"date\", \"name\": \"hour\", \"part\": \"hour\", \"default\": 0}"
        "], \"batch_size\": 2}, \"model\": [{\"op\": \"dense\", \"name\": \"out\", \"units\": 1, "
        "\"inputs\": "
        "[\"age\"]}], \"loss\": \"sigmoid_cross_entropy\", \"optimizer\": {\"type\": \"adagrad\", "
        "\"learning_rate\": 0.1}, \"train\": {\"last_step\": 1}}",
    [OF_NUMBERS] = "{\"name\": \"numbers\", \"data\": {\"train\": {\"format\": \"csv\", \"file\": "
                   "\"memory://rows.csv\", \"label\": \"y\"}, \"batch_size\": 2}, \"model\": "
                   "[{\"op\": \"dense\", "
                   "\"name\": \"out\", \"units\": 2}], \"loss\": \"softmax_cross_entropy\", "
                   "\"optimizer\": {\"type\": "
                   "\"gradient_descent\", \"learning_rate\": 0.1}, \"train\": {\"last_step\": 1}}"};

static const char table[] = "a,b,c,y\n1,2,3,0\n4,5,6,1\n7,8,9,0\n";

/* All columns but the labels are read, as by a model that has all of them. */
bool __wrap_session_reads_column(const struct session *, int column);
bool __wrap_session_reads_column(const struct session *s, int column)
{
    return column > 0;
}

static struct intake *intakes[KINDS];

static struct view view_of(const char *text)
{
    return (struct view){(const uint8_t *)text, (const uint8_t *)text + strlen(text)};
}

static void open_one(int kind)
{
    static struct spec kept[KINDS];
    const struct spec_options options = {
        .path = "memory://spec.json", .data_dir = "/", .seed = -1, .trains_nothing = true};
    memory_file("spec.json", view_of(specs[kind]));
    memory_file("rows.csv", view_of(table));
    if (spec_load(&options, &kept[kind]) || intake_open(&kept[kind], &intakes[kind]) ||
        intake_choose(intakes[kind], NULL)) {
        fuzz_holds(false, error_text());
    }
    memory_clear();
}

static void look(const struct taken_rows *rows, int64_t most)
{
    fuzz_holds(rows->rows >= 1 && rows->rows <= most, "there are as many rows as may be");
    for (int i = 0; i < rows->column_count; i++) {
        const struct column *c = &rows->columns[i];
        const int64_t cells = c->at ? rows->rows * shape_count(&c->shape) : 0;
        for (int64_t k = 0; k < cells; k++) {
            if (c->dtype == INT64 && c->buckets > 0)
                fuzz_holds(((const int64_t *)c->at)[k] < c->buckets, "an id is one of its buckets");
            if (c->dtype == FLOAT32)
                fuzz_holds(((const float *)c->at)[k] - ((const float *)c->at)[k] == 0,
                           "a number is finite");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct view input = {bytes, bytes + count};
    struct taken_rows rows;
    const uint8_t which = fuzz_byte(&input);
    const int kind = which % KINDS;
    log_set_level(LOG_ERROR);
    if (!intakes[kind]) open_one(kind);
    char *body = calloc(1, view_bytes(input) + 1); /* a NUL is behind it */
    if (!body) return 0;
    if (view_bytes(input)) memcpy(body, input.at, view_bytes(input));
    const int status = intake_read(intakes[kind], which / KINDS % 2 ? FORM_EXAMPLES : FORM_PREDICT,
                                   body, view_bytes(input), ROWS_MOST, &rows);
    if (status) fuzz_holds(status == 400 || status == 413 || status == 503, "a refusal is one");
    if (status) fuzz_holds(error_text()[0], "it is said what is wrong");
    if (!status) look(&rows, ROWS_MOST);
    if (!status) taken_rows_free(&rows);
    free(body);
    return 0;
}
