/* sampled_logits: a layer of many classes of which training computes few: the logits of each
 * example's label and of classes drawn for the batch.
 *
 * Training: y [batch, 1 + sampled], the label's logit first; from each the logarithm of its class's
 * expected count in the draw is subtracted. A drawn class that is the label of an example has no
 * logit there (tf.nn.sampled_softmax_loss, tf.nn.nce_loss). Otherwise y is [batch, classes].
 * Weights and biases are tables; a batch brings the rows of its labels and of the drawn classes.
 */
#include <inttypes.h>
#include <math.h>

#include "core/ops/algebra/loops.h"
#include "core/ops/sparse/combine.h"
#include "core/ops/sparse/sampler.h"

enum { CLASSES_MAX = 1 << 24, SAMPLED_MAX = 1 << 20 };
static const float NO_LOGIT = -1e4f; /* e to the power of that is 0 */

struct attributes {
    int64_t classes, sampled;
    int sampler; /* enum sampler_kind */
    bool unique, remove_accidental_hits, bias;
    double distortion;
    struct floats unigrams;
    const char *label;
    struct variant initializer;
};

static const struct field fields[] = {
    FIELD_OF("classes", INT, struct attributes, classes, .min = 2, .max = CLASSES_MAX,
             .help = "number of classes; labels are below it"),
    FIELD_OF("sampled", INT, struct attributes, sampled, .fallback = "64", .min = 1,
             .max = SAMPLED_MAX,
             .help = "number of classes drawn per batch, in addition to its labels (num_sampled)"),
    FIELD_OF("sampler", ENUM, struct attributes, sampler, .fallback = "\"log_uniform\"",
             .choices = sampler_names,
             .help = "log_uniform: class k has probability log((k + 2) / (k + 1)) / log(classes + "
                     "1), for classes sorted by falling frequency; unigram: by the frequency of "
                     "the class to the power of distortion; uniform: all classes alike"),
    FIELD_OF("unique", BOOL, struct attributes, unique, .fallback = "true",
             .help = "draw no class twice per batch"),
    FIELD_OF(
        "distortion", FLOAT, struct attributes, distortion, .fallback = "0.75", .max = 10,
        .help = "unigram: exponent of the frequency; 1: as it is, 0: all classes that occur alike"),
    FIELD_OF("unigrams", FLOATS, struct attributes, unigrams, .fallback = "[]", .max = 1e18,
             .count_max = CLASSES_MAX,
             .help =
                 "unigram: frequency of each class; none: counted in the data, for text formats"),
    FIELD_OF("remove_accidental_hits", BOOL, struct attributes, remove_accidental_hits,
             .fallback = "true",
             .help = "ignore drawn classes that are the label of an example; TensorFlow's default "
                     "is true for sampled_softmax, false for nce"),
    FIELD_OF("bias", BOOL, struct attributes, bias, .fallback = "true",
             .help = "add a trained bias per class, initially 0"),
    FIELD_OF("label", STRING, struct attributes, label, .fallback = "null",
             .help = "name of the label, among the source's \"labels\", whose classes these are; "
                     "null: the only one"),
    FIELD_OF("initializer", VARIANT, struct attributes, initializer, .fallback = "null",
             .kinds = &initializer_kinds,
             .help =
                 "initializer of the weights; null: truncated_normal with stddev 1 / sqrt(inputs)"),
    {0},
};

/* Made inputs; an evaluation has only SAMPLED, with all classes. */
enum { SAMPLED, LABELS, LOG_SAMPLED, LOG_LABELS };
enum { ROWS, BIASES, PRODUCTS }; /* saved */

static int64_t batch_of(const struct node *node)
{
    return node->output.shape.dim[0];
}

static int64_t inputs_of(const struct node *node)
{
    return node->input[0]->shape.dim[1];
}

static int64_t sampled_of(const struct node *node)
{
    return node->making.inputs[SAMPLED]->tensor.shape.dim[0];
}

/* ---- made inputs ---- */

