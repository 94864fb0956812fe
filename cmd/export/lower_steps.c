/* lower_steps.c - recurrent ops: the steps of a sequence are unrolled. */
#include <string.h>

#include "cmd/export/lower.h"

enum { STEPS_MAX = 1024 }; /* of a sequence: each is about twenty operations */
enum { OUTPUT_LAST = 1, STATE_CARRIED = 1 };
enum { MASK, INITIAL_STATE, CELL_OR_ATTENTION }; /* named inputs of both ops */

/* A recurrent cell while its steps are unrolled; each int is a value of the program, -1: none */
struct cell_steps {
    struct lowering *l;
    struct program *p;
    int64_t units, time;
    int mask;      /* [1, time], as given */
    int there;     /* 1 where the mask is above 0, else 0 */
    int attention; /* [1, time] */
    int state, cell;
};

/* A kernel split by rows: the product of x with its own, for all steps, and the state's rows */
struct lowered_product {
    int sums; /* [1, time, width] */
    int of_state;
    int64_t width;
};

/* ---- parts of values ---- */

/* `count` numbers of the last axis, from `first` on */
static int part_of(struct program *p, int x, int64_t first, int64_t count)
{
    struct program_value y = {
        .primitive = PRIMITIVE_SLICE, .inputs = {x}, .input_count = 1, .shape = p->values[x].shape};
    y.shape.dim[y.shape.rank - 1] = count;
    y.axes[y.shape.rank - 1] = first;
    return program_add(p, &y);
}

/* Step t: [1, width] of [1, time, width], [1, 1] of [1, time] */
static int step_of(struct program *p, int x, int64_t t)
{
    const struct shape all = p->values[x].shape;
    const int64_t width = all.rank == 3 ? all.dim[2] : 1;
    struct program_value y = {.primitive = PRIMITIVE_SLICE,
                              .inputs = {x},
                              .input_count = 1,
                              .shape = all,
                              .axes = {0, t, 0}};
    y.shape.dim[1] = 1;
    return program_reshape(p, program_add(p, &y), &(struct shape){2, {1, width}});
}

/* Rows of a kernel, as a separate constant */
static int rows_of(struct lowering *l, int kernel, const char *what, int64_t first, int64_t rows)
{
    const struct program_value *k = &l->program->values[kernel];
    const struct shape shape = {2, {rows, k->shape.dim[1]}};
    return lower_constant(l, arena_format(l->program->arena, "%s/%s", k->name, what), &shape,
                          k->data + first * k->shape.dim[1]);
}

/* The product with the kernel `param`; adds the bias, if any, which is the next parameter. */
static err open_product(struct lowering *l, int x, int param, struct lowered_product *ret)
{
    struct program *p = l->program;
    const int64_t inputs = p->values[x].shape.dim[2];
    int kernel, bias;
    TRY(lower_param(l, param, &kernel));
    const struct shape shape = p->values[kernel].shape;
    ret->width = shape.dim[1];
    ret->of_state = rows_of(l, kernel, "state", inputs, shape.dim[0] - inputs);
    ret->sums = program_matmul(p, x, rows_of(l, kernel, "inputs", 0, inputs));
    if (!lower_bool(l->node, "use_bias")) return OK;
    TRY(lower_param(l, param + 1, &bias));
    ret->sums = program_two(p, PRIMITIVE_ADD, ret->sums, bias);
    return OK;
}

/* The sums of step t plus the product with the state */
static int sums_of(const struct cell_steps *s, const struct lowered_product *of, int64_t t,
                   int state)
{
    const int sums = step_of(s->p, of->sums, t);
    if (state < 0) return sums;
    return program_two(s->p, PRIMITIVE_ADD, sums, program_matmul(s->p, state, of->of_state));
}

static int gate(const struct cell_steps *s, int sums, int which)
{
    return program_one(s->p, PRIMITIVE_SIGMOID, part_of(s->p, sums, which * s->units, s->units));
}

/* share a + (1 - share) b; b -1: zeros */
static int mixed(struct program *p, int share, int a, int b)
{
    const int of_a = program_two(p, PRIMITIVE_MULTIPLY, share, a);
    if (b < 0) return of_a;
    const int rest = program_two(p, PRIMITIVE_SUBTRACT, program_number(p, 1), share);
    return program_two(p, PRIMITIVE_ADD, of_a, program_two(p, PRIMITIVE_MULTIPLY, rest, b));
}

/* `now`, or `before` if the mask of step t is 0 */
static int kept(const struct cell_steps *s, int64_t t, int now, int before)
{
    return s->there < 0 ? now : mixed(s->p, step_of(s->p, s->there, t), now, before);
}

/* ---- cells ---- */

