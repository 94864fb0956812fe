/* c_writer.c - see c_writer.h. Each value becomes an array, computed by loops over its axes. */
#include "cmd/export/c_writer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- loops ---- */

static void open_loops(FILE *f, const struct shape *shape)
{
    fputs("   ", f);
    for (int i = 0; i < shape->rank; i++)
        if (shape->dim[i] > 1)
            fprintf(f, " for (long i%d = 0; i%d < %" PRId64 "; i%d++)", i, i, shape->dim[i], i);
    fputs(shape_count(shape) > 1 ? "\n        " : " ", f);
}

/* The index into `of` at the position of the loops over `shape`; axes of size 1 are broadcast. */
static void write_index(FILE *f, const struct shape *of, const struct shape *shape)
{
    fputs("[0", f);
    for (int i = 0; i < of->rank; i++)
        if (of->dim[i] > 1)
            fprintf(f, " + %" PRId64 " * i%d", shape_count_from(of, i + 1),
                    shape->rank - of->rank + i);
    fputs("]", f);
}

static void write_place(FILE *f, const struct program *p, int value, const struct shape *shape)
{
    fprintf(f, "v%d", value);
    write_index(f, &p->values[value].shape, shape);
}

/* ---- primitives ---- */

static void write_two(FILE *f, const struct program *p, int at)
{
    static const char *const signs[] = {
        [PRIMITIVE_ADD] = " + ",    [PRIMITIVE_SUBTRACT] = " - ", [PRIMITIVE_MULTIPLY] = " * ",
        [PRIMITIVE_DIVIDE] = " / ", [PRIMITIVE_MAXIMUM] = ", ",   [PRIMITIVE_MINIMUM] = ", "};
    const struct program_value *v = &p->values[at];
    open_loops(f, &v->shape);
    write_place(f, p, at, &v->shape);
    fprintf(f, " = %s(",
            v->primitive == PRIMITIVE_MAXIMUM   ? "larger"
            : v->primitive == PRIMITIVE_MINIMUM ? "smaller"
                                                : "");
    write_place(f, p, v->inputs[0], &v->shape);
    fputs(signs[v->primitive], f);
    write_place(f, p, v->inputs[1], &v->shape);
    fputs(");\n", f);
}

static void write_one(FILE *f, const struct program *p, int at)
{
    static const char *const names[] = {
        [PRIMITIVE_EXP] = "expf",        [PRIMITIVE_LOG] = "logf",
        [PRIMITIVE_SQRT] = "sqrtf",      [PRIMITIVE_TANH] = "tanhf",
        [PRIMITIVE_SIGMOID] = "sigmoid", [PRIMITIVE_SOFTPLUS] = "softplus",
        [PRIMITIVE_ERF] = "erff",        [PRIMITIVE_ABS] = "fabsf",
        [PRIMITIVE_PRESENT] = "present", [PRIMITIVE_POSITIVE] = "positive",
        [PRIMITIVE_RESHAPE] = ""};
    const struct program_value *v = &p->values[at];
    fprintf(f, "    for (long i = 0; i < %" PRId64 "; i++) v%d[i] = %s(v%d[i]);\n",
            shape_count(&v->shape), at, names[v->primitive], v->inputs[0]);
}

static void write_matmul(FILE *f, const struct program *p, int at)
{
    const struct program_value *v = &p->values[at], *b = &p->values[v->inputs[1]];
    const int64_t n = v->shape.dim[v->shape.rank - 1], k = b->shape.dim[b->shape.rank - 2];
    const int64_t rows = shape_count(&v->shape) / n;
    const int64_t matrices = shape_count(&b->shape) / (k * n);
    fprintf(f,
            "    for (long i = 0; i < %" PRId64 "; i++)\n        matmul(v%d + i * %" PRId64
            ", v%d + i * %" PRId64 ", v%d + i * %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
            ");\n",
            matrices, at, rows / matrices * n, v->inputs[0], rows / matrices * k, v->inputs[1],
            k * n, rows / matrices, k, n);
}

static void write_gather(FILE *f, const struct program *p, int at)
{
    const struct program_value *v = &p->values[at];
    const struct program_value *table = &p->values[v->inputs[0]];
    const int64_t width = v->shape.dim[v->shape.rank - 1];
    if (table->grows)
        fprintf(f, "    find(v%d, v%d, keys%d, v%d, %" PRId64 ", %" PRId64 ", %" PRId64 ");\n", at,
                v->inputs[0], v->inputs[0], v->inputs[1], shape_count(&v->shape) / width,
                table->shape.dim[0], width);
    else
        fprintf(f, "    gather(v%d, v%d, v%d, %" PRId64 ", %" PRId64 ");\n", at, v->inputs[0],
                v->inputs[1], shape_count(&v->shape) / width, width);
}

