/* lower_masked.c - softmax, reductions and attention, with or without a mask over positions of an
 * axis. */
#include <math.h>
#include <string.h>

#include "cmd/export/lower.h"

/* The score of a masked position, as in core/ops: less than any real one */
static const float NOT_THERE = -1e30f;

enum { MASK }; /* the named input */

/* ---- masks ---- */

/* The mask, reshaped to broadcast along that axis of a value of that rank; -1: none */
static err lower_mask(struct lowering *l, int rank, int axis, int *ret)
{
    struct shape shape = {rank, {1, 1, 1, 1, 1, 1}};
    TRY(lower_named(l, MASK, ret));
    if (*ret < 0) return OK;
    shape.dim[axis] = l->program->values[*ret].shape.dim[1];
    *ret = program_reshape(l->program, *ret, &shape);
    return OK;
}

/* x where `there` is 1, NOT_THERE where it is 0 */
static int hidden(struct program *p, int x, int there)
{
    const int shown = program_two(p, PRIMITIVE_MULTIPLY, x, there);
    const int lacks = program_two(p, PRIMITIVE_SUBTRACT, there, program_number(p, 1));
    const int low = program_two(p, PRIMITIVE_MULTIPLY, lacks, program_number(p, -NOT_THERE));
    return program_two(p, PRIMITIVE_ADD, shown, low);
}

/* All 0 where everything is masked. `there`: 1 where the mask is above 0, else 0 */
static int masked_softmax(struct program *p, int x, int there, int mask)
{
    const int shares = program_one(p, PRIMITIVE_SOFTMAX, hidden(p, x, there));
    return program_two(p, PRIMITIVE_MULTIPLY, shares, mask);
}

static err lower_softmax(struct lowering *l, int x, int *ret)
{
    struct program *p = l->program;
    const int rank = p->values[x].shape.rank;
    int mask;
    TRY(lower_mask(l, rank, rank - 1, &mask));
    *ret = mask < 0 ? program_one(p, PRIMITIVE_SOFTMAX, x)
                    : masked_softmax(p, x, program_one(p, PRIMITIVE_POSITIVE, mask), mask);
    return OK;
}

/* ---- reductions ---- */

/* sum / count; 0 where count is 0 */
static int over(struct program *p, int sum, int count)
{
    const int some = program_one(p, PRIMITIVE_POSITIVE, program_one(p, PRIMITIVE_ABS, count));
    const int none = program_two(p, PRIMITIVE_SUBTRACT, program_number(p, 1), some);
    const int divisor = program_two(p, PRIMITIVE_ADD, count, none);
    return program_two(p, PRIMITIVE_MULTIPLY, program_two(p, PRIMITIVE_DIVIDE, sum, divisor), some);
}

static int masked_reduce(struct program *p, enum primitive primitive, int x, int mask,
                         const bool goes[RANK_MAX])
{
    if (primitive == PRIMITIVE_LARGEST) {
        const int there = program_one(p, PRIMITIVE_POSITIVE, mask);
        const int most = program_reduce(p, primitive, hidden(p, x, there), goes);
        const int least = program_number(p, -NOT_THERE / 2);
        const int some =
            program_one(p, PRIMITIVE_POSITIVE, program_two(p, PRIMITIVE_ADD, most, least));
        return program_two(p, PRIMITIVE_MULTIPLY, most, some);
    }
    const int shown = program_two(p, PRIMITIVE_MULTIPLY, x, mask);
    const int sum = program_reduce(p, PRIMITIVE_SUM, shown, goes);
    if (primitive == PRIMITIVE_SUM) return sum;
    return over(p, sum, program_reduce(p, PRIMITIVE_SUM, mask, goes));
}

static err lower_reduce(struct lowering *l, int x, int *ret)
{
    static const enum primitive of[] = {PRIMITIVE_SUM, PRIMITIVE_MEAN, PRIMITIVE_LARGEST};
    const struct ints *axes = lower_ints(l->node, "axes");
    const enum primitive primitive = of[lower_enum(l->node, "reduction")];
    const int rank = l->program->values[x].shape.rank;
    bool goes[RANK_MAX] = {false};
    int axis = 0, mask = -1;
    for (int i = 1; i < rank; i++) goes[i] = axes->count == 0;
    for (int i = 0; i < axes->count; i++)
        goes[axis = axes->at[i] < 0 ? axes->at[i] + rank : axes->at[i]] = true;
    if (axis) TRY(lower_mask(l, rank, axis, &mask));
    *ret = mask < 0 ? program_reduce(l->program, primitive, x, goes)
                    : masked_reduce(l->program, primitive, x, mask, goes);
    *ret = lower_shape(l, *ret);
    return OK;
}

