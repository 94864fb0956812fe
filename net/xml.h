/* xml.h - extracts texts of elements from a small XML answer. */
#ifndef NET_XML_H
#define NET_XML_H

#include <stdbool.h>
#include <stddef.h>

struct xml_text {
    const char *element; /* name without namespace prefix; NULL ends the list */
    char *to;            /* gets the text of the first one; "" if absent or too long */
    size_t size;
};

/* Reads the root element's name and these texts as far as possible: the answer may be truncated.
 * root: [root_size], "": none; may be NULL. */
void xml_read(const char *xml, size_t bytes, char *root, size_t root_size, struct xml_text *wanted);

#endif
