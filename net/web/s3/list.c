/* list.c - lists of objects as S3 writes them: XML, in pages. */
#include <expat.h>
#include <string.h>

#include "net/web/s3/s3_inside.h"

enum { TEXT_BYTES = 4096 };

struct page {
    struct web_list *list;
    XML_Parser parser;
    int depth, contents; /* the depth of the object that is read; 0: none */
    char text[TEXT_BYTES];
    size_t used;
    bool is_list;
    err e;
};

static void fail_page(struct page *p, err e)
{
    p->e = e;
    XML_StopParser(p->parser, XML_FALSE);
}

static int hex(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 0x20) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Of encoding-type=url: %XX, and + for a blank */
static void decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        const bool is_hex = *from == '%' && hex(from[1]) >= 0 && hex(from[2]) >= 0;
        *to++ = is_hex ? (char)(hex(from[1]) << 4 | hex(from[2])) : *from == '+' ? ' ' : *from;
        from += is_hex ? 2 : 0;
    }
    *to = '\0';
}

static void begin_element(void *context, const char *name, const char **attributes)
{
    struct page *p = context;
    p->depth++;
    p->used = 0;
    if (p->depth == 1) p->is_list = strcmp(name, "ListBucketResult") == 0;
    if (p->depth == 2 && (strcmp(name, "Contents") == 0 || strcmp(name, "CommonPrefixes") == 0))
        p->contents = p->depth;
}

static void end_element(void *context, const char *name)
{
    struct page *p = context;
    p->text[p->used] = '\0';
    if (p->contents && p->depth == p->contents + 1 &&
        (strcmp(name, "Key") == 0 || strcmp(name, "Prefix") == 0)) {
        decode(p->text);
        const err e = web_list_add(p->list, p->text);
        if (e) fail_page(p, e);
    }
    if (p->depth == 2 && strcmp(name, "IsTruncated") == 0)
        p->list->is_truncated = strcmp(p->text, "true") == 0;
    if (p->depth == 2 && strcmp(name, "NextContinuationToken") == 0 && p->used < WEB_TOKEN_BYTES)
        strcpy(p->list->token, p->text);
    if (p->depth == p->contents) p->contents = 0;
    p->depth--;
    p->used = 0;
}

static void take_text(void *context, const char *text, int bytes)
{
    struct page *p = context;
    if (p->used + (size_t)bytes >= sizeof p->text) {
        fail_page(p, fail(ERR_IO, "a list of files has a text of more than %d bytes",
                          (int)TEXT_BYTES - 1));
        return;
    }
    memcpy(p->text + p->used, text, (size_t)bytes);
    p->used += (size_t)bytes;
}

err s3_list_take(struct web_list *l, const char *page, size_t bytes)
{
    struct page p = {.list = l, .parser = XML_ParserCreate(NULL)};
    if (!p.parser) return fail(ERR_MEMORY, "no memory for a list of files");
    l->is_truncated = false;
    l->token[0] = '\0';
    XML_SetUserData(p.parser, &p);
    XML_SetElementHandler(p.parser, begin_element, end_element);
    XML_SetCharacterDataHandler(p.parser, take_text);
    const bool is_read = XML_Parse(p.parser, page, (int)bytes, XML_TRUE) == XML_STATUS_OK;
    if (!p.e && !is_read)
        p.e = fail(ERR_IO, "the server's list of files is broken: %s",
                   XML_ErrorString(XML_GetErrorCode(p.parser)));
    if (!p.e && (!p.is_list || (l->is_truncated && !l->token[0])))
        p.e = fail(ERR_IO, "the server answered no list of files");
    XML_ParserFree(p.parser);
    return p.e;
}
