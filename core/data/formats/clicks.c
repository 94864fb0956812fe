/* clicks: synthetic rows of a click log, 26 ids and 13 numbers each, with a known signal.
 *
 * Cells are c1 to c26 (ids), n1 to n13 (normally distributed) and "logit", from which the label is
 * drawn: a model of that cell alone has the best possible metrics. Every id and every number adds
 * its own part to the logit; parts of ids are normally distributed.
 */
#include "core/data/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/random.h"

enum { IDS = 26, NUMBERS = 13, CELLS = IDS + NUMBERS + 1, NAME_MAX_BYTES = 8 };

struct clicks_attributes {
    int64_t rows, buckets, seed;
    double skew, strength, bias;
};

struct clicks {
    struct row_reader reader; /* first: the public part */
    const struct clicks_attributes *attributes;
    uint64_t id_keys[IDS], part_keys[IDS], order_keys[IDS], number_keys[NUMBERS], label_key;
    float slopes[NUMBERS];
    double reach; /* determines the integral of x^-skew from 1 to buckets + 1 */
    int64_t next;
    int64_t ids[IDS];
    double numbers[NUMBERS + 1]; /* the last is the logit */
    struct cell cells[CELLS];
    char names[CELLS][NAME_MAX_BYTES];
    const char *cell_names[CELLS];
};

/* Draws from density x^-skew between 1 and buckets + 1 by inverting its integral: close to Zipf's
 * law */
static int64_t draw_rank(const struct clicks *c, double uniform)
{
    const struct clicks_attributes *a = c->attributes;
    const double power = 1 - a->skew;
    const double x =
        fabs(power) < 1e-9 ? exp(uniform * c->reach) : pow(1 + uniform * (c->reach - 1), 1 / power);
    const int64_t rank = (int64_t)x - 1;
    return rank < 0 ? 0 : rank < a->buckets ? rank : a->buckets - 1;
}

static double reach_of(const struct clicks_attributes *a)
{
    const double end = (double)a->buckets + 1, power = 1 - a->skew;
    return fabs(power) < 1e-9 ? log(end) : pow(end, power);
}

/* Frequent ids are spread over the table, as in real logs. */
static float draw_id(struct clicks *c, int column, int64_t row)
{
    const double uniform = (double)(random_u64(c->id_keys[column], (uint64_t)row) >> 11) * 0x1p-53;
    const uint64_t rank = (uint64_t)draw_rank(c, uniform);
    const uint64_t buckets = (uint64_t)c->attributes->buckets;
    c->ids[column] = (int64_t)random_permute(c->order_keys[column], buckets, rank);
    return random_normal(c->part_keys[column], (uint64_t)c->ids[column]);
}

static float draw_number(struct clicks *c, int column, int64_t row)
{
    const float number = random_normal(c->number_keys[column], (uint64_t)row);
    c->numbers[column] = (double)number;
    return c->slopes[column] * number;
}

static err next_row(struct row_reader *reader, struct row *ret, bool *ret_found)
{
    struct clicks *c = (struct clicks *)reader;
    const int64_t row = c->next;
    *ret_found = row < c->attributes->rows;
    if (!*ret_found) return OK;
    double sum = 0;
    for (int i = 0; i < IDS; i++) sum += (double)draw_id(c, i, row);
    for (int i = 0; i < NUMBERS; i++) sum += (double)draw_number(c, i, row);
    const double logit =
        c->attributes->bias + c->attributes->strength * sum / sqrt((double)(IDS + NUMBERS));
    const double uniform = (double)(random_u64(c->label_key, (uint64_t)row) >> 11) * 0x1p-53;
    c->numbers[NUMBERS] = logit;
    *ret = (struct row){c->cells, row, uniform < 1 / (1 + exp(-logit)) ? 1 : 0};
    c->next++;
    return OK;
}

static void close_reader(struct row_reader *reader)
{
    free(reader);
}

static void draw_keys(struct clicks *c, uint64_t seed)
{
    for (int i = 0; i < IDS; i++) {
        c->id_keys[i] = random_u64(random_key(seed, "clicks/ids"), (uint64_t)i);
        c->part_keys[i] = random_u64(random_key(seed, "clicks/parts"), (uint64_t)i);
        c->order_keys[i] = random_u64(random_key(seed, "clicks/order"), (uint64_t)i);
    }
    for (int i = 0; i < NUMBERS; i++) {
        c->number_keys[i] = random_u64(random_key(seed, "clicks/numbers"), (uint64_t)i);
        c->slopes[i] = random_normal(random_key(seed, "clicks/slopes"), (uint64_t)i);
    }
    c->label_key = random_key(seed, "clicks/labels");
}

static void name_cells(struct clicks *c)
{
    for (int i = 0; i < CELLS; i++) {
        const bool is_id = i < IDS;
        snprintf(c->names[i], NAME_MAX_BYTES, is_id ? "c%d" : "n%d", 1 + (is_id ? i : i - IDS));
        c->cell_names[i] = i == CELLS - 1 ? "logit" : c->names[i];
        c->cells[i] = (struct cell){.count = 1,
                                    .ids = is_id ? &c->ids[i] : NULL,
                                    .numbers = is_id ? NULL : &c->numbers[i - IDS]};
    }
}

static err read_clicks(const void *attributes, const struct format_context *context,
                       struct row_reader **ret)
{
    static const struct row_calls calls = {.next = next_row, .close = close_reader};
    const struct clicks_attributes *a = attributes;
    struct clicks *c = calloc(1, sizeof *c);
    if (!c) return fail(ERR_MEMORY, "no memory for clicks");
    c->reader = (struct row_reader){.calls = &calls,
                                    .name = "clicks",
                                    .numbered = "row",
                                    .cell_names = c->cell_names,
                                    .cell_count = CELLS,
                                    .rows = a->rows,
                                    .label_cell = -1,
                                    .label_dtype = INT32};
    c->attributes = a;
    c->reach = reach_of(a);
    draw_keys(c, context->seed + (uint64_t)a->seed);
    name_cells(c);
    *ret = &c->reader;
    return OK;
}

static const struct field fields[] = {
    FIELD_OF("rows", INT, struct clicks_attributes, rows, .min = 1, .max = 0x1p40,
             .help = "number of rows"),
    FIELD_OF("buckets", INT, struct clicks_attributes, buckets, .fallback = "1000", .min = 1,
             .max = 0x1p40, .help = "number of ids in each of c1 to c26"),
    FIELD_OF(
        "skew", FLOAT, struct clicks_attributes, skew, .fallback = "1.05", .max = 4,
        .help = "Zipf exponent: the id of rank k is k^skew times rarer than the first; 0: uniform"),
    FIELD_OF("strength", FLOAT, struct clicks_attributes, strength, .fallback = "2", .max = 100,
             .help = "approximate standard deviation of the logits: how much the cells tell about "
                     "the label"),
    FIELD_OF("bias", FLOAT, struct clicks_attributes, bias, .fallback = "-1", .min = -100,
             .max = 100, .help = "added to the logits; negative: ones are rarer than zeros"),
    FIELD_OF("seed", INT, struct clicks_attributes, seed, .fallback = "0",
             .help = "added to the seed of the run"),
    {0},
};

const struct format format_clicks = {
    .object = {"clicks",
               "made-up clicks: ids c1 to c26, numbers n1 to n13, and the logit that they make, "
               "for columns",
               fields, sizeof(struct clicks_attributes)},
    .read = read_clicks,
};