static void step_lstm(struct cell_steps *s, const struct lowered_product *of, int64_t t)
{
    struct program *p = s->p;
    const float forget = (float)lower_float(s->l->node, "forget_bias");
    const int sums = sums_of(s, of, t, s->state);
    const int in = gate(s, sums, 0), out = gate(s, sums, 3);
    const int more = program_one(p, PRIMITIVE_TANH, part_of(p, sums, s->units, s->units));
    int cell = program_two(p, PRIMITIVE_MULTIPLY, in, more);
    if (s->cell >= 0) {
        const int raw = part_of(p, sums, 2 * s->units, s->units);
        const int biased = program_two(p, PRIMITIVE_ADD, raw, program_number(p, forget));
        const int left =
            program_two(p, PRIMITIVE_MULTIPLY, program_one(p, PRIMITIVE_SIGMOID, biased), s->cell);
        cell = program_two(p, PRIMITIVE_ADD, left, cell);
    }
    const int state = program_two(p, PRIMITIVE_MULTIPLY, out, program_one(p, PRIMITIVE_TANH, cell));
    s->cell = kept(s, t, cell, s->cell);
    s->state = kept(s, t, state, s->state);
}

/* of: the reset and update gates, and the candidate */
static void step_gru(struct cell_steps *s, const struct lowered_product of[2], int64_t t)
{
    struct program *p = s->p;
    const int sums = sums_of(s, &of[0], t, s->state);
    int update = gate(s, sums, 1), reset = -1;
    if (s->state >= 0) reset = program_two(p, PRIMITIVE_MULTIPLY, gate(s, sums, 0), s->state);
    const int candidate = program_one(p, PRIMITIVE_TANH, sums_of(s, &of[1], t, reset));
    const int one = program_number(p, 1);
    if (s->attention >= 0) {
        const int rest = program_two(p, PRIMITIVE_SUBTRACT, one, step_of(p, s->attention, t));
        update = program_two(p, PRIMITIVE_MULTIPLY, update, rest);
    }
    const int fresh = program_two(p, PRIMITIVE_SUBTRACT, one, update);
    s->state = kept(s, t, mixed(p, fresh, candidate, s->state), s->state);
}

/* ---- the op ---- */

/* [1, time, units]; 0 at masked steps */
static int all_states(struct cell_steps *s, const int *states)
{
    int *each = arena_array(s->p->arena, (size_t)s->time, sizeof *each);
    for (int64_t t = 0; t < s->time; t++)
        each[t] = program_reshape(s->p, states[t], &(struct shape){3, {1, 1, s->units}});
    const int all = program_concat(s->p, each, (int)s->time, 1);
    if (s->mask < 0) return all;
    const int mask = program_reshape(s->p, s->mask, &(struct shape){3, {1, s->time, 1}});
    return program_two(s->p, PRIMITIVE_MULTIPLY, all, mask);
}

static err open_steps(struct lowering *l, bool is_lstm, struct cell_steps *s)
{
    *s = (struct cell_steps){.l = l, .p = l->program, .there = -1, .attention = -1, .cell = -1};
    s->units = lower_int(l->node, "units");
    s->time = l->node->input[0]->shape.dim[1];
    if (lower_enum(l->node, "state") == STATE_CARRIED)
        return lower_refuse("its state is carried from one batch to the next, and a request has no "
                            "batch before it: nodes before it can be (--outputs), or train with "
                            "\"state\": \"zero\"");
    if (s->time > STEPS_MAX)
        return fail(ERR_INPUT, "cannot be exported: each of %lld steps is written out, at most %d",
                    (long long)s->time, (int)STEPS_MAX);
    TRY(lower_named(l, MASK, &s->mask));
    TRY(lower_named(l, INITIAL_STATE, &s->state));
    TRY(lower_named(l, CELL_OR_ATTENTION, is_lstm ? &s->cell : &s->attention));
    if (s->mask >= 0) s->there = program_one(s->p, PRIMITIVE_POSITIVE, s->mask);
    return OK;
}

err lower_steps(struct lowering *l, int *ret)
{
    const bool is_lstm = strcmp(l->node->op->object.name, "lstm") == 0;
    const int candidate = lower_bool(l->node, "use_bias") ? 2 : 1;
    struct cell_steps s;
    struct lowered_product of[2];
    int x;
    TRY(open_steps(l, is_lstm, &s));
    TRY(lower_input(l, 0, &x));
    TRY(open_product(l, x, 0, &of[0]));
    if (!is_lstm) TRY(open_product(l, x, candidate, &of[1]));
    int *states = arena_array(s.p->arena, (size_t)s.time, sizeof *states);
    for (int64_t t = 0; t < s.time; t++) {
        if (is_lstm)
            step_lstm(&s, &of[0], t);
        else
            step_gru(&s, of, t);
        states[t] = s.state;
    }
    *ret = lower_enum(l->node, "output") == OUTPUT_LAST ? s.state : all_states(&s, states);
    return OK;
}
