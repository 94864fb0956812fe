/* compare: a vector next to each vector of a list, with their difference and product: the input of
 * DIN's attention.
 *
 * x [batch, width], places [batch, places, width], y [batch, places, 4 width]: x, place, x - place,
 * x * place.
 */
#include "core/ops/algebra/loops.h"

enum { TARGET, PLACES };
enum { OF_TARGET, OF_PLACE, DIFFERENCE, PRODUCT, PARTS };

static err infer(struct node *node, struct arena *arena)
{
    const struct shape *x = &node->input[TARGET]->shape, *places = &node->input[PLACES]->shape;
    char texts[2][SHAPE_TEXT_MAX];
    if (x->rank != 2 || places->rank != 3 || x->dim[1] != places->dim[2])
        return fail(ERR_INPUT,
                    "inputs: expected [batch, width] and [batch, places, width]: \"%s\" "
                    "is %s, \"%s\" is %s",
                    node->input[TARGET]->name, shape_text(x, texts[0]), node->input[PLACES]->name,
                    shape_text(places, texts[1]));
    node->output.shape = *places;
    node->output.shape.dim[2] *= PARTS;
    return OK;
}

/* Strides in floats from example to example and from place to place */
struct stride {
    int64_t example, place;
};

struct strides {
    int64_t batch, places, width;
    struct stride target, of_place, part;
};

static struct strides strides_of(const struct node *node)
{
    const struct shape *of = &node->input[PLACES]->shape;
    const int64_t places = of->dim[1], width = of->dim[2];
    return (struct strides){of->dim[0],
                            places,
                            width,
                            {width, 0},
                            {places * width, width},
                            {PARTS * places * width, PARTS * width}};
}

static void run(struct device *d, struct fold *f, const struct strides *s, struct stride y,
                struct stride a, struct stride b)
{
    fold_axis(f, s->batch, y.example, a.example, b.example, 0);
    fold_axis(f, s->places, y.place, a.place, b.place, 0);
    fold_axis(f, s->width, 1, 1, 1, 0);
    d->kernels->fold(d, f);
}

static void forward(const struct node *node, struct device *d)
{
    const struct strides s = strides_of(node);
    const float *x = node->input[TARGET]->value, *places = node->input[PLACES]->value;
    float *y = node->output.value;
    struct fold target = {FOLD_A, .scale = 1, .y = y, .a = x};
    struct fold difference = {FOLD_SUBTRACT, .scale = 1, .y = y + DIFFERENCE * s.width, .a = x,
                              .b = places};
    struct fold product = {FOLD_MULTIPLY, .scale = 1, .y = y + PRODUCT * s.width, .a = x,
                           .b = places};
    run(d, &target, &s, s.part, s.target, s.target);
    d->kernels->copy_strided(d, &(struct strided){s.batch * s.places, s.width, s.part.place,
                                                  s.width, y + OF_PLACE * s.width, places});
    run(d, &difference, &s, s.part, s.target, s.of_place);
    run(d, &product, &s, s.part, s.target, s.of_place);
}

/* dx (+)= the sum over places of the gradients through x itself, the difference and the product */
static void back_target(const struct node *node, struct device *d)
{
    const struct strides s = strides_of(node);
    const float *dy = node->output.gradient;
    float *dx = node->input[TARGET]->gradient;
    if (!dx) return;
    struct fold alone = {FOLD_ADD, .add = node->add[TARGET],      .scale = 1, .y = dx,
                         .a = dy,  .b = dy + DIFFERENCE * s.width};
    struct fold product = {FOLD_MULTIPLY,
                           .add = true,
                           .scale = 1,
                           .y = dx,
                           .a = dy + PRODUCT * s.width,
                           .b = node->input[PLACES]->value};
    run(d, &alone, &s, s.target, s.part, s.part);
    run(d, &product, &s, s.target, s.part, s.of_place);
}

static void back_places(const struct node *node, struct device *d)
{
    const struct strides s = strides_of(node);
    const float *dy = node->output.gradient;
    float *dx = node->input[PLACES]->gradient;
    if (!dx) return;
    struct fold alone = {
        FOLD_SUBTRACT, .add = node->add[PLACES],     .scale = 1,
        .y = dx,       .a = dy + OF_PLACE * s.width, .b = dy + DIFFERENCE * s.width};
    struct fold product = {FOLD_MULTIPLY,
                           .add = true,
                           .scale = 1,
                           .y = dx,
                           .a = dy + PRODUCT * s.width,
                           .b = node->input[TARGET]->value};
    run(d, &alone, &s, s.of_place, s.part, s.part);
    run(d, &product, &s, s.of_place, s.part, s.target);
}

static void backward(const struct node *node, struct device *d)
{
    back_target(node, d);
    back_places(node, d);
}

/* One place, and several; wider than a vector register */
static const struct op_case cases[] = {
    {"{}", 2, {{2, {3, 4}}, {3, {3, 5, 4}}}},
    {"{}", 2, {{2, {2, 17}}, {3, {2, 1, 17}}}},
    {0},
};

const struct op op_compare = {
    .object = {"compare", "a vector and each vector of a list with their difference and product: "
                          "[batch, positions, 4 width]"},
    .inputs_min = 2,
    .inputs_max = 2,
    .reads_input = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