static void write_reduce(FILE *f, const struct program *p, int at)
{
    const struct program_value *v = &p->values[at];
    const struct shape *x = &p->values[v->inputs[0]].shape;
    const int64_t count = shape_count(&v->shape);
    const bool is_largest = v->primitive == PRIMITIVE_LARGEST;
    fprintf(f, "    for (long i = 0; i < %" PRId64 "; i++) v%d[i] = %s;\n", count, at,
            is_largest ? "-INFINITY" : "0");
    open_loops(f, x);
    write_place(f, p, at, x);
    fputs(is_largest ? " = larger(" : " += ", f);
    if (is_largest) write_place(f, p, at, x);
    if (is_largest) fputs(", ", f);
    write_place(f, p, v->inputs[0], x);
    fputs(is_largest ? ");\n" : ";\n", f);
    if (v->primitive == PRIMITIVE_MEAN)
        fprintf(f, "    for (long i = 0; i < %" PRId64 "; i++) v%d[i] /= %" PRId64 ";\n", count, at,
                shape_count(x) / count);
}

static void write_transpose(FILE *f, const struct program *p, int at)
{
    const struct program_value *v = &p->values[at];
    const struct shape *x = &p->values[v->inputs[0]].shape;
    open_loops(f, &v->shape);
    write_place(f, p, at, &v->shape);
    fprintf(f, " = v%d[0", v->inputs[0]);
    for (int i = 0; i < v->shape.rank; i++)
        if (v->shape.dim[i] > 1)
            fprintf(f, " + %" PRId64 " * i%d", shape_count_from(x, (int)v->axes[i] + 1), i);
    fputs("];\n", f);
}

/* Copies x into y at the position `begin`, or, if takes is set, from there to y. */
static void write_part(FILE *f, int y, const struct shape *y_shape, int x,
                       const struct shape *x_shape, const int64_t *begin, bool takes)
{
    const struct shape *small = takes ? y_shape : x_shape, *large = takes ? x_shape : y_shape;
    int64_t first = 0;
    for (int i = 0; i < large->rank; i++) first += begin[i] * shape_count_from(large, i + 1);
    open_loops(f, small);
    for (int side = 0; side < 2; side++) {
        const bool is_large = takes == (side == 1);
        const struct shape *shape = is_large ? large : small;
        fprintf(f, "%sv%d[%" PRId64, side ? " = " : "", side ? x : y, is_large ? first : 0);
        for (int i = 0; i < small->rank; i++)
            if (small->dim[i] > 1)
                fprintf(f, " + %" PRId64 " * i%d", shape_count_from(shape, i + 1), i);
        fputs("]", f);
    }
    fputs(";\n", f);
}

static void write_parts(FILE *f, const struct program *p, int at)
{
    const struct program_value *v = &p->values[at];
    int64_t begin[RANK_MAX] = {0};
    if (v->primitive == PRIMITIVE_PAD)
        fprintf(f, "    for (long i = 0; i < %" PRId64 "; i++) v%d[i] = (float)%.9g;\n",
                shape_count(&v->shape), at, (double)v->number);
    for (int i = 0; i < v->input_count; i++) {
        const struct shape *x = &p->values[v->inputs[i]].shape;
        const bool joins = v->primitive == PRIMITIVE_CONCAT;
        write_part(f, at, &v->shape, v->inputs[i], x, joins ? begin : v->axes,
                   v->primitive == PRIMITIVE_SLICE);
        if (joins) begin[v->axis] += x->dim[v->axis];
    }
}

static void write_window(FILE *f, const struct program *p, int at)
{
    const struct program_value *v = &p->values[at];
    const struct window2d *w = &v->window;
    const int64_t in = p->values[v->inputs[0]].shape.dim[3], out = v->shape.dim[3];
    fprintf(f,
            "    { const struct window w = {%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
            ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
            ", %" PRId64 ", %" PRId64 "};\n",
            w->in_y, w->in_x, w->out_y, w->out_x, w->kernel_y, w->kernel_x, w->stride_y,
            w->stride_x, w->dilation_y ? w->dilation_y : 1, w->dilation_x ? w->dilation_x : 1,
            w->pad_top, w->pad_left);
    if (v->primitive == PRIMITIVE_CONV2D)
        fprintf(f, "      conv2d(&w, v%d, v%d, v%d, %" PRId64 ", %" PRId64 ", %" PRId64 "); }\n",
                at, v->inputs[0], v->inputs[1], in, out, v->groups);
    else
        fprintf(f, "      pool(&w, v%d, v%d, %" PRId64 ", %d); }\n", at, v->inputs[0], in,
                v->primitive == PRIMITIVE_MAX_POOL);
}

