/* bf16.c - see bf16.h. */
#include "kernels/cpu/bf16.h"

#include <stdlib.h>

#include "kernels/cpu/onednn.h"

/* Cached shapes; a model has a few dozen. With more, the oldest are replaced. */
enum { PRODUCTS_MAX = 128, ARGUMENTS = 4 };

enum { A, B, C, SCRATCH };

struct bf16_product {
    struct bf16_shape shape;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[ARGUMENTS];
};

struct grown_memory {
    void *at;
    size_t bytes;
};

struct bf16 {
    struct bf16_product products[PRODUCTS_MAX];
    int count, next; /* next: to be replaced when all are used */
    struct grown_memory memory[ARGUMENTS];
};

err bf16_open(struct bf16 **ret)
{
    *ret = calloc(1, sizeof **ret);
    return *ret ? OK : fail(ERR_MEMORY, "no memory for products in bf16");
}

static void drop(struct bf16_product *p)
{
    if (p->primitive) (void)dnnl_primitive_destroy(p->primitive);
    for (int i = 0; i < ARGUMENTS; i++)
        if (p->memory[i]) (void)dnnl_memory_destroy(p->memory[i]);
    *p = (struct bf16_product){0};
}

void bf16_close(struct bf16 *b)
{
    if (!b) return;
    for (int i = 0; i < b->count; i++) drop(&b->products[i]);
    for (int i = 0; i < ARGUMENTS; i++) free(b->memory[i].at);
    free(b);
}

/* Does not keep the content. */
static bool grow(struct grown_memory *g, size_t bytes)
{
    if (bytes <= g->bytes) return true;
    free(g->at);
    g->at = cpu_memory(bytes);
    g->bytes = g->at ? bytes : 0;
    return g->at != NULL;
}

bool bf16_operands(struct bf16 *b, const struct bf16_shape *s, uint16_t **ret_a, uint16_t **ret_b)
{
    if (!grow(&b->memory[A], (size_t)(s->m * s->k) * sizeof(uint16_t)) ||
        !grow(&b->memory[B], (size_t)(s->k * s->n) * sizeof(uint16_t)))
        return false;
    *ret_a = b->memory[A].at;
    *ret_b = b->memory[B].at;
    return true;
}

/* --- what is made of a shape --- */

struct layouts {
    dnnl_memory_desc_t of[SCRATCH];
};

static err describe(const struct bf16_shape *s, struct layouts *ret)
{
    const dnnl_dims_t a = {s->m, s->k}, b = {s->k, s->n}, c = {s->m, s->n};
    TRY(onednn_layout_open(&ret->of[A], 2, a, dnnl_bf16, dnnl_ab));
    TRY(onednn_layout_open(&ret->of[B], 2, b, dnnl_bf16, s->transpose_b ? dnnl_ba : dnnl_ab));
    return onednn_layout_open(&ret->of[C], 2, c, dnnl_f32, dnnl_ab);
}

/* We provide the scratch memory. */
static err attributes_of(const struct bf16_shape *s, dnnl_primitive_attr_t *ret)
{
    dnnl_post_ops_t after = NULL;
    TRY(onednn_check(dnnl_primitive_attr_create(ret), "dnnl_primitive_attr_create"));
    dnnl_status_t status = dnnl_primitive_attr_set_scratchpad_mode(*ret, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && s->add) status = dnnl_post_ops_create(&after);
    if (status == dnnl_success && s->add) status = onednn_append_sum(after);
    if (status == dnnl_success && s->add) status = dnnl_primitive_attr_set_post_ops(*ret, after);
    if (after) (void)dnnl_post_ops_destroy(after);
    if (status == dnnl_success) return OK;
    (void)dnnl_primitive_attr_destroy(*ret);
    return onednn_check(status, "dnnl_post_ops");
}

static err open_desc(dnnl_engine_t engine, const struct bf16_shape *s, const struct layouts *l,
                     dnnl_primitive_desc_t *ret)
{
    dnnl_primitive_attr_t attributes;
    TRY(attributes_of(s, &attributes));
    const dnnl_status_t status =
        onednn_matmul_open(engine, onednn_layout_of(&l->of[A]), onednn_layout_of(&l->of[B]),
                           onednn_layout_of(&l->of[C]), attributes, ret);
    (void)dnnl_primitive_attr_destroy(attributes);
    return onednn_check(status, "oneDNN's product in bf16");
}

