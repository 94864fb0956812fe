/* conv.c - convolution by oneDNN.
 *
 * Activations have our layout [batch, y, x, channel] at oneDNN's borders; kernels are reordered in
 * each call from [ky, kx, in, out] to what the generated code wants, because the weights change
 * with every step. A plan holds one stage for each direction: a few primitives (reorder,
 * convolution, reorder back) with their arguments. Each call sets the caller's memory in the
 * arguments. For a convolution in bf16 the reorders round its operands; its results are float32.
 */
#include <stdlib.h>

#include "kernels/cpu/bf16.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/onednn.h"

enum { STEPS_MAX = 5, ARGUMENTS_MAX = 5, MEMORIES_MAX = 64, FEW_CHANNELS = 32 };

/* The tensors that the caller passes in */
enum border { SOURCE, WEIGHTS, BIAS, DESTINATION, BORDERS };

/* A primitive and its arguments, as dnnl_primitive_execute takes them */
struct primitive_step {
    dnnl_primitive_t primitive;
    int count;
    dnnl_exec_arg_t arguments[ARGUMENTS_MAX];
};

struct stage {
    struct primitive_step steps[STEPS_MAX];
    int count;
    dnnl_memory_t border[BORDERS];
};

struct conv_argument {
    enum border border;
    int id; /* oneDNN's; 0 ends a list */
    bool is_result;
};

enum direction { FORWARD, FORWARD_RELU, BACK_DATA, BACK_KERNEL, DIRECTIONS };

struct conv2d_plan {
    struct conv2d shape;
    bool is_rounded;      /* operands are rounded to bf16 */
    dnnl_engine_t engine; /* the device's */
    struct stage stages[DIRECTIONS];
    dnnl_memory_t memories[MEMORIES_MAX]; /* all of the stages, to free */
    void *buffers[MEMORIES_MAX];          /* memory of those that are not the caller's */
    int memory_count, buffer_count;
    float *no_bias; /* [out_channels] of zeros */
    float *result;  /* a gradient, before it is added */
};

/* Our layouts; what the convolution reads and what it writes, the kernel with its layout left to
 * oneDNN; and the window */
struct conv_description {
    dnnl_memory_desc_t border[BORDERS], read[BORDERS], written[BORDERS];
    dnnl_dims_t strides, dilates, before, after;
};

/* --- what is wanted --- */

/* A tensor in our layout, and in the convolution's */
static err describe_border(struct conv_description *s, enum border border, const dnnl_dims_t dims,
                           dnnl_data_type_t read)
{
    static const dnnl_format_tag_t ours[BORDERS] = {
        [SOURCE] = dnnl_nhwc, [WEIGHTS] = dnnl_hwio, [BIAS] = dnnl_a, [DESTINATION] = dnnl_nhwc};
    const int axes = border == BIAS ? 1 : 4;
    const dnnl_format_tag_t theirs = border == WEIGHTS ? dnnl_format_tag_any : ours[border];
    TRY(onednn_layout_open(&s->border[border], axes, dims, dnnl_f32, ours[border]));
    TRY(onednn_layout_open(&s->read[border], axes, dims, read, theirs));
    return onednn_layout_open(&s->written[border], axes, dims, dnnl_f32, theirs);
}

static err describe(const struct conv2d_plan *p, struct conv_description *ret)
{
    const struct conv2d *c = &p->shape;
    const struct window2d *w = &c->window;
    const dnnl_dims_t source = {w->batch, c->in_channels, w->in_y, w->in_x};
    const dnnl_dims_t destination = {w->batch, c->out_channels, w->out_y, w->out_x};
    const dnnl_dims_t weights = {c->out_channels, c->in_channels, w->kernel_y, w->kernel_x};
    const dnnl_dims_t bias = {c->out_channels};
    const dnnl_data_type_t read = p->is_rounded ? dnnl_bf16 : dnnl_f32;
    TRY(describe_border(ret, SOURCE, source, read));
    TRY(describe_border(ret, DESTINATION, destination, read));
    TRY(describe_border(ret, WEIGHTS, weights, read));
    TRY(describe_border(ret, BIAS, bias, dnnl_f32));

    const dnnl_dim_t pairs[4][2] = {
        {w->stride_y, w->stride_x},
        {w->dilation_y - 1, w->dilation_x - 1}, /* oneDNN counts the gaps */
        {w->pad_top, w->pad_left},
        {w->pad_bottom, w->pad_right}};
    dnnl_dim_t *const at[4] = {ret->strides, ret->dilates, ret->before, ret->after};
    for (int i = 0; i < 4; i++) memcpy(at[i], pairs[i], sizeof pairs[i]);
    return OK;
}

