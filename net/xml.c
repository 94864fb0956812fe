/* xml.c - see xml.h. */
#include "net/xml.h"

#include <expat.h>
#include <stdio.h>
#include <string.h>

struct xml_reading {
    char *root;
    size_t root_size;
    struct xml_text *wanted, *at; /* at: the one being read; NULL: none */
    size_t used;
    int depth, at_depth;
    bool is_too_long;
};

static const char *local_name(const char *name)
{
    const char *colon = strrchr(name, ':');
    return colon ? colon + 1 : name;
}

static void begin_element(void *context, const char *name, const char **attributes)
{
    struct xml_reading *r = context;
    (void)attributes;
    if (r->depth++ == 0 && r->root) snprintf(r->root, r->root_size, "%s", local_name(name));
    if (r->at) return;
    for (struct xml_text *text = r->wanted; text->element; text++) {
        if (text->to[0] || strcmp(text->element, local_name(name)) != 0) continue;
        r->at = text;
        r->at_depth = r->depth;
        r->used = 0;
        r->is_too_long = false;
        return;
    }
}

static void end_element(void *context, const char *name)
{
    struct xml_reading *r = context;
    (void)name;
    if (r->at && r->depth == r->at_depth) {
        if (r->is_too_long) r->at->to[0] = '\0';
        r->at = NULL;
    }
    r->depth--;
}

static void take_text(void *context, const char *text, int bytes)
{
    struct xml_reading *r = context;
    if (!r->at || r->depth != r->at_depth) return;
    r->is_too_long |= r->used + (size_t)bytes >= r->at->size;
    if (r->is_too_long) return;
    memcpy(r->at->to + r->used, text, (size_t)bytes);
    r->used += (size_t)bytes;
    r->at->to[r->used] = '\0';
}

void xml_read(const char *xml, size_t bytes, char *root, size_t root_size, struct xml_text *wanted)
{
    struct xml_reading r = {.root = root, .root_size = root_size, .wanted = wanted};
    XML_Parser parser = XML_ParserCreate(NULL);
    if (root) root[0] = '\0';
    for (struct xml_text *text = wanted; text->element; text++) text->to[0] = '\0';
    if (!parser) return;
    XML_SetUserData(parser, &r);
    XML_SetElementHandler(parser, begin_element, end_element);
    XML_SetCharacterDataHandler(parser, take_text);
    (void)XML_Parse(parser, xml, (int)bytes, XML_FALSE); /* what was read before an error is kept */
    XML_ParserFree(parser);
}