static err fill(struct bf16 *b, dnnl_engine_t engine, struct bf16_product *p,
                const struct layouts *l, const_dnnl_primitive_desc_t pd)
{
    const onednn_layout layouts[ARGUMENTS] = {
        onednn_layout_of(&l->of[A]), onednn_layout_of(&l->of[B]), onednn_layout_of(&l->of[C]),
        dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0)};
    if (!grow(&b->memory[SCRATCH], dnnl_memory_desc_get_size(layouts[SCRATCH])))
        return fail(ERR_MEMORY, "no memory for products in bf16");
    for (int i = 0; i < ARGUMENTS; i++)
        TRY(onednn_check(dnnl_memory_create(&p->memory[i], layouts[i], engine, DNNL_MEMORY_NONE),
                         "dnnl_memory_create"));
    return onednn_check(dnnl_primitive_create(&p->primitive, pd), "dnnl_primitive_create");
}

static err make_described(struct cpu_state *state, struct bf16_product *p, const struct layouts *l)
{
    dnnl_primitive_desc_t pd;
    TRY(open_desc(state->engine, &p->shape, l, &pd));
    const err e = fill(state->bf16, state->engine, p, l, pd);
    (void)dnnl_primitive_desc_destroy(pd);
    return e;
}

static err make(struct cpu_state *state, const struct bf16_shape *s, struct bf16_product *p)
{
    struct layouts l = {0};
    TRY(cpu_open_engine(state));
    p->shape = *s;
    err e = describe(s, &l);
    if (!e) e = make_described(state, p, &l);
    for (int i = 0; i < SCRATCH; i++) onednn_layout_close(&l.of[i]);
    if (e) drop(p);
    return e;
}

/* --- running it --- */

static bool is_same(const struct bf16_shape *a, const struct bf16_shape *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->transpose_b == b->transpose_b &&
           a->add == b->add;
}

/* NULL: it could not be created; the failure is noted. */
static struct bf16_product *product_of(struct device *d, const struct bf16_shape *s)
{
    struct cpu_state *state = d->state;
    struct bf16 *b = state->bf16;
    for (int i = 0; i < b->count; i++)
        if (is_same(&b->products[i].shape, s)) return &b->products[i];
    if (b->count < PRODUCTS_MAX) b->count++;
    struct bf16_product *p = &b->products[b->next];
    b->next = (b->next + 1) % PRODUCTS_MAX;
    drop(p);
    const err e = make(state, s, p);
    if (e)
        cpu_note(d, e == ERR_MEMORY ? dnnl_out_of_memory : dnnl_runtime_error,
                 "oneDNN's product in bf16");
    return e ? NULL : p;
}

void bf16_multiply(struct device *d, const struct bf16_shape *s, float *c)
{
    static const int arguments[ARGUMENTS] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST,
                                             DNNL_ARG_SCRATCHPAD};
    struct cpu_state *state = d->state;
    struct bf16 *b = state->bf16;
    library_threads(d); /* the generated code depends on it */
    const struct bf16_product *p = product_of(d, s);
    if (!p) return;
    void *const at[ARGUMENTS] = {b->memory[A].at, b->memory[B].at, c, b->memory[SCRATCH].at};
    dnnl_exec_arg_t given[ARGUMENTS];
    dnnl_status_t status = dnnl_success;
    for (int i = 0; i < ARGUMENTS && status == dnnl_success; i++) {
        status = dnnl_memory_set_data_handle(p->memory[i], at[i]);
        given[i] = (dnnl_exec_arg_t){arguments[i], p->memory[i]};
    }
    if (status == dnnl_success)
        status = dnnl_primitive_execute(p->primitive, state->stream, ARGUMENTS, given);
    if (status == dnnl_success) status = dnnl_stream_wait(state->stream);
    cpu_note(d, status, "oneDNN's product in bf16");
}