static void description_close(struct conv_description *s)
{
    for (int i = 0; i < BORDERS; i++) {
        onednn_layout_close(&s->border[i]);
        onednn_layout_close(&s->read[i]);
        onednn_layout_close(&s->written[i]);
    }
}

/* We provide the scratch memory, and relu may follow the convolution. (oneDNN's relu turns NaN into
 * 0; the gradient of the kernel, 0 times NaN, still shows it.) */
static err scratchpad_attributes(bool relu, dnnl_primitive_attr_t *ret)
{
    dnnl_post_ops_t after = NULL;
    TRY(onednn_check(dnnl_primitive_attr_create(ret), "dnnl_primitive_attr_create"));
    dnnl_status_t status = dnnl_primitive_attr_set_scratchpad_mode(*ret, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && relu) status = dnnl_post_ops_create(&after);
    if (status == dnnl_success && relu) status = onednn_append_relu(after);
    if (status == dnnl_success && relu) status = dnnl_primitive_attr_set_post_ops(*ret, after);
    if (after) (void)dnnl_post_ops_destroy(after);
    if (status == dnnl_success) return OK;
    (void)dnnl_primitive_attr_destroy(*ret);
    return onednn_check(status, "dnnl_post_ops");
}

static bool is_named(const_dnnl_primitive_desc_t pd, const char *prefix)
{
    const char *name = NULL;
    return pd &&
           dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) == dnnl_success &&
           strncmp(name, prefix, strlen(prefix)) == 0;
}

/* oneDNN prefers its first implementation. With few input channels the second one, code generated
 * for the shape, is a fifth faster than the first, which uses small products: batch 32, 3x3, 16 to
 * 16 channels at 32x32: 1.15 and 1.35 ms; 16 to 32 with stride 2: 0.43 and 0.58 ms. From 32 on they
 * are equal. */
static dnnl_primitive_desc_t choose(const struct onednn_convolution *wanted, int64_t in_channels,
                                    dnnl_primitive_desc_t first)
{
    dnnl_primitive_desc_t second;
    if (in_channels >= FEW_CHANNELS || !is_named(first, "brgconv:")) return first;
    if (onednn_convolution_open(wanted, 1, &second) != dnnl_success) return first;
    const bool is_better = is_named(second, "jit:");
    (void)dnnl_primitive_desc_destroy(is_better ? first : second);
    return is_better ? second : first;
}

/* The convolution's layout of a tensor */
static onednn_layout theirs_of(const struct conv_description *s, enum border border,
                               enum border result)
{
    return onednn_layout_of(border == result ? &s->written[border] : &s->read[border]);
}

/* hint: the forward convolution, for the backward ones */
static err primitive_desc(const struct conv2d_plan *p, enum direction direction,
                          const struct conv_description *s, dnnl_primitive_desc_t hint,
                          dnnl_primitive_desc_t *ret)
{
    static const enum onednn_direction theirs[DIRECTIONS] = {
        [FORWARD] = ONEDNN_FORWARD,
        [FORWARD_RELU] = ONEDNN_FORWARD,
        [BACK_DATA] = ONEDNN_BACK_DATA,
        [BACK_KERNEL] = ONEDNN_BACK_WEIGHTS,
    };
    static const enum border results[DIRECTIONS] = {DESTINATION, DESTINATION, SOURCE, WEIGHTS};
    const enum border result = results[direction];
    dnnl_primitive_attr_t attributes;
    TRY(scratchpad_attributes(direction == FORWARD_RELU, &attributes));
    const struct onednn_convolution wanted = {
        .direction = theirs[direction],
        .engine = p->engine,
        .source = theirs_of(s, SOURCE, result),
        .weights = theirs_of(s, WEIGHTS, result),
        .bias = theirs_of(s, BIAS, result),
        .destination = theirs_of(s, DESTINATION, result),
        .strides = s->strides,
        .dilates = s->dilates,
        .before = s->before,
        .after = s->after,
        .attributes = attributes,
        .hint = hint,
    };
    const dnnl_status_t status = onednn_convolution_open(&wanted, 0, ret);
    if (status == dnnl_success && !p->is_rounded)
        *ret = choose(&wanted, p->shape.in_channels, *ret);
    (void)dnnl_primitive_attr_destroy(attributes);
    return onednn_check(status, "oneDNN's convolution");
}