static void make_of_training(const struct node *node, const struct batch *batch, uint64_t draw,
                             void *const *at)
{
    const struct sampler *sampler = node->making.by;
    const int32_t *labels = batch->columns[node->making.label_column].at;
    const int64_t sampled = sampled_of(node);
    int64_t *classes = at[SAMPLED], *places = at[LABELS];
    float *log_sampled = at[LOG_SAMPLED], *log_labels = at[LOG_LABELS];
    const struct drawn drawn = sampler_draw(sampler, node->key, draw, sampled, classes);
    for (int64_t i = 0; i < sampled; i++)
        log_sampled[i] = sampler_log_expected(sampler, &drawn, classes[i]);
    for (int64_t i = 0; i < batch->rows; i++) {
        const float log_label = sampler_log_expected(sampler, &drawn, labels[i]);
        places[i] = labels[i];
        /* a class that never occurs is never drawn: no correction */
        log_labels[i] = isfinite(log_label) ? log_label : 0;
    }
}

static void make(const struct node *node, const struct batch *batch, uint64_t draw, void *const *at)
{
    if (node->training) {
        make_of_training(node, batch, draw, at);
        return;
    }
    for (int64_t i = 0; i < sampled_of(node); i++) ((int64_t *)at[SAMPLED])[i] = i;
}

/* ---- shapes and variables ---- */

static const double *counts_of(const struct node *node)
{
    const struct attributes *a = node->attributes;
    const struct occurrences *o = node->making.label ? node->making.label->occurrences : NULL;
    if (a->unigrams.count == a->classes) return a->unigrams.at;
    return a->unigrams.count == 0 && o && o->count == a->classes ? o->at : NULL;
}

static err check_counts(const struct node *node)
{
    const struct attributes *a = node->attributes;
    const struct occurrences *o = node->making.label ? node->making.label->occurrences : NULL;
    if (a->sampler != SAMPLER_UNIGRAM && a->unigrams.count)
        return fail(ERR_INPUT, "unigrams: the sampler is %s, which does not use them",
                    sampler_names[a->sampler]);
    if (a->sampler != SAMPLER_UNIGRAM || counts_of(node)) return OK;
    if (a->unigrams.count)
        return fail(ERR_INPUT, "unigrams: expected %" PRId64 " numbers, one for each class, got %d",
                    a->classes, a->unigrams.count);
    if (o)
        return fail(ERR_INPUT,
                    "classes: expected %" PRId64 ", as many as the data count, got %" PRId64,
                    o->count, a->classes);
    return fail(ERR_INPUT, "sampler: unigram wants \"unigrams\", as the data have not counted "
                           "how often classes occur");
}

static err open_sampler(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    struct sampler *sampler = arena_new(arena, sizeof *sampler);
    TRY(check_counts(node));
    TRY(sampler_open((enum sampler_kind)a->sampler, a->classes, a->unique, counts_of(node),
                     a->distortion, arena, sampler));
    if (a->unique && a->sampled > sampler_support(sampler))
        return fail(ERR_INPUT,
                    "sampled: %" PRId64 " different ones of %" PRId64 " classes that can be drawn",
                    a->sampled, sampler_support(sampler));
    node->making.by = sampler;
    return OK;
}

static err add_made(struct node *node, struct arena *arena, int64_t batch)
{
    const struct attributes *a = node->attributes;
    const struct shape drawn = {1, {node->training ? a->sampled : a->classes}}, rows = {1, {batch}};
    TRY(node_add_made(node, arena, "sampled", INT64, &drawn, true));
    if (!node->training) return OK;
    TRY(node_add_made(node, arena, "labels", INT64, &rows, false));
    TRY(node_add_made(node, arena, "log_sampled", FLOAT32, &drawn, true));
    return node_add_made(node, arena, "log_labels", FLOAT32, &rows, false);
}