static int lower_global(struct lowering *l, int x)
{
    const bool is_most = strcmp(l->node->op->object.name, "global_max_pool") == 0;
    const bool goes[RANK_MAX] = {false, true, true};
    return lower_shape(
        l, program_reduce(l->program, is_most ? PRIMITIVE_LARGEST : PRIMITIVE_MEAN, x, goes));
}

/* ---- attention ---- */

/* [..., positions, heads * width] to [..., heads, positions, width], or is_turned: with the last
 * two axes swapped */
static int split_heads(struct program *p, int x, int64_t heads, bool is_turned)
{
    struct shape shape = p->values[x].shape;
    int64_t axes[RANK_MAX];
    const int rank = shape.rank + 1, place = rank - 3;
    shape.dim[rank - 1] = shape.dim[rank - 2] / heads;
    shape.dim[rank - 2] = heads;
    shape.rank = rank;
    x = program_reshape(p, x, &shape);
    for (int i = 0; i < rank; i++) axes[i] = i;
    axes[place] = place + 1;
    axes[place + 1] = is_turned ? place + 2 : place;
    axes[place + 2] = is_turned ? place : place + 2;
    return program_transpose(p, x, axes);
}

/* The inverse of split_heads, not turned */
static int join_heads(struct lowering *l, int x)
{
    const int rank = l->program->values[x].shape.rank;
    int64_t axes[RANK_MAX];
    for (int i = 0; i < rank; i++) axes[i] = i;
    axes[rank - 3] = rank - 2;
    axes[rank - 2] = rank - 3;
    return lower_shape(l, program_transpose(l->program, x, axes));
}

/* The causal mask: 1 where a query (row) may attend to a key (column), else 0 */
static int triangle(struct program *p, int64_t places)
{
    float *sees = arena_array(p->arena, (size_t)(places * places), sizeof *sees);
    for (int64_t i = 0; i < places * places; i++) sees[i] = i % places <= i / places;
    return program_constant(p, "", &(struct shape){2, {places, places}}, sees);
}

/* The mask of keys, 1 or 0, that broadcasts to scores of that rank; -1: all are used */
static err lower_seen(struct lowering *l, int rank, int64_t keys, int *ret)
{
    struct program *p = l->program;
    TRY(lower_mask(l, rank, rank - 1, ret));
    if (*ret >= 0) *ret = program_one(p, PRIMITIVE_POSITIVE, *ret);
    if (!lower_bool(l->node, "causal")) return OK;
    const int before = triangle(p, keys);
    *ret = *ret < 0 ? before : program_two(p, PRIMITIVE_MULTIPLY, *ret, before);
    return OK;
}

err lower_attention(struct lowering *l, int *ret)
{
    struct program *p = l->program;
    const int64_t heads = lower_int(l->node, "heads");
    int of[3], seen;
    for (int i = 0; i < 3; i++) TRY(lower_input(l, i, &of[i]));
    const struct shape shape = p->values[of[1]].shape;
    if (shape.rank == RANK_MAX) return lower_refuse("its inputs have too many axes");
    for (int i = 0; i < 3; i++) of[i] = split_heads(p, of[i], heads, i == 1);
    TRY(lower_seen(l, shape.rank + 1, shape.dim[shape.rank - 2], &seen));
    const float root = sqrtf((float)(shape.dim[shape.rank - 1] / heads));
    int scores = program_matmul(p, of[0], of[1]);
    scores = program_two(p, PRIMITIVE_MULTIPLY, scores, program_number(p, 1 / root));
    const int shares = seen < 0 ? program_one(p, PRIMITIVE_SOFTMAX, scores)
                                : masked_softmax(p, scores, seen, seen);
    *ret = join_heads(l, program_matmul(p, shares, of[2]));
    return OK;
}

err lower_masked(struct lowering *l, int *ret)
{
    const char *op = l->node->op->object.name;
    int x;
    TRY(lower_input(l, 0, &x));
    if (strcmp(op, "softmax") == 0) return lower_softmax(l, x, ret);
    if (strcmp(op, "reduce") == 0) return lower_reduce(l, x, ret);
    *ret = lower_global(l, x);
    return OK;
}