/* --- making a stage of it --- */

static err new_memory(struct conv2d_plan *p, onednn_layout desc, bool with_buffer,
                      dnnl_memory_t *ret)
{
    void *buffer = DNNL_MEMORY_NONE;
    if (with_buffer) {
        size_t bytes = dnnl_memory_desc_get_size(desc);
        buffer = cpu_memory(bytes);
        if (!buffer) return fail(ERR_MEMORY, "no memory for %zu bytes of a convolution", bytes);
        p->buffers[p->buffer_count++] = buffer;
    }
    TRY(onednn_check(dnnl_memory_create(ret, desc, p->engine, buffer), "dnnl_memory_create"));
    p->memories[p->memory_count++] = *ret;
    return OK;
}

static void add_argument(struct primitive_step *step, int id, dnnl_memory_t memory)
{
    step->arguments[step->count++] = (dnnl_exec_arg_t){id, memory};
}

/* Gives every primitive its scratch memory here, so that none is allocated later. */
static err add_primitive(struct conv2d_plan *p, struct primitive_step *step,
                         const_dnnl_primitive_desc_t pd)
{
    const onednn_layout scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    if (scratch && dnnl_memory_desc_get_size(scratch) > 0) {
        dnnl_memory_t memory;
        TRY(new_memory(p, scratch, true, &memory));
        add_argument(step, DNNL_ARG_SCRATCHPAD, memory);
    }
    return onednn_check(dnnl_primitive_create(&step->primitive, pd), "dnnl_primitive_create");
}

struct layout_move {
    onednn_layout from_desc, to_desc;
    dnnl_memory_t from, to;
};

static err add_reorder(struct conv2d_plan *p, struct primitive_step *step,
                       const struct layout_move *m)
{
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t pd;
    TRY(scratchpad_attributes(false, &attributes));
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&pd, m->from_desc, p->engine,
                                                              m->to_desc, p->engine, attributes);
    (void)dnnl_primitive_attr_destroy(attributes);
    TRY(onednn_check(status, "dnnl_reorder_primitive_desc_create"));
    add_argument(step, DNNL_ARG_FROM, m->from);
    add_argument(step, DNNL_ARG_TO, m->to);
    err e = add_primitive(p, step, pd);
    (void)dnnl_primitive_desc_destroy(pd);
    return e;
}

/* Makes the border's memory and, where the convolution wants another layout, that and the reorder
 * into it or, for a result, out of it. theirs is the convolution's. */
static err attach(struct conv2d_plan *p, struct stage *stage, const struct conv_argument *argument,
                  const struct layout_move *layouts, dnnl_memory_t *ret_inner)
{
    const onednn_layout ours = layouts->from_desc, theirs = layouts->to_desc;
    dnnl_memory_t *outer = &stage->border[argument->border];
    TRY(new_memory(p, ours, false, outer));
    *ret_inner = *outer;
    if (dnnl_memory_desc_equal(ours, theirs)) return OK;

    TRY(new_memory(p, theirs, true, ret_inner));
    struct layout_move in = {ours, theirs, *outer, *ret_inner},
                       out = {theirs, ours, *ret_inner, *outer};
    return add_reorder(p, &stage->steps[stage->count++], argument->is_result ? &out : &in);
}