static err add_tables(struct node *node, struct arena *arena, int64_t named)
{
    const struct attributes *a = node->attributes;
    const struct kind *kind = a->initializer.kind;
    const int64_t inputs = node->input[0]->shape.dim[1];
    struct param table = {.name = "weights",
                          .shape = {2, {a->classes, inputs}},
                          .ids = &node->making.inputs[SAMPLED]->tensor};
    if (node->holds_batch_rows) table.held = named < a->classes ? named : a->classes;
    if (kind && ((const struct initializer *)kind->descriptor)->is_whole)
        return fail(ERR_INPUT, "initializer: a table is made row by row, and %s makes all at once",
                    kind->object->name);
    if (kind) {
        table.initializer = kind->descriptor;
        table.initializer_attributes = a->initializer.attributes;
    } else {
        TRY(combine_initialize(inputs, arena, &table));
    }
    TRY(node_add_param(node, arena, &table));
    if (!a->bias) return OK;
    table.name = "biases";
    table.shape.dim[1] = 1;
    table.initializer = initializer_named("zeros").kind->descriptor;
    table.initializer_attributes = NULL;
    return node_add_param(node, arena, &table);
}

/* All zeros: the label's logit is the first. */
static void add_answers(struct node *node, struct arena *arena, int64_t batch)
{
    struct tensor *answers = arena_new(arena, sizeof *answers);
    *answers = (struct tensor){.name = node->name, .dtype = INT32, .shape = {1, {batch}}};
    node->output.answers = answers;
}

static err infer(struct node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    const struct shape *x = &node->input[0]->shape;
    char text[SHAPE_TEXT_MAX];
    if (x->rank != 2)
        return fail(ERR_INPUT,
                    "inputs: wants [batch, inputs], one label for each example, but \"%s\" is %s",
                    node->input[0]->name, shape_text(x, text));
    if (node->sharing.of)
        return fail(ERR_INPUT, "weights_of: its rows are those of its own labels");
    const int64_t batch = x->dim[0], inputs = x->dim[1];
    const int64_t named = node->training ? batch + a->sampled : a->classes;
    if (node->training) TRY(open_sampler(node, arena));
    TRY(add_made(node, arena, batch));
    TRY(add_tables(node, arena, named));
    node->output.classes = a->classes;
    node->output.shape = (struct shape){2, {batch, node->training ? 1 + a->sampled : a->classes}};
    node->saved[ROWS].shape = (struct shape){2, {named, inputs}};
    node->saved[BIASES].shape = (struct shape){1, {named}};
    if (!node->training) return OK;
    node->saved[PRODUCTS].shape = (struct shape){2, {batch, a->sampled}};
    add_answers(node, arena, batch);
    return OK;
}

static size_t prepared_bytes(const struct node *node, struct device *d)
{
    return node->output.answers ? tensor_bytes(node->output.answers) : 0;
}

static err prepare(struct node *node, struct device *d)
{
    if (!node->output.answers) return OK;
    TRY(d->kernels->allocate(d, prepared_bytes(node, d), &node->state));
    ((struct tensor *)node->output.answers)->value = node->state;
    return OK;
}

static void release(struct node *node, struct device *d)
{
    if (node->state) d->kernels->release(d, node->state);
    node->state = NULL;
}

/* ---- forward ---- */

/* Lookup of a made input's ids in a table */
static struct combine rows_of(const struct node *node, int made, int param)
{
    const struct tensor *ids = &node->making.inputs[made]->tensor;
    const struct param *table = &node->param[param];
    return (struct combine){.batch = shape_count(&ids->shape),
                            .places = 1,
                            .rows = table->held ? table->held : table->shape.dim[0],
                            .width = table->shape.dim[1],
                            .combiner = COMBINER_SUM,
                            .ids = ids->value};
}

/* Copies the rows of the drawn classes and then those of the labels */
static void take_rows(const struct node *node, struct device *d, int param, float *to)
{
    for (int made = SAMPLED; made <= (node->training ? LABELS : SAMPLED); made++) {
        const struct combine c = rows_of(node, made, param);
        d->kernels->rows_combine(d, &c, to, node->param[param].value, false);
        to += c.batch * c.width;
    }
}

static void take_all_rows(const struct node *node, struct device *d)
{
    float *biases = node->saved[BIASES].value;
    take_rows(node, d, 0, node->saved[ROWS].value);
    if (node->param_count > 1)
        take_rows(node, d, 1, biases);
    else
        d->kernels->fill(d, biases, 0.0f, shape_count(&node->saved[BIASES].shape));
}

