/* print.c - a layout for a person:
 *
 *     variable        shape               bytes  ps
 *     hidden1/kernel  [3136, 1024]     12845056  1 0 (2 parts)
 *     hidden1/bias    [1024]               4096  1
 *     ps 0: 1 slice, 6422528 bytes (50.0 %)
 *     ps 1: 2 slices, 6426624 bytes (50.0 %)
 *     1 variable is cut: else ps 1 would hold 2.0 times its share (see "partitioner")
 */
#include <string.h>

#include "core/train/variables/layout.h"

enum { PS_TEXT_MAX = 64, PARTS_SHOWN_MAX = 8, BYTES_WIDTH = 14 };

static int64_t bytes_of(const struct variable *variable)
{
    return shape_count(&variable->shape) * (int64_t)sizeof(float);
}

static int widest(int a, const char *text)
{
    const int length = (int)strlen(text);
    return a > length ? a : length;
}

/* "[?, 16]" for a table that grows, as TensorFlow prints unknown dimensions */
static const char *shape_of(const struct variable *variable, char text[SHAPE_TEXT_MAX])
{
    if (!variable->table || !variable->table->growth) return shape_text(&variable->shape, text);
    snprintf(text, SHAPE_TEXT_MAX, "[?, %lld]", (long long)variable->shape.dim[1]);
    return text;
}

/* "2", or for a partitioned variable the ps of its parts: "0 1 2 (3 parts)". slice: its first
 * one. */
static void ps_text(const struct slice *slice, char text[PS_TEXT_MAX])
{
    int length = snprintf(text, PS_TEXT_MAX, "%d", slice->ps);
    if (slice->parts == 1) return;
    for (int i = 1; i < slice->parts && i < PARTS_SHOWN_MAX; i++) {
        length += snprintf(text + length, PS_TEXT_MAX - (size_t)length, " %d", slice[i].ps);
    }
    snprintf(text + length, PS_TEXT_MAX - (size_t)length, "%s (%d parts)",
             slice->parts > PARTS_SHOWN_MAX ? " ..." : "", slice->parts);
}

static void print_variables(const struct layout *layout, FILE *file)
{
    char text[SHAPE_TEXT_MAX], ps[PS_TEXT_MAX];
    int name_width = (int)strlen("variable"), shape_width = (int)strlen("shape");
    for (int i = 0; i < layout->variable_count; i++) {
        name_width = widest(name_width, layout->variables[i].name);
        shape_width = widest(shape_width, shape_of(&layout->variables[i], text));
    }
    fprintf(file, "%-*s  %-*s  %*s  ps\n", name_width, "variable", shape_width, "shape",
            BYTES_WIDTH, "bytes");
    const struct slice *slices = layout->slices, *tables = slices + layout->slice_count;
    for (int i = 0; i < layout->variable_count; i++) {
        const struct variable *variable = &layout->variables[i];
        const struct slice **slice = variable->table ? &tables : &slices;
        ps_text(*slice, ps);
        *slice += (*slice)->parts;
        fprintf(file, "%-*s  %-*s  %*lld  %s\n", name_width, variable->name, shape_width,
                shape_of(variable, text), BYTES_WIDTH, (long long)bytes_of(variable), ps);
    }
}

static int slices_on(const struct layout *layout, int ps)
{
    int count = 0;
    for (int i = 0; i < layout->all_count; i++) count += layout->slices[i].ps == ps;
    return count;
}

static void print_reason(const struct layout *layout, FILE *file)
{
    const int count = layout->balanced_count;
    if (count == 0) return;
    fprintf(file, "%d %s cut: else ps %d would hold %.1f times its share (see \"partitioner\")\n",
            count, count == 1 ? "variable is" : "variables are", layout->balanced_ps,
            layout->balanced_share);
}

void layout_print(const struct layout *layout, FILE *file)
{
    print_variables(layout, file);
    int64_t total = 0;
    for (int ps = 0; ps < layout->ps_count; ps++) total += layout->ps_bytes[ps];
    for (int ps = 0; ps < layout->ps_count; ps++) {
        const int slices = slices_on(layout, ps);
        const double share = total > 0 ? 100.0 * (double)layout->ps_bytes[ps] / (double)total : 0.0;
        fprintf(file, "ps %d: %d %s, %lld bytes (%.1f %%)\n", ps, slices,
                slices == 1 ? "slice" : "slices", (long long)layout->ps_bytes[ps], share);
    }
    for (int ps = layout->ps_count; ps < layout->all_ps; ps++)
        fprintf(file, "ps %d: follows ps %d, %lld bytes\n", ps, layout_home(layout, ps),
                (long long)layout->ps_bytes[ps]);
    print_reason(layout, file);
}