/* The arguments of each direction; the result is the last, so that its reorder comes last. */
static const struct conv_argument arguments_of[DIRECTIONS][ARGUMENTS_MAX] = {
    [FORWARD] = {{SOURCE, DNNL_ARG_SRC},
                 {WEIGHTS, DNNL_ARG_WEIGHTS},
                 {BIAS, DNNL_ARG_BIAS},
                 {DESTINATION, DNNL_ARG_DST, true}},
    [FORWARD_RELU] = {{SOURCE, DNNL_ARG_SRC},
                      {WEIGHTS, DNNL_ARG_WEIGHTS},
                      {BIAS, DNNL_ARG_BIAS},
                      {DESTINATION, DNNL_ARG_DST, true}},
    [BACK_DATA] = {{DESTINATION, DNNL_ARG_DIFF_DST},
                   {WEIGHTS, DNNL_ARG_WEIGHTS},
                   {SOURCE, DNNL_ARG_DIFF_SRC, true}},
    [BACK_KERNEL] = {{SOURCE, DNNL_ARG_SRC},
                     {DESTINATION, DNNL_ARG_DIFF_DST},
                     {WEIGHTS, DNNL_ARG_DIFF_WEIGHTS, true}},
};

static err fill_stage(struct conv2d_plan *p, enum direction direction,
                      const struct conv_description *s, dnnl_primitive_desc_t pd)
{
    struct stage *stage = &p->stages[direction];
    struct primitive_step convolution = {0};
    for (const struct conv_argument *a = arguments_of[direction]; a->id; a++) {
        struct primitive_step *place = &stage->steps[stage->count];
        if (a->is_result) stage->count++; /* the convolution comes before this reorder */
        struct layout_move layouts = {
            .from_desc = onednn_layout_of(&s->border[a->border]),
            .to_desc = dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, a->id)};
        dnnl_memory_t inner;
        TRY(attach(p, stage, a, &layouts, &inner));
        add_argument(&convolution, a->id, inner);
        if (!a->is_result) continue;
        err e = add_primitive(p, &convolution, pd);
        *place = convolution; /* even if it failed: close frees it */
        if (e) return e;
    }
    return OK;
}

/* hint: the forward direction's; NULL for the forward direction, which returns its own */
static err add_stage(struct conv2d_plan *p, enum direction direction,
                     const struct conv_description *s, dnnl_primitive_desc_t hint,
                     dnnl_primitive_desc_t *ret)
{
    dnnl_primitive_desc_t pd;
    TRY(primitive_desc(p, direction, s, hint, &pd));
    err e = fill_stage(p, direction, s, pd);
    if (!e && ret)
        *ret = pd;
    else
        (void)dnnl_primitive_desc_destroy(pd);
    return e;
}

static err add_described(struct conv2d_plan *p, const struct conv_description *s)
{
    dnnl_primitive_desc_t forward;
    TRY(add_stage(p, FORWARD, s, NULL, &forward));
    err e = add_stage(p, FORWARD_RELU, s, NULL, NULL);
    if (!e) e = add_stage(p, BACK_DATA, s, forward, NULL);
    if (!e) e = add_stage(p, BACK_KERNEL, s, forward, NULL);
    (void)dnnl_primitive_desc_destroy(forward);
    return e;
}

static err add_stages(struct conv2d_plan *p)
{
    struct conv_description s = {0};
    err e = describe(p, &s);
    if (!e) e = add_described(p, &s);
    description_close(&s);
    return e;
}

static int64_t source_count(const struct conv2d *c)
{
    return window_inputs(&c->window) * c->in_channels;
}

static int64_t destination_count(const struct conv2d *c)
{
    return window_outputs(&c->window) * c->out_channels;
}

static int64_t weights_count(const struct conv2d *c)
{
    return c->window.kernel_y * c->window.kernel_x * c->in_channels * c->out_channels;
}

/* The result is used by `add` only; until then it is address space, not memory. */
static err add_buffers(struct conv2d_plan *p)
{
    int64_t source = source_count(&p->shape), weights = weights_count(&p->shape);
    size_t bias_bytes = (size_t)p->shape.out_channels * sizeof(float);
    p->no_bias = cpu_memory(bias_bytes);
    p->result = cpu_memory((size_t)(source > weights ? source : weights) * sizeof(float));
    if (!p->no_bias || !p->result) return fail(ERR_MEMORY, "no memory for a convolution");
    memset(p->no_bias, 0, bias_bytes);
    return OK;
}

