/* answer.c - see answer.h. */
#include "cmd/serve/answer.h"

#include <string.h>

#include "cmd/json_words.h"
#include "core/data/stats/label_words.h"

enum { OUTPUTS_OF_HEAD = 2, NUMBER_BYTES = 32 };

/* A named output: a head's class, or its numbers */
struct answered_output {
    int head;
    const char *name;
    bool is_class;
    enum prediction predicts;
    int64_t columns;
    const struct strings *words; /* class labels; NULL: classes are numbers */
};

struct outputs {
    struct answered_output at[OUTPUTS_OF_HEAD * HEADS_MAX];
    int count;
};

/* ---- outputs ---- */

static void add_outputs(const struct version *v, int i, struct outputs *ret)
{
    const struct head *head = &version_graph(v)->heads[i];
    const enum prediction predicts = head->loss.loss->predicts;
    const int64_t columns = shape_count_from(&head->loss.logits->shape, 1);
    const bool has_class = prediction_has_class(predicts, columns);
    const bool is_yes = has_class && predicts != PREDICTS_CLASS;
    struct answered_output o = {
        .head = i,
        .predicts = predicts,
        .columns = columns,
        .words = label_words_named(&version_spec(v)->data.train, head->loss.labels.name)};
    if (has_class) {
        ret->at[ret->count] = o;
        ret->at[ret->count].name = "class";
        ret->at[ret->count++].is_class = true;
    }
    o.name = predicts == PREDICTS_NUMBER ? "values" : is_yes ? "probability" : "probabilities";
    ret->at[ret->count++] = o;
}

static struct outputs outputs_of(const struct version *v)
{
    struct outputs all = {0};
    for (int i = 0; i < version_graph(v)->head_count; i++) add_outputs(v, i, &all);
    return all;
}

static void write_name(FILE *out, const struct version *v, const struct answered_output *o)
{
    char name[HEAD_NAME_MAX + NUMBER_BYTES];
    const char *head = version_graph(v)->heads[o->head].name;
    snprintf(name, sizeof name, "%s%s%s", head ? head : "", head ? "/" : "", o->name);
    json_write_text(out, name);
}

static const float *row_of(const struct answered_output *o, const struct version_answer *a,
                           int64_t row)
{
    return a->at[o->head] + row * o->columns;
}

/* A class, a number, or a list of numbers */
static void write_value(FILE *out, const struct answered_output *o, const struct version_answer *a,
                        int64_t row)
{
    const float *at = row_of(o, a, row);
    const bool is_list = strcmp(o->name, "probability") != 0;
    if (o->is_class) {
        json_write_class(out, o->words, prediction_class(o->predicts, at, o->columns), false);
        return;
    }
    if (is_list) fputc('[', out);
    for (int64_t i = 0; i < o->columns; i++) {
        if (i) fputs(", ", out);
        json_write_number(out, at[i]);
    }
    if (is_list) fputc(']', out);
}

/* ---- predictions ---- */

/* A single output is written without its name. */
static void write_row(FILE *out, const struct version *v, const struct outputs *all,
                      const struct version_answer *a, int64_t row)
{
    if (all->count == 1) {
        write_value(out, &all->at[0], a, row);
        return;
    }
    for (int i = 0; i < all->count; i++) {
        fputs(i ? ", " : "{", out);
        write_name(out, v, &all->at[i]);
        fputs(": ", out);
        write_value(out, &all->at[i], a, row);
    }
    fputc('}', out);
}

static void write_column(FILE *out, const struct answered_output *o, const struct version_answer *a,
                         int64_t rows)
{
    fputc('[', out);
    for (int64_t i = 0; i < rows; i++) {
        if (i) fputs(", ", out);
        write_value(out, o, a, i);
    }
    fputc(']', out);
}

void answer_write_predictions(FILE *out, struct version *v, const struct taken_rows *rows,
                              const struct version_answer *a)
{
    const struct outputs all = outputs_of(v);
    fputs(rows->is_columnar ? "{\"outputs\": " : "{\"predictions\": [", out);
    for (int64_t i = 0; i < rows->rows && !rows->is_columnar; i++) {
        if (i) fputs(", ", out);
        write_row(out, v, &all, a, i);
    }
    if (rows->is_columnar && all.count == 1) write_column(out, &all.at[0], a, rows->rows);
    for (int i = 0; i < all.count && rows->is_columnar && all.count > 1; i++) {
        fputs(i ? ", " : "{", out);
        write_name(out, v, &all.at[i]);
        fputs(": ", out);
        write_column(out, &all.at[i], a, rows->rows);
    }
    if (rows->is_columnar && all.count > 1) fputc('}', out);
    fputs(rows->is_columnar ? "}\n" : "]}\n", out);
}

/* ---- classes and numbers ---- */

