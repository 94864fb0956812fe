/* fold.c - folds multiplications and additions of constants, such as batch normalization, into the
 * kernel and bias before them, unless something else reads the value in between.
 */
#include <string.h>

#include "cmd/export/program.h"

/* Whether a constant has one number per channel (last axis), or one for all. */
static bool is_per_channel(const struct program_value *constant, int64_t channels)
{
    const int64_t count = shape_count(&constant->shape);
    return constant->primitive == PRIMITIVE_CONSTANT && constant->data &&
           (count == 1 ||
            (count == channels && constant->shape.dim[constant->shape.rank - 1] == channels));
}

/* a b, or a + b, one of them for each channel */
static int combine(struct program *p, int a, int b, bool adds)
{
    const struct program_value *x = &p->values[a], *y = &p->values[b];
    const struct program_value *like = shape_count(&x->shape) >= shape_count(&y->shape) ? x : y;
    const int64_t count = shape_count(&like->shape);
    const int64_t of_x = shape_count(&x->shape), of_y = shape_count(&y->shape);
    const struct shape shape = like->shape;
    float *data = arena_array(p->arena, (size_t)count, sizeof *data);
    for (int64_t i = 0; i < count; i++) {
        const float left = x->data[i % of_x], right = y->data[i % of_y];
        data[i] = adds ? left + right : left * right;
    }
    return program_constant(p, x->name, &shape, data);
}

static bool is_product(const struct program_value *v)
{
    return v->primitive == PRIMITIVE_MATMUL || v->primitive == PRIMITIVE_CONV2D;
}

/* (x kernel) s = x (kernel s) */
static bool fold_product(struct program *p, int at, int product, int scale)
{
    const struct program_value made = p->values[product];
    if (p->values[made.inputs[1]].primitive != PRIMITIVE_CONSTANT) return false;
    const int kernel = combine(p, made.inputs[1], scale, false);
    struct program_value y = made;
    y.inputs[1] = kernel;
    const int folded = program_add(p, &y);
    /* Values only read earlier ones, so the folded value replaces the old one in place. */
    p->values[at] = p->values[folded];
    return true;
}

/* (u + b) s = u s + b s; s is folded into the kernel of u. */
static bool fold_sum(struct program *p, int at, int sum, int scale)
{
    const struct program_value added = p->values[sum];
    const int64_t channels = added.shape.dim[added.shape.rank - 1];
    const int u = added.inputs[0], b = added.inputs[1];
    if (!is_per_channel(&p->values[b], channels) || !is_product(&p->values[u]) ||
        p->values[u].uses != 1 || p->values[p->values[u].inputs[1]].primitive != PRIMITIVE_CONSTANT)
        return false;
    const int offset = combine(p, b, scale, false);
    (void)fold_product(p, u, u, scale);
    p->values[sum].inputs[1] = offset;
    p->values[at] = p->values[sum];
    return true;
}

static bool fold_at(struct program *p, int at)
{
    const struct program_value v = p->values[at];
    const bool multiplies = v.primitive == PRIMITIVE_MULTIPLY;
    if ((!multiplies && v.primitive != PRIMITIVE_ADD) || v.shape.rank < 2) return false;
    const int x = v.inputs[0], constant = v.inputs[1];
    const int64_t channels = v.shape.dim[v.shape.rank - 1];
    const struct program_value before = p->values[x];
    if (!is_per_channel(&p->values[constant], channels) || before.uses != 1 ||
        !shape_equal(&before.shape, &v.shape))
        return false;
    if (multiplies && is_product(&before)) return fold_product(p, at, x, constant);
    if (before.primitive != PRIMITIVE_ADD) return false;
    if (multiplies) return fold_sum(p, at, x, constant);
    if (!is_per_channel(&p->values[before.inputs[1]], channels)) return false;
    const int sum = combine(p, before.inputs[1], constant, true);
    p->values[at].inputs[0] = before.inputs[0];
    p->values[at].inputs[1] = sum;
    return true;
}

/* Constants made by folds come after their readers: moves all constants to the front. */
static void sort(struct program *p)
{
    const int count = p->count;
    int *place = arena_array(p->arena, (size_t)count, sizeof *place);
    struct program_value *sorted = arena_array(p->arena, (size_t)count, sizeof *sorted);
    int at = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count; i++)
            if ((p->values[i].primitive == PRIMITIVE_CONSTANT) == (pass == 0)) {
                place[i] = at;
                sorted[at++] = p->values[i];
            }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < sorted[i].input_count; k++)
            sorted[i].inputs[k] = place[sorted[i].inputs[k]];
    for (int i = 0; i < p->output_count; i++) p->outputs[i].value = place[p->outputs[i].value];
    p->values = sorted;
    p->room = count;
}

int program_fold(struct program *p)
{
    int folds = 0, before;
    do {
        before = folds;
        program_count_uses(p);
        for (int i = 0; i < p->count && folds == before; i++)
            folds += p->values[i].uses && fold_at(p, i);
        sort(p);
    } while (folds > before);
    program_count_uses(p);
    return folds;
}
