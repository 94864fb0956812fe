/* check_graph.c - prints the model for Graphviz or Mermaid. */
#include "cmd/check.h"

/* Boxes are identified by number, because names may contain any character. */
struct graph_writer {
    FILE *out;
    enum graph_form form;
};

/* In quotes in both forms; characters that would end the text are replaced. */
static void put_name(const struct graph_writer *w, const char *name)
{
    for (; *name; name++) fputc(*name == '"' || *name == '\\' ? '\'' : *name, w->out);
}

/* kind: 'c' for a column, 'n' for a node, 'l' for the loss. */
static void put_box(const struct graph_writer *w, char kind, int number, const char *name,
                    const char *detail)
{
    const bool is_dot = w->form == GRAPH_DOT;
    fprintf(w->out, is_dot ? "  %c%d [label=\"" : "  %c%d[\"", kind, number);
    put_name(w, name);
    fputs(is_dot ? "\\n" : "<br>", w->out);
    put_name(w, detail);
    fputs(is_dot ? "\"];\n" : "\"]\n", w->out);
}

static void put_arrow(const struct graph_writer *w, char kind, int from, char to_kind, int to)
{
    fprintf(w->out, w->form == GRAPH_DOT ? "  %c%d -> %c%d;\n" : "  %c%d --> %c%d\n", kind, from,
            to_kind, to);
}

/* An edge from the producer of the tensor: a node, or a column of the data. */
static void put_input(const struct graph_writer *w, const struct graph *graph,
                      const struct tensor *input, char to_kind, int to)
{
    const int column = graph_input_of(graph, input);
    if (column >= 0) put_arrow(w, 'c', graph_input_shown(graph, column), to_kind, to);
    for (int i = 0; column < 0 && i < graph->node_count; i++)
        if (&graph->nodes[i].output == input) put_arrow(w, 'n', i, to_kind, to);
}

static void put_node(const struct graph_writer *w, const struct graph *graph, int number)
{
    const struct node *node = &graph->nodes[number];
    char shape[SHAPE_TEXT_MAX], detail[SHAPE_TEXT_MAX + 64];
    snprintf(detail, sizeof detail, "%.60s %s", node->op->object.name,
             shape_text(&node->output.shape, shape));
    put_box(w, 'n', number, node->name, detail);
    for (int i = 0; i < node->input_count; i++) put_input(w, graph, node->input[i], 'n', number);
}

void check_print_graph(const struct graph *graph, enum graph_form form, FILE *out)
{
    const struct graph_writer w = {out, form};
    char shape[SHAPE_TEXT_MAX];
    fputs(form == GRAPH_DOT ? "digraph model {\n  node [shape=box];\n" : "flowchart TD\n", out);
    for (int i = 0; i < graph->input_count; i++)
        if (graph->inputs[i].of_nodes && graph_input_shown(graph, i) == i)
            put_box(&w, 'c', i, graph->inputs[i].tensor->name,
                    shape_text(&graph->inputs[i].tensor->shape, shape));
    for (int i = 0; i < graph->node_count; i++) put_node(&w, graph, i);
    for (int i = 0; i < graph->head_count; i++) {
        const struct head *head = &graph->heads[i];
        put_box(&w, 'l', i, head->loss.loss->object.name, head->name ? head->name : "loss");
        put_input(&w, graph, head->loss.logits, 'l', i);
    }
    if (form == GRAPH_DOT) fputs("}\n", out);
}