/* The numbers of the first head that predicts numbers, or else classes; NULL: none */
static const struct answered_output *find_output(const struct outputs *all, bool of_numbers)
{
    for (int i = 0; i < all->count; i++) {
        const struct answered_output *o = &all->at[i];
        const bool is_number = o->predicts == PREDICTS_NUMBER;
        if (!o->is_class && is_number == of_numbers) return o;
    }
    return NULL;
}

/* [label, score] of each class; a single probability p, of yes, has 1 - p, of no, before it. */
static void write_scores(FILE *out, const struct answered_output *o, const float *row)
{
    const bool is_yes = strcmp(o->name, "probability") == 0;
    fputc('[', out);
    for (int64_t i = 0; i < (is_yes ? 2 : o->columns); i++) {
        const float score = !is_yes ? row[i] : i == 1 ? row[0] : 1 - row[0];
        fputs(i ? ", [" : "[", out);
        json_write_class(out, o->words, i, true);
        fputs(", ", out);
        json_write_number(out, score);
        fputc(']', out);
    }
    fputc(']', out);
}

err answer_write_classes(FILE *out, struct version *v, int64_t rows, const struct version_answer *a)
{
    const struct outputs all = outputs_of(v);
    const struct answered_output *o = find_output(&all, false);
    if (!o)
        return fail(ERR_INPUT, "classify: the model has no classes; \"regress\" has its numbers");
    fputs("{\"results\": [", out);
    for (int64_t i = 0; i < rows; i++) {
        if (i) fputs(", ", out);
        write_scores(out, o, row_of(o, a, i));
    }
    fputs("]}\n", out);
    return OK;
}

err answer_write_numbers(FILE *out, struct version *v, int64_t rows, const struct version_answer *a)
{
    const struct outputs all = outputs_of(v);
    const struct answered_output *numbers = find_output(&all, true), *o = numbers;
    if (!o) o = find_output(&all, false);
    if (o->columns != 1)
        return fail(ERR_INPUT, "regress: the model has %lld numbers of a row, not one",
                    (long long)o->columns);
    fputs("{\"results\": [", out);
    for (int64_t i = 0; i < rows; i++) {
        if (i) fputs(", ", out);
        json_write_number(out, row_of(o, a, i)[0]);
    }
    fputs("]}\n", out);
    return OK;
}

/* ---- the signature ---- */

static void write_tensor(FILE *out, const char *dtype, const int64_t *dims, int rank)
{
    fprintf(out,
            "{\"dtype\": \"%s\", \"tensor_shape\": {\"dim\": [{\"size\": \"-1\", \"name\": \"\"}",
            dtype);
    for (int i = 0; i < rank; i++)
        fprintf(out, ", {\"size\": \"%lld\", \"name\": \"\"}", (long long)dims[i]);
    fputs("], \"unknown_rank\": false}, \"name\": \"\"}", out);
}

static void write_inputs(FILE *out, struct version *v)
{
    static const char *const dtypes[] = {[INTAKE_FLOAT] = "DT_FLOAT",
                                         [INTAKE_DOUBLE] = "DT_DOUBLE",
                                         [INTAKE_INT64] = "DT_INT64",
                                         [INTAKE_STRING] = "DT_STRING"};
    int count;
    const struct intake_input *inputs = intake_inputs(version_intake(v), &count);
    for (int i = 0; i < count; i++) {
        const struct intake_input *in = &inputs[i];
        if (i) fputs(", ", out);
        json_write_text(out, in->name);
        fputs(": ", out);
        write_tensor(out, dtypes[in->type], in->shape.dim, in->shape.rank);
    }
}

static void write_outputs(FILE *out, struct version *v)
{
    const struct outputs all = outputs_of(v);
    for (int i = 0; i < all.count; i++) {
        const struct answered_output *o = &all.at[i];
        const bool is_list = !o->is_class && strcmp(o->name, "probability");
        const char *dtype = !o->is_class ? "DT_FLOAT" : o->words->count ? "DT_STRING" : "DT_INT64";
        if (i) fputs(", ", out);
        write_name(out, v, o);
        fputs(": ", out);
        write_tensor(out, dtype, &o->columns, is_list);
    }
}

static void end_signature(FILE *out, struct version *v)
{
    fputs("}, \"outputs\": {", out);
    write_outputs(out, v);
    fputs("}, \"method_name\": \"tensorflow/serving/predict\"}", out);
}

void answer_write_metadata(FILE *out, const char *name, struct version *v)
{
    fputs("{\"model_spec\": {\"name\": ", out);
    json_write_text(out, name);
    fprintf(out, ", \"signature_name\": \"\", \"version\": \"%lld\"}, ",
            (long long)version_number(v));
    fputs("\"metadata\": {\"signature_def\": {\"signature_def\": {\"serving_default\": {"
          "\"inputs\": {",
          out);
    write_inputs(out, v);
    end_signature(out, v);
    if (intake_takes_examples(version_intake(v))) {
        fputs(", \"parse_example\": {\"inputs\": {\"examples\": ", out);
        write_tensor(out, "DT_STRING", NULL, 0);
        end_signature(out, v);
    }
    fputs("}}}}\n", out);
}
