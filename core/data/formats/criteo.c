/* criteo: rows of Criteo's click logs: label, 13 numbers and 26 words of hexadecimal digits,
 * separated by tabs; missing values are empty. Plain or packed.
 *
 * This is csv with fixed names, as the files have none: label, I1 to I13, C1 to C26. Rows to
 * predict may lack the label.
 */
#include "core/data/formats/csv_table.h"

struct criteo_attributes {
    struct strings file;
};

#define OF_LABEL "label"
#define OF_THE_REST                                                                                \
    "I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "C1", "C2",  \
        "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10", "C11", "C12", "C13", "C14", "C15", "C16", \
        "C17", "C18", "C19", "C20", "C21", "C22", "C23", "C24", "C25", "C26"
enum { NUMBERS = 13, WORDS_OF_HEX = 26, ALL = 1 + NUMBERS + WORDS_OF_HEX };

static err read_criteo(const void *attributes, const struct format_context *context,
                       struct row_reader **ret)
{
    static const char *names[] = {OF_LABEL, OF_THE_REST};
    static const struct csv_attributes with_label = {.delimiter = "\t", .names = {names, ALL}};
    static const struct csv_attributes without_label = {.delimiter = "\t",
                                                        .names = {names + 1, ALL - 1}};
    const struct csv_key label = {.name = OF_LABEL};
    TRY(csv_table_read(&with_label, &label, (struct strings){0}, context, ret));
    const int cells = ((struct csv_table *)*ret)->text.count; /* of the first row */
    if (!context->without_labels || cells != ALL - 1) return OK;
    (*ret)->calls->close(*ret);
    return csv_table_read(&without_label, &label, (struct strings){0}, context, ret);
}

static const struct field fields[] = {
    FIELD_OF("file", FILES, struct criteo_attributes, file, .may_differ = true,
             .help = "tab-separated rows, plain or compressed: a file, a list, a pattern, or @ and "
                     "a file of names"),
    {0},
};

const struct format format_criteo = {
    .object = {"criteo",
               "click logs of Criteo's form: label, I1 to I13, C1 to C26, for data.columns", fields,
               sizeof(struct criteo_attributes)},
    .read = read_criteo,
};
