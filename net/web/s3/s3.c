/* s3.c - objects of Amazon S3, and of servers that answer like it: s3://bucket/key.
 *
 * Without an endpoint in the environment, a bucket is part of Amazon's host name; one whose name
 * has dots, and any of another endpoint, is the first part of the path.
 */
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "net/web/list.h"
#include "net/web/s3/aws_keys.h"
#include "net/web/s3/aws_role.h"
#include "net/web/upload.h"
#include "net/xml.h"

extern const struct web_service s3_service;

/* ---- lists: XML, in pages ---- */

enum { TEXT_BYTES = 4096 };

struct page {
    struct web_list *list;
    XML_Parser parser;
    int depth, contents; /* contents: depth of the element of the current object; 0: none */
    char text[TEXT_BYTES];
    size_t used;
    bool is_list, has_name;
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
    if (p->depth == p->contents) p->has_name = false;
}

/* IsTruncated: a value that is neither true nor false makes the list invalid. */
static void take_end(struct page *p)
{
    p->list->is_truncated = strcmp(p->text, "true") == 0;
    if (!p->list->is_truncated && strcmp(p->text, "false") != 0)
        fail_page(p, fail(ERR_IO, "the server's list of files does not say whether it ends"));
}

static void end_element(void *context, const char *name)
{
    struct page *p = context;
    p->text[p->used] = '\0';
    if (p->contents && p->depth == p->contents + 1 &&
        (strcmp(name, "Key") == 0 || strcmp(name, "Prefix") == 0)) {
        decode(p->text);
        p->has_name = p->text[0];
        const err e = web_list_add(p->list, p->text);
        if (e) fail_page(p, e);
    }
    if (p->depth == 2 && strcmp(name, "IsTruncated") == 0) take_end(p);
    if (p->depth == 2 && strcmp(name, "NextContinuationToken") == 0 && p->used < WEB_TOKEN_BYTES)
        strcpy(p->list->token, p->text);
    if (p->depth == p->contents && !p->has_name)
        fail_page(p, fail(ERR_IO, "a list of files has one without a name"));
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

static err s3_list_take(struct web_list *l, const char *page, size_t bytes)
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

/* Members of a call that only this service uses */
struct s3_request {
    struct aws_keys keys;
    const char *copied, *copied_range; /* "/bucket/key", "bytes=0-9"; NULL: not a copy */
};

enum { SIGNED_MAX = 6 };

/* ---- addresses ---- */

static err check_endpoint(const struct aws_keys *keys)
{
    if (!keys->endpoint[0] || strncmp(keys->endpoint, "http://", 7) == 0 ||
        strncmp(keys->endpoint, "https://", 8) == 0)
        return OK;
    return fail(ERR_INPUT, "AWS_ENDPOINT_URL: expected http://... or https://..., got \"%.64s\"",
                keys->endpoint);
}

/* Sets the address of a key in a bucket ("": the bucket itself) */
static err set_address(struct web_call *c, const char *bucket, const char *key, const char *query)
{
    struct s3_request *request = arena_new(&c->arena, sizeof *request);
    struct aws_keys *keys = &request->keys;
    const char *base, *path;
    c->own = request;
    TRY(aws_keys_find(keys));
    TRY(check_endpoint(keys));
    const bool is_host = !keys->endpoint[0] && !strchr(bucket, '.');
    const char *escaped = web_escape(&c->arena, key, true);
    for (size_t i = strlen(keys->endpoint); i > 0 && keys->endpoint[i - 1] == '/';)
        keys->endpoint[--i] = '\0';
    if (keys->endpoint[0])
        base = keys->endpoint;
    else if (is_host)
        base = arena_format(&c->arena, "https://%s.s3.%s.amazonaws.com", bucket, keys->region);
    else
        base = arena_format(&c->arena, "https://s3.%s.amazonaws.com", keys->region);
    if (is_host)
        path = arena_format(&c->arena, "/%s", escaped);
    else
        path = arena_format(&c->arena, "/%s%s%s", bucket, *escaped ? "/" : "", escaped);
    web_call_address(c, base, path, query);
    c->http.keeps_redirect = true; /* a signature is valid for one host */
    return OK;
}

/* query: its keys sorted by bytes */
static err s3_address(const char *path, const char *query, struct web_call *c)
{
    char bucket[BUCKET_BYTES_MAX];
    const char *key = "";
    TRY(web_split(path, bucket, &key));
    if (!*key) return fail(ERR_INPUT, "%s: expected s3://bucket/key", c->http.shown);
    return set_address(c, bucket, key, query);
}

static err address_of(const char *path, struct web_call *c)
{
    return s3_address(path, "", c);
}

/* ---- signing ---- */

static err sign(struct web_call *c)
{
    const struct s3_request *own = c->own;
    const struct aws_keys *keys = &own->keys;
    char date[AWS_DATE_BYTES], hash[SHA256_HEX_BYTES], proof[AWS_PROOF_BYTES];
    struct aws_header headers[SIGNED_MAX];
    int count = 0;
    aws_date(time(NULL), date);
    aws_hash(c->http.body ? c->http.body : "", c->http.body_bytes, hash);
    headers[count++] = (struct aws_header){"host", c->host};
    headers[count++] = (struct aws_header){"x-amz-content-sha256", hash};
    if (own->copied) headers[count++] = (struct aws_header){"x-amz-copy-source", own->copied};
    if (own->copied_range)
        headers[count++] = (struct aws_header){"x-amz-copy-source-range", own->copied_range};
    headers[count++] = (struct aws_header){"x-amz-date", date};
    if (keys->token[0]) headers[count++] = (struct aws_header){"x-amz-security-token", keys->token};
    for (int i = 1; i < count; i++) web_call_header(c, "%s: %s", headers[i].name, headers[i].value);
    c->http.secret = keys->token;
    if (!keys->id[0]) c->http.unproven = aws_role_none();
    if (!keys->id[0]) return OK;
    const struct aws_request request = {
        .method = c->http.method,
        .path = c->path,
        .query = c->query,
        .headers = headers,
        .header_count = count,
        .body_hash = hash,
        .date = date,
        .region = keys->region,
        .service = "s3",
    };
    TRY(aws_sign(&request, keys, proof));
    web_call_header(c, "Authorization: %s", proof);
    return OK;
}

/* ---- lists ---- */

static err list_page(const struct web_listing *l, const char *token, struct web_list *to)
{
    struct web_call c = {0};
    const char *query = arena_format(
        &c.arena, "%s%s%sencoding-type=url&list-type=2&prefix=%s",
        *token ? "continuation-token=" : "", web_escape(&c.arena, token, false),
        *token ? (l->depth ? "&" : "&delimiter=%2F&") : (l->depth ? "" : "delimiter=%2F&"),
        web_escape(&c.arena, l->prefix, false));
    err e = set_address(&c, l->bucket, "", query);
    if (!e) e = web_list_ask(&c, &s3_service, l, s3_list_take, to);
    web_call_close(&c);
    return e;
}

/* ---- writing ---- */

/* A file larger than one part is sent in parts of S3_PART_BYTES, later ones larger; three at once.
 */
enum {
    S3_PART_BYTES = 8 << 20,
    S3_PARTS = 4,                /* in memory */
    S3_PARTS_MAX = 10000,        /* of a file, S3's limit */
    S3_PARTS_OF_A_SIZE = 1000,   /* then they are larger by S3_PART_BYTES: 440 GB in all */
    S3_COPY_BYTES_MAX = 1 << 30, /* in one request */
};

enum {
    UPLOAD_BYTES = 1024,
    ANSWER_BYTES = 16 << 10,
    ROOT_BYTES = 64,
    FINISH_TRIES =
        4, /* S3 may say in a success that putting parts together failed, and to ask again */
};

/* An upload of several parts: a name that the server gave it, and a tag of each part. */
struct multipart {
    const char *path;        /* borrowed */
    char name[UPLOAD_BYTES]; /* escaped; "": none was begun */
    char (*tags)[HTTP_TAG_BYTES];
    int count;
};

struct s3_upload {
    struct upload upload; /* first */
    struct multipart there;
};

/* ---- single requests ---- */

/* A call whose body is read; ret: [ANSWER_BYTES], NUL-terminated. The body of a 200 may still be an
 * error. */
static err ask(struct web_call *c, char *ret)
{
    c->http.to = ret;
    c->http.max = ANSWER_BYTES - 1;
    TRY(web_call_make(c, &s3_service));
    ret[c->http.answer.bytes] = '\0';
    char root[ROOT_BYTES];
    struct xml_text none = {0};
    xml_read(ret, c->http.answer.bytes, root, sizeof root, &none);
    if (strcmp(root, "Error") != 0) return OK;
    snprintf(c->http.answer.said, sizeof c->http.answer.said, "%s", ret);
    return http_refused(&c->http);
}

static err open_call(struct web_call *c, const char *method, const char *path, const char *query)
{
    web_call_begin(c, method, path);
    return s3_address(path, query, c);
}

static err s3_remove(const char *path)
{
    struct web_call c;
    err e = open_call(&c, "DELETE", path, "");
    if (!e) e = web_call_remove(&c, &s3_service);
    web_call_close(&c);
    return e;
}

static err put_whole(struct upload *u, const struct upload_part *p)
{
    struct web_call c;
    char answer[ANSWER_BYTES];
    err e = open_call(&c, "PUT", u->path, "");
    web_call_body(&c, p->memory, p->bytes);
    if (!e) e = ask(&c, answer);
    web_call_close(&c);
    return e;
}

/* ---- uploads of parts ---- */

/* The text of the element of that name; false: absent or too long. */
static bool find_text(const char *xml, const char *name, char *ret, size_t size)
{
    struct xml_text wanted[] = {{name, ret, size}, {0}};
    xml_read(xml, strlen(xml), NULL, 0, wanted);
    return ret[0] != '\0';
}

static err begin_multipart(struct multipart *u)
{
    struct web_call c;
    char answer[ANSWER_BYTES], name[UPLOAD_BYTES / 3];
    if (!u->tags) u->tags = calloc(S3_PARTS_MAX, sizeof *u->tags); /* an earlier try may have */
    if (!u->tags) return fail(ERR_MEMORY, "no memory to write %s", u->path);
    err e = open_call(&c, "POST", u->path, "uploads");
    web_call_body(&c, "", 0);
    if (!e) e = ask(&c, answer);
    if (!e && !find_text(answer, "UploadId", name, sizeof name))
        e = fail(ERR_IO, "%s: the server gave its upload no name", c.http.shown);
    if (!e) snprintf(u->name, sizeof u->name, "%s", web_escape(&c.arena, name, false));
    web_call_close(&c);
    return e;
}

static err open_part(struct web_call *c, const struct multipart *u, int number)
{
    char query[UPLOAD_BYTES + 64];
    snprintf(query, sizeof query, "partNumber=%d&uploadId=%s", number, u->name);
    return open_call(c, "PUT", u->path, query);
}

static err keep_tag(struct multipart *u, int number, const char *tag)
{
    if (!tag[0]) return fail(ERR_IO, "%s: the server gave part %d no tag", u->path, number);
    snprintf(u->tags[number - 1], HTTP_TAG_BYTES, "%s", tag);
    if (number > u->count) u->count = number;
    return OK;
}

/* The list of parts that the object is made of; freed by the caller. NULL: no memory. */
static char *list_parts(const struct multipart *u)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    fputs("<CompleteMultipartUpload>", out);
    for (int i = 0; i < u->count; i++)
        fprintf(out, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", i + 1, u->tags[i]);
    fputs("</CompleteMultipartUpload>", out);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}

/* ret_status: of the answer; tries: grows by how often it was asked for */
static err put_together(const struct multipart *u, const char *parts, int *ret_status, int *tries)
{
    struct web_call c;
    char answer[ANSWER_BYTES], query[UPLOAD_BYTES + 64];
    snprintf(query, sizeof query, "uploadId=%s", u->name);
    err e = open_call(&c, "POST", u->path, query);
    web_call_body(&c, parts, strlen(parts));
    c.http.is_counted = true;
    if (!e) e = ask(&c, answer);
    *ret_status = c.http.answer.status;
    *tries += c.http.answer.tries;
    web_call_close(&c);
    return e;
}

/* If an answer was lost, a retry finds the upload gone and the object there. */
static err finish_multipart(struct multipart *u, uint64_t bytes)
{
    struct file_state state;
    char *parts = list_parts(u);
    int status = 200, tries = 0;
    err e = parts ? ERR_IO : fail(ERR_MEMORY, "no memory to write %s", u->path);
    for (int i = 0; parts && e && status == 200 && i < FINISH_TRIES; i++)
        e = put_together(u, parts, &status, &tries);
    free(parts);
    const bool may_be_done = e && status == 404 && tries > 1;
    if (may_be_done && file_look(u->path, &state) == OK && state.bytes == bytes) e = OK;
    if (!e) u->name[0] = '\0';
    return e;
}

/* Also after a failure: parts left on the server cost money. */
static void drop_multipart(struct multipart *u)
{
    struct web_call c;
    char query[UPLOAD_BYTES + 64];
    free(u->tags);
    if (!u->name[0]) return;
    snprintf(query, sizeof query, "uploadId=%s", u->name);
    if (!open_call(&c, "DELETE", u->path, query)) (void)web_call_make(&c, &s3_service);
    web_call_close(&c);
}

/* ---- a file that is written ---- */

static struct multipart *there(struct upload *u)
{
    return &((struct s3_upload *)u)->there;
}

static err begin_upload(struct upload *u)
{
    there(u)->path = u->path;
    return begin_multipart(there(u));
}

static err start_part(struct upload *u, struct upload_part *p, uint64_t from)
{
    TRY(open_part(&p->call, there(u), p->number));
    if (p->number > S3_PARTS_MAX) return fail(ERR_INPUT, "%s: larger than S3 allows", u->path);
    web_call_body(&p->call, p->memory, p->bytes);
    return web_call_start(&p->call, &s3_service);
}

static err wait_part(struct upload *u, struct upload_part *p)
{
    const struct http_call *h = &p->call.http;
    TRY(http_wait(&p->call.http));
    return h->answer.status >= 300 ? http_refused(h)
                                   : keep_tag(there(u), p->number, h->answer.etag);
}

static err end_upload(struct upload *u)
{
    return finish_multipart(there(u), u->writer.bytes);
}

static void drop_upload(struct upload *u)
{
    drop_multipart(there(u));
}

static const struct upload_way way = {.writer_bytes = sizeof(struct s3_upload),
                                      .part_bytes = S3_PART_BYTES,
                                      .parts_of_a_size = S3_PARTS_OF_A_SIZE,
                                      .parts = S3_PARTS,
                                      .whole = put_whole,
                                      .begin = begin_upload,
                                      .start = start_part,
                                      .wait = wait_part,
                                      .end = end_upload,
                                      .drop = drop_upload};

/* ---- a copy, made by the server ---- */

static err name_copied(struct web_call *c, const char *from)
{
    char bucket[BUCKET_BYTES_MAX];
    const char *key = "";
    struct s3_request *own = c->own;
    TRY(web_split(from, bucket, &key));
    own->copied = arena_format(&c->arena, "/%s/%s", bucket, web_escape(&c->arena, key, true));
    return OK;
}

static err copy_at_once(const char *from, const char *to)
{
    struct web_call c;
    char answer[ANSWER_BYTES];
    err e = open_call(&c, "PUT", to, "");
    web_call_body(&c, "", 0);
    if (!e) e = name_copied(&c, from);
    if (!e) e = ask(&c, answer);
    web_call_close(&c);
    return e;
}

static err copy_part(struct multipart *u, const char *from, int number, uint64_t first,
                     uint64_t last)
{
    struct web_call c;
    char answer[ANSWER_BYTES], tag[HTTP_TAG_BYTES] = "";
    err e = open_part(&c, u, number);
    web_call_body(&c, "", 0);
    if (!e) e = name_copied(&c, from);
    if (!e)
        ((struct s3_request *)c.own)->copied_range = arena_format(
            &c.arena, "bytes=%llu-%llu", (unsigned long long)first, (unsigned long long)last);
    if (!e) e = ask(&c, answer);
    if (!e) (void)find_text(answer, "ETag", tag, sizeof tag);
    web_call_close(&c);
    return e ? e : keep_tag(u, number, tag);
}

static err copy_parts(const char *from, const char *to, uint64_t bytes)
{
    struct multipart u = {.path = to};
    char said[ERROR_TEXT_MAX];
    int number = 1;
    err e = begin_multipart(&u);
    for (uint64_t at = 0; !e && at < bytes; at += S3_COPY_BYTES_MAX) {
        const uint64_t left = bytes - at;
        const uint64_t now = left < S3_COPY_BYTES_MAX ? left : S3_COPY_BYTES_MAX;
        e = copy_part(&u, from, number++, at, at + now - 1);
    }
    if (!e) e = finish_multipart(&u, bytes);
    snprintf(said, sizeof said, "%s", error_text());
    drop_multipart(&u);
    return e ? fail(e, "%s", said) : OK;
}

static err s3_move(const char *from, const char *to)
{
    struct file_state state;
    TRY(file_look(from, &state));
    TRY(state.bytes > S3_COPY_BYTES_MAX ? copy_parts(from, to, state.bytes)
                                        : copy_at_once(from, to));
    return s3_remove(from);
}

/* ---- the service ---- */

static const char *const schemes[] = {"s3", NULL};
const struct web_service s3_service = {
    .files = {.schemes = schemes,
              WEB_FILE_READING,
              .match = web_match,
              UPLOAD_WRITING,
              .remove = s3_remove,
              .move = s3_move,
              .visit = web_visit},
    .upload = &way,
    .address = address_of,
    .sign = sign,
    .list = list_page,
};