static void write_value(FILE *f, const struct program *p, int at)
{
    const struct program_value *v = &p->values[at];
    const int64_t last = v->shape.rank ? v->shape.dim[v->shape.rank - 1] : 1;
    switch (v->primitive) {
    case PRIMITIVE_ADD:
    case PRIMITIVE_SUBTRACT:
    case PRIMITIVE_MULTIPLY:
    case PRIMITIVE_DIVIDE:
    case PRIMITIVE_MAXIMUM:
    case PRIMITIVE_MINIMUM:
        write_two(f, p, at);
        break;
    case PRIMITIVE_MATMUL:
        write_matmul(f, p, at);
        break;
    case PRIMITIVE_GATHER:
        write_gather(f, p, at);
        break;
    case PRIMITIVE_SUM:
    case PRIMITIVE_MEAN:
    case PRIMITIVE_LARGEST:
        write_reduce(f, p, at);
        break;
    case PRIMITIVE_SOFTMAX:
        fprintf(f, "    softmax(v%d, v%d, %" PRId64 ", %" PRId64 ");\n", at, v->inputs[0],
                shape_count(&v->shape) / last, last);
        break;
    case PRIMITIVE_TRANSPOSE:
        write_transpose(f, p, at);
        break;
    case PRIMITIVE_CONCAT:
    case PRIMITIVE_SLICE:
    case PRIMITIVE_PAD:
        write_parts(f, p, at);
        break;
    case PRIMITIVE_CONV2D:
    case PRIMITIVE_MAX_POOL:
    case PRIMITIVE_AVG_POOL:
        write_window(f, p, at);
        break;
    case PRIMITIVE_INPUT:
    case PRIMITIVE_CONSTANT:
    case PRIMITIVE_COUNT:
        break;
    default:
        write_one(f, p, at);
    }
}

/* ---- files ---- */

/* NaN and infinities are written as C macros. */
static void write_number(FILE *f, float number)
{
    if (isfinite(number))
        fprintf(f, "%a", (double)number);
    else
        fputs(isnan(number) ? "NAN" : number > 0 ? "INFINITY" : "-INFINITY", f);
}

static void write_constant(FILE *f, int at, const struct program_value *v)
{
    const int64_t count = shape_count(&v->shape);
    fputs("\n/* ", f);
    c_write_in_comment(f, v->name);
    fprintf(f, " */\nstatic const float v%d[%" PRId64 "] = {", at, count);
    for (int64_t i = 0; i < count; i++) {
        fputs(i % 8 ? ", " : ",\n    " + (i == 0), f);
        write_number(f, v->data[i]);
    }
    fputs("};\n", f);
    if (!v->grows) return;
    fprintf(f, "static const int64_t keys%d[%" PRId64 "] = {", at, v->shape.dim[0]);
    for (int64_t i = 0; i < v->shape.dim[0]; i++)
        fprintf(f, "%sINT64_C(%" PRId64 ")", i % 4 ? ", " : ",\n    " + (i == 0), v->keys[i]);
    fputs("};\n", f);
}

/* Pointers are set when the weights file is opened. */
static void declare_constant(FILE *f, int at, const struct program_value *v)
{
    fprintf(f, "static const float *v%d; /* ", at);
    c_write_in_comment(f, v->name);
    fputs(" */\n", f);
    if (v->grows) fprintf(f, "static const int64_t *keys%d;\n", at);
}

static int64_t outputs_of(const struct program *p)
{
    int64_t count = 0;
    for (int i = 0; i < p->output_count; i++)
        count += shape_count(&p->values[p->outputs[i].value].shape);
    return count;
}

void c_write_header(FILE *f, const struct c_model *m)
{
    const char *name = m->name;
    const struct program *p = m->program;
    int64_t first = 0;
    fprintf(f, "/* Made by dtrain export: the model %s. */\n#ifndef %s_H\n#define %s_H\n\n", name,
            name, name);
    fputs("#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n", f);
    fprintf(f, "/* What there is of a row. */\ntypedef struct {\n");
    cells_write_c_members(f, m->cells);
    fprintf(f, "} %s_row;\n\nenum { %s_OUTPUTS = %" PRId64 " };\n\n", name, name, outputs_of(p));
    if (m->weights.bytes)
        fprintf(f,
                "/* Maps the numbers of the model, which are in %s.weights: once, before the rest. "
                "0, or "
                "-1 with errno;\n * EINVAL: the file is of another model. */\n"
                "int %s_open(const char *path);\n\n",
                name, name);
    fputs("/* What the model says of it:\n", f);
    for (int i = 0; i < p->output_count; i++) {
        const int64_t count = shape_count(&p->values[p->outputs[i].value].shape);
        fputs(" * ", f);
        c_write_in_comment(f, p->outputs[i].name);
        fprintf(f, ": ret[%" PRId64 "] to ret[%" PRId64 "]\n", first, first + count - 1);
        first += count;
    }
    fprintf(
        f,
        " * Returns ret[0], or NaN where a cell is not what it should be (%s_bad_cell), or there "
        "is no memory. */\nfloat %s_predict(const %s_row *, float *ret);\n\n"
        "/* The first cell that cannot be read; NULL: all can. */\n"
        "const char *%s_bad_cell(const %s_row *);\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
        name, name, name, name, name);
}