void ISA(conv2d_close)(struct device *d, struct conv2d_plan *p)
{
    if (!p) return;
    for (int i = 0; i < DIRECTIONS; i++)
        for (int j = 0; j < STEPS_MAX; j++)
            if (p->stages[i].steps[j].primitive)
                (void)dnnl_primitive_destroy(p->stages[i].steps[j].primitive);
    for (int i = 0; i < p->memory_count; i++) (void)dnnl_memory_destroy(p->memories[i]);
    for (int i = 0; i < p->buffer_count; i++) free(p->buffers[i]);
    free(p->no_bias);
    free(p->result);
    free(p);
}

/* Each number of an image is multiplied with all kernels, one of a gradient with all their weights:
 * with few of these, rounding costs more than it saves, as in the first layer of a network for grey
 * images. */
static bool rounds(const struct cpu_state *state, const struct conv2d *c)
{
    const int64_t places = c->window.kernel_y * c->window.kernel_x;
    return state->bf16 && places * c->in_channels >= BF16_USES_MIN &&
           places * c->out_channels >= BF16_USES_MIN;
}

/* Not known, and neither is the free memory. */
size_t ISA(conv2d_bytes)(struct device *d, const struct conv2d *shape)
{
    return 0;
}

err ISA(conv2d_open)(struct device *d, const struct conv2d *shape, struct conv2d_plan **ret)
{
    struct cpu_state *state = d->state;
    TRY(cpu_open_engine(state));
    struct conv2d_plan *p = calloc(1, sizeof *p);
    if (!p) return fail(ERR_MEMORY, "no memory for a convolution");
    p->shape = *shape;
    p->is_rounded = rounds(state, shape);
    p->engine = state->engine;
    library_threads(d); /* the code that is generated depends on it */
    err e = add_buffers(p);
    if (!e) e = add_stages(p);
    if (e) {
        ISA(conv2d_close)(d, p);
        return e;
    }
    *ret = p;
    return OK;
}

/* --- running it --- */

/* The caller's memory for the tensors of a direction */
struct given_borders {
    const void *at[BORDERS];
};

static void run(struct device *d, struct conv2d_plan *p, enum direction direction,
                const struct given_borders *given)
{
    struct cpu_state *state = d->state;
    struct stage *stage = &p->stages[direction];
    library_threads(d);
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < BORDERS && status == dnnl_success; i++)
        if (stage->border[i])
            status = dnnl_memory_set_data_handle(stage->border[i], (void *)given->at[i]);
    for (int i = 0; i < stage->count && status == dnnl_success; i++)
        status = dnnl_primitive_execute(stage->steps[i].primitive, state->stream,
                                        stage->steps[i].count, stage->steps[i].arguments);
    if (status == dnnl_success) status = dnnl_stream_wait(state->stream);
    cpu_note(d, status, "dnnl_primitive_execute");
}

/* Relu is part of the convolution unless the caller wants its input, too; other functions run
 * afterwards. */
void ISA(conv2d_forward)(struct device *d, struct conv2d_plan *p, float *y, const float *x,
                         const float *kernel, const float *bias, float *pre, enum activation kind,
                         float alpha)
{
    const bool is_fused = kind == ACTIVATION_RELU && !pre;
    float *out = pre ? pre : y;
    run(d, p, is_fused ? FORWARD_RELU : FORWARD,
        &(struct given_borders){{[SOURCE] = x,
                                 [WEIGHTS] = kernel,
                                 [BIAS] = bias ? bias : p->no_bias,
                                 [DESTINATION] = out}});
    if (!is_fused) d->kernels->activate(d, y, out, kind, alpha, destination_count(&p->shape));
}

void ISA(conv2d_back_data)(struct device *d, struct conv2d_plan *p, float *dx, const float *dy,
                           const float *kernel, bool add)
{
    run(d, p, BACK_DATA,
        &(struct given_borders){
            {[SOURCE] = add ? p->result : dx, [WEIGHTS] = kernel, [DESTINATION] = dy}});
    if (add) d->kernels->axpy(d, dx, 1.0f, p->result, source_count(&p->shape));
}

void ISA(conv2d_back_kernel)(struct device *d, struct conv2d_plan *p, float *dkernel,
                             const float *dy, const float *x, bool add)
{
    run(d, p, BACK_KERNEL,
        &(struct given_borders){
            {[SOURCE] = x, [WEIGHTS] = add ? p->result : dkernel, [DESTINATION] = dy}});
    if (add) d->kernels->axpy(d, dkernel, 1.0f, p->result, weights_count(&p->shape));
}