static struct gemm product_of(const struct node *node, float *to)
{
    return (struct gemm){.transpose_b = true,
                         .m = batch_of(node),
                         .n = sampled_of(node),
                         .k = inputs_of(node),
                         .a = node->input[0]->value,
                         .b = node->saved[ROWS].value,
                         .c = to};
}

static float *label_rows(const struct node *node)
{
    return (float *)node->saved[ROWS].value + sampled_of(node) * inputs_of(node);
}

static void set_hits(const struct node *node, struct device *d, float *y, float value)
{
    const struct attributes *a = node->attributes;
    const int64_t sampled = sampled_of(node);
    if (!a->remove_accidental_hits) return;
    d->kernels->same_ids(
        d, &(struct same_ids){.rows = batch_of(node),
                              .columns = sampled,
                              .block = batch_of(node),
                              .step = 1 + sampled,
                              .value = value,
                              .row_ids = node->making.inputs[LABELS]->tensor.value,
                              .column_ids = node->making.inputs[SAMPLED]->tensor.value,
                              .y = y + 1});
}

/* y of the labels: dot product of an example and its label's row */
static void multiply_labels(const struct node *node, struct device *d, const float *biases)
{
    const int64_t batch = batch_of(node), inputs = inputs_of(node), step = 1 + sampled_of(node);
    struct fold f = {FOLD_MULTIPLY, .scale = 1, .y = node->output.value};
    f.a = node->input[0]->value;
    f.b = label_rows(node);
    f.kept = (struct fold_loops){1, .n = {batch}, .y = {step}, .a = {inputs}, .b = {inputs}};
    f.folded = (struct fold_loops){1, .n = {inputs}, .a = {1}, .b = {1}};
    d->kernels->fold(d, &f);
    struct fold bias = {FOLD_A, .scale = 1, .add = true, .y = node->output.value, .a = biases};
    bias.kept = (struct fold_loops){1, .n = {batch}, .y = {step}, .a = {1}};
    d->kernels->fold(d, &bias);
}

static void forward_of_training(const struct node *node, struct device *d)
{
    const int64_t batch = batch_of(node), sampled = sampled_of(node);
    float *biases = node->saved[BIASES].value, *products = node->saved[PRODUCTS].value;
    float *y = node->output.value;
    d->kernels->axpy(d, biases, -1.0f, node->making.inputs[LOG_SAMPLED]->tensor.value, sampled);
    d->kernels->axpy(d, biases + sampled, -1.0f, node->making.inputs[LOG_LABELS]->tensor.value,
                     batch);
    const struct gemm g = product_of(node, products);
    d->kernels->gemm(d, &g);
    struct fold f = {FOLD_ADD, .scale = 1, .y = y + 1, .a = products, .b = biases};
    f.kept = (struct fold_loops){2, .n = {batch, sampled}, .y = {1 + sampled, 1}, .a = {sampled, 1},
                                 .b = {0, 1}};
    d->kernels->fold(d, &f);
    multiply_labels(node, d, biases + sampled);
    set_hits(node, d, y, NO_LOGIT);
}

static void forward(const struct node *node, struct device *d)
{
    take_all_rows(node, d);
    if (node->training) {
        forward_of_training(node, d);
        return;
    }
    const struct gemm g = product_of(node, node->output.value);
    d->kernels->gemm(d, &g);
    d->kernels->bias_activate(d, node->output.value, node->saved[BIASES].value, NULL,
                              ACTIVATION_LINEAR, 0, batch_of(node), sampled_of(node));
}

/* ---- backward ---- */

/* [batch, inputs] (+)= the gradient of each label's logit times a row of `by` */
static void spread_labels(const struct node *node, struct device *d, const float *by, bool add,
                          float *to)
{
    const int64_t inputs = inputs_of(node);
    struct fold f = {FOLD_MULTIPLY, .scale = 1, .add = add, .y = to};
    f.a = node->output.gradient;
    f.b = by;
    f.kept = (struct fold_loops){2, .n = {batch_of(node), inputs}, .y = {inputs, 1},
                                 .a = {1 + sampled_of(node), 0}, .b = {inputs, 1}};
    d->kernels->fold(d, &f);
}