extern const char c_runtime[]; /* generated by embed.py */

/* Floats in the arrays for one row, which share one allocation */
static int64_t scratch_floats(const struct program *p)
{
    int64_t floats = 0;
    for (int i = 0; i < p->count; i++)
        if (p->values[i].uses && p->values[i].primitive > PRIMITIVE_CONSTANT)
            floats += shape_count(&p->values[i].shape);
    return floats;
}

static void write_arrays(FILE *f, const struct program *p)
{
    int64_t at = 0;
    for (int i = 0; i < p->count; i++) {
        const struct program_value *v = &p->values[i];
        if (!v->uses || v->primitive == PRIMITIVE_CONSTANT) continue;
        if (v->primitive == PRIMITIVE_INPUT) {
            fprintf(f, "    const %s *const v%d = in->v%d;\n", v->is_ids ? "int64_t" : "float", i,
                    i);
            continue;
        }
        fprintf(f, "    float *const v%d = at + %" PRId64 ";\n", i, at);
        at += shape_count(&v->shape);
    }
}

static void write_inputs(FILE *f, const struct program *p)
{
    fputs("\nstruct inputs {\n    char unused;\n", f);
    for (int i = 0; i < p->count; i++)
        if (p->values[i].uses && p->values[i].primitive == PRIMITIVE_INPUT) {
            fprintf(f, "    %s v%d[%" PRId64 "]; /* ", p->values[i].is_ids ? "int64_t" : "float", i,
                    shape_count(&p->values[i].shape));
            c_write_in_comment(f, p->values[i].name);
            fputs(" */\n", f);
        }
    fputs("};\n", f);
}

static void write_constants(FILE *f, const struct c_model *m)
{
    const struct program *p = m->program;
    const bool are_beside = m->weights.bytes > 0;
    if (are_beside) fputs("\n", f);
    for (int i = 0; i < p->count; i++)
        if (p->values[i].uses && p->values[i].primitive == PRIMITIVE_CONSTANT)
            (are_beside ? declare_constant : write_constant)(f, i, &p->values[i]);
    if (are_beside) c_write_open(f, m->name, p, &m->weights);
}

err c_write_source(FILE *f, const struct c_model *m)
{
    const char *name = m->name;
    const struct program *p = m->program;
    int64_t first = 0;
    fprintf(f, "/* Made by dtrain export: the model %s. */\n", name);
    fputs("#ifndef _DEFAULT_SOURCE\n#define _DEFAULT_SOURCE /* le32toh() with -std=c11, too "
          "*/\n#endif\n",
          f);
    static const char *const shared[] = {"farm_of_long", "decimal_tens", "decimal_long",
                                         "decimal_whole"};
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        fprintf(f, "#define %s %s_%s\n", shared[i], name, shared[i]);
    if (m->weights.bytes)
        fputs("#include <errno.h>\n#include <fcntl.h>\n#include <sys/mman.h>\n"
              "#include <sys/stat.h>\n#include <unistd.h>\n",
              f);
    c_write_missing(f, m->cells);
    fprintf(f, "%s\n#include \"%s.h\"\n", c_runtime, name);
    write_constants(f, m);
    write_inputs(f, p);
    TRY(c_write_cells(f, name, p, m->cells));
    fputs("\nstatic void compute(const struct inputs *in, float *at, float *ret)\n{\n", f);
    write_arrays(f, p);
    for (int i = 0; i < p->count; i++)
        if (p->values[i].uses) write_value(f, p, i);
    for (int i = 0; i < p->output_count; i++) {
        const int64_t count = shape_count(&p->values[p->outputs[i].value].shape);
        fprintf(f, "    memcpy(ret + %" PRId64 ", v%d, %" PRId64 " * sizeof *ret);\n", first,
                p->outputs[i].value, count);
        first += count;
    }
    fprintf(f,
            "}\n\nfloat %s_predict(const %s_row *row, float *ret)\n{\n"
            "    struct inputs *in = malloc(sizeof *in);\n"
            "    float *at = malloc(%" PRId64 " * sizeof *at);\n"
            "    const int is_read = %sin && at && !read_row(row, in);\n"
            "    if (is_read) compute(in, at, ret);\n"
            "    free(in);\n    free(at);\n    return is_read ? ret[0] : NAN;\n}\n",
            name, name, scratch_floats(p) + 1, m->weights.bytes ? "weights && " : "");
    return OK;
}
