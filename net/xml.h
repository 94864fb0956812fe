/* xml.h - texts of elements, out of a small answer in XML. */
#ifndef NET_XML_H
#define NET_XML_H

#include <stdbool.h>
#include <stddef.h>

struct xml_text {
    const char *element; /* its name, without a prefix; NULL ends a list */
    char *to;            /* what stands in the first one; "" where there is none, or it is longer */
    size_t size;
};

/* The first element's name, and these texts, as far as it can be read: an answer may be cut.
 * root: [root_size], "": there is none; or NULL. */
void xml_read(const char *xml, size_t bytes, char *root, size_t root_size, struct xml_text *wanted);

#endif