static void input_back(const struct node *node, struct device *d)
{
    float *dx = node->input[0]->gradient;
    if (!dx) return;
    d->kernels->gemm(d, &(struct gemm){.add = node->add[0],
                                       .m = batch_of(node),
                                       .n = inputs_of(node),
                                       .k = sampled_of(node),
                                       .a = node->saved[PRODUCTS].value,
                                       .b = node->saved[ROWS].value,
                                       .c = dx});
    spread_labels(node, d, label_rows(node), true, dx);
}

/* Adds gradients to the table's rows, in the order of take_rows() */
static void give_rows(const struct node *node, struct device *d, int param, const float *from)
{
    for (int made = SAMPLED; made <= LABELS; made++) {
        const struct combine c = rows_of(node, made, param);
        d->kernels->rows_combine_back(d, &c, node->param[param].gradient, from,
                                      node->add_params || made > SAMPLED);
        from += c.batch * c.width;
    }
}

static void biases_back(const struct node *node, struct device *d)
{
    const int64_t batch = batch_of(node), sampled = sampled_of(node);
    float *to = node->saved[BIASES].value;
    if (node->param_count < 2) return;
    d->kernels->sum_rows(d, to, node->saved[PRODUCTS].value, batch, sampled, false);
    struct fold f = {FOLD_A, .scale = 1, .y = to + sampled, .a = node->output.gradient};
    f.kept = (struct fold_loops){1, .n = {batch}, .y = {1}, .a = {1 + sampled}};
    d->kernels->fold(d, &f);
    give_rows(node, d, 1, to);
}

/* The gradients of drawn classes overwrite PRODUCTS, and those of rows overwrite ROWS. */
static void backward(const struct node *node, struct device *d)
{
    const int64_t batch = batch_of(node), sampled = sampled_of(node);
    float *dy = node->output.gradient, *products = node->saved[PRODUCTS].value;
    set_hits(node, d, dy, 0.0f);
    struct fold f = {FOLD_A, .scale = 1, .y = products, .a = dy + 1};
    f.kept =
        (struct fold_loops){2, .n = {batch, sampled}, .y = {sampled, 1}, .a = {1 + sampled, 1}};
    d->kernels->fold(d, &f);
    input_back(node, d);
    d->kernels->gemm(d, &(struct gemm){.transpose_a = true,
                                       .m = sampled,
                                       .n = inputs_of(node),
                                       .k = batch,
                                       .a = products,
                                       .b = node->input[0]->value,
                                       .c = node->saved[ROWS].value});
    spread_labels(node, d, node->input[0]->value, false, label_rows(node));
    give_rows(node, d, 0, node->saved[ROWS].value);
    biases_back(node, d);
}

/* Hits removed and not; drawn once, several times, and by counts */
static const struct op_case cases[] = {
    {"{\"classes\": 9, \"sampled\": 4}", 1, {{2, {5, 3}}}},
    {"{\"classes\": 9, \"sampled\": 4, \"remove_accidental_hits\": false, \"bias\": false}",
     1,
     {{2, {6, 5}}}},
    {"{\"classes\": 5, \"sampled\": 17, \"unique\": false, \"sampler\": \"uniform\"}",
     1,
     {{2, {3, 4}}}},
    {"{\"classes\": 4, \"sampled\": 3, \"sampler\": \"unigram\", \"unigrams\": [5, 0, 2, 1]}",
     1,
     {{2, {7, 2}}}},
    {0},
};

const struct op op_sampled_logits = {
    .object = {"sampled_logits",
               "logits of many classes, of which a training step computes only its labels and a "
               "random sample (for the losses sampled_softmax and nce, as "
               "tf.nn.sampled_softmax_loss and nce_loss); evaluation and prediction compute all",
               fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .label_name = "label",
    .reads_input = true,
    .infer = infer,
    .prepare = prepare,
    .prepared_bytes = prepared_bytes,
    .release = release,
    .forward = forward,
    .backward = backward,
    .make = make,
    .cases = cases,
};
