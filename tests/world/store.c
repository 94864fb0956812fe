/* store.c - see store.h: objects, ranges, lists, copies, and uploads of parts. */
#include "tests/world/store.h"

#include "tests/world/service.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 256, PARTS_MOST = 16, UPLOADS_MOST = 32, TEXT_BYTES = 1 << 20 };

struct object {
    struct object *next; /* in the order of names */
    char name[NAME_MAX_BYTES];
    char *bytes;
    size_t count;
    uint64_t tag;
};

static struct object *objects;
static uint64_t tags;

static struct upload {
    uint64_t number; /* 0: free */
    char name[NAME_MAX_BYTES];
    struct object parts[PARTS_MOST];
} uploads[UPLOADS_MOST];

static char text[TEXT_BYTES];

static void put(struct object *object, const char *bytes, size_t count)
{
    object->bytes = realloc(object->bytes, count + 1);
    memcpy(object->bytes, bytes, count);
    object->count = count;
    object->tag = ++tags;
}

static struct object **place_of(const char *name)
{
    struct object **at = &objects;
    while (*at && strcmp((*at)->name, name) < 0) at = &(*at)->next;
    return at;
}

static struct object *find(const char *name)
{
    struct object *at = *place_of(name);
    return at && strcmp(at->name, name) == 0 ? at : NULL;
}

static struct object *make(const char *name)
{
    struct object **at = place_of(name), *ret = find(name);
    if (ret) return ret;
    ret = calloc(1, sizeof *ret);
    snprintf(ret->name, sizeof ret->name, "%s", name);
    ret->next = *at;
    return *at = ret;
}

const char *store_name(const char *prefix, int index)
{
    for (const struct object *at = objects; at; at = at->next)
        if (strncmp(at->name, prefix, strlen(prefix)) == 0 && index-- == 0)
            return at->name + strlen(prefix);
    return NULL;
}

const char *store_bytes(const char *name, size_t *ret_count)
{
    const struct object *object = find(name);
    if (object) *ret_count = object->count;
    return object ? object->bytes : NULL;
}

void store_forget_uploads(void)
{
    for (int i = 0; i < UPLOADS_MOST; i++) uploads[i].number = 0;
}

/* ---- answers ---- */

static void refuse(struct response *response, int status, const char *code)
{
    response->status = status;
    response->body = text;
    response->body_bytes =
        (size_t)snprintf(text, sizeof text, "<Error><Code>%s</Code></Error>", code);
}

static void say_text(struct response *response)
{
    response->body = text;
    response->body_bytes = strlen(text);
}

static void say_tag(struct response *response, uint64_t tag)
{
    snprintf(response->headers, sizeof response->headers, "ETag: \"%llu\"\r\n",
             (unsigned long long)tag);
}

/* What %XX stands for; query keys are looked for in what was sent. */
static void decode(const char *from, size_t count, char *ret, size_t size)
{
    size_t to = 0;
    for (size_t i = 0; i < count && to + 1 < size; i++) {
        unsigned byte = (unsigned char)from[i];
        if (byte == '%' && i + 2 < count && sscanf(from + i + 1, "%2x", &byte) == 1) i += 2;
        ret[to++] = (char)byte;
    }
    ret[to] = '\0';
}

static bool query_has(const char *query, const char *key, char *ret, size_t size)
{
    const size_t bytes = strlen(key);
    for (const char *at = query; at && *at; at = strchr(at, '&') ? strchr(at, '&') + 1 : NULL)
        if (strncmp(at, key, bytes) == 0 && strchr("=&", at[bytes])) {
            const char *value = at + bytes + (at[bytes] == '=');
            decode(value, strcspn(value, "&"), ret, size);
            return true;
        }
    return false;
}

static void get(const struct object *object, const struct request *request,
                struct response *response)
{
    char range[64];
    unsigned long long first = 0, last = object ? object->count - 1 : 0;
    if (!object) {
        refuse(response, 404, "NoSuchKey");
        response->has_no_body = strcmp(request->method, "HEAD") == 0;
        return;
    }
    if (request_header(request, "Range", range, sizeof range)) {
        sscanf(range, "bytes=%llu-%llu", &first, &last);
        if (first >= object->count) {
            refuse(response, 416, "InvalidRange");
            return;
        }
        if (last >= object->count) last = object->count - 1;
        response->status = 206;
    }
    say_tag(response, object->tag);
    const size_t used = strlen(response->headers);
    if (response->status == 206)
        snprintf(response->headers + used, sizeof response->headers - used,
                 "Content-Range: bytes %llu-%llu/%zu\r\n", first, last, object->count);
    response->body = object->bytes + first;
    response->body_bytes = object->count ? last + 1 - first : 0;
    response->has_no_body = strcmp(request->method, "HEAD") == 0;
}

/* ---- uploads ---- */

static struct upload *upload_of(const char *query)
{
    char number[32];
    if (!query_has(query, "uploadId", number, sizeof number)) return NULL;
    for (int i = 0; i < UPLOADS_MOST; i++)
        if (uploads[i].number && uploads[i].number == strtoull(number, NULL, 10))
            return &uploads[i];
    return NULL;
}

static void begin_upload(const char *name, struct response *response)
{
    static uint64_t numbers;
    struct upload *upload = &uploads[numbers % UPLOADS_MOST]; /* the oldest is forgotten */
    memset(upload, 0, sizeof *upload);
    upload->number = ++numbers;
    snprintf(upload->name, sizeof upload->name, "%s", name);
    snprintf(text, sizeof text,
             "<InitiateMultipartUploadResult><UploadId>%llu</UploadId>"
             "</InitiateMultipartUploadResult>",
             (unsigned long long)upload->number);
    say_text(response);
}

/* Parts that are named with the tags that they have. */
static void finish_upload(struct upload *upload, const struct request *request,
                          struct response *response)
{
    struct object *object = make(upload->name);
    object->count = 0;
    for (int i = 0; i < PARTS_MOST && upload->parts[i].tag; i++) {
        const struct object *part = &upload->parts[i];
        char tag[64];
        snprintf(tag, sizeof tag, "<ETag>\"%llu\"</ETag>", (unsigned long long)part->tag);
        if (!memmem(request->body, request->body_bytes, tag, strlen(tag))) {
            refuse(response, 400, "InvalidPart");
            return;
        }
        object->bytes = realloc(object->bytes, object->count + part->count + 1);
        memcpy(object->bytes + object->count, part->bytes, part->count);
        object->count += part->count;
    }
    object->tag = ++tags;
    upload->number = 0;
    snprintf(text, sizeof text, "<CompleteMultipartUploadResult/>");
    say_text(response);
}

static void put_object(const char *name, const struct request *request, struct response *response)
{
    char source[NAME_MAX_BYTES * 3], from[NAME_MAX_BYTES];
    if (!request_header(request, "x-amz-copy-source", source, sizeof source)) {
        struct object *object = make(name);
        put(object, request->body, request->body_bytes);
        say_tag(response, object->tag);
        return;
    }
    decode(source + 1, strlen(source + 1), from, sizeof from);
    const struct object *copied = find(from);
    if (!copied) {
        refuse(response, 404, "NoSuchKey");
        return;
    }
    struct object *object = make(name);
    if (object != copied) put(object, copied->bytes, copied->count);
    snprintf(text, sizeof text, "<CopyObjectResult><ETag>\"%llu\"</ETag></CopyObjectResult>",
             (unsigned long long)object->tag);
    say_text(response);
}

static void of_upload(struct upload *upload, const char *query, const struct request *request,
                      struct response *response)
{
    char number[16];
    if (!upload)
        refuse(response, 404, "NoSuchUpload");
    else if (*request->method == 'D')
        upload->number = 0, response->status = 204;
    else if (*request->method == 'P' && request->method[1] == 'O')
        finish_upload(upload, request, response);
    else if (query_has(query, "partNumber", number, sizeof number) && atoi(number) >= 1 &&
             atoi(number) <= PARTS_MOST) {
        struct object *part = &upload->parts[atoi(number) - 1];
        put(part, request->body, request->body_bytes);
        say_tag(response, part->tag);
    }
}

/* ---- lists ---- */

static void list(const char *bucket, const char *query, struct response *response)
{
    char prefix[NAME_MAX_BYTES] = "", delimiter[8], whole[2 * NAME_MAX_BYTES];
    const bool is_flat = query_has(query, "delimiter", delimiter, sizeof delimiter);
    query_has(query, "prefix", prefix, sizeof prefix);
    snprintf(whole, sizeof whole, "%s/%s", bucket, prefix);
    char *to = text;
    to += sprintf(to, "<ListBucketResult><IsTruncated>false</IsTruncated>");
    const char *name;
    char before[NAME_MAX_BYTES] = "";
    for (int i = 0; (name = store_name(whole, i)) && to < text + TEXT_BYTES - 1024; i++) {
        const int folder = is_flat && strchr(name, '/') ? (int)(strchr(name, '/') - name) + 1 : 0;
        if (!folder)
            to += sprintf(to, "<Contents><Key>%s%s</Key></Contents>", prefix, name);
        else if (strncmp(before, name, (size_t)folder) != 0)
            to += sprintf(to, "<CommonPrefixes><Prefix>%s%.*s</Prefix></CommonPrefixes>", prefix,
                          folder, name);
        snprintf(before, sizeof before, "%s", name);
    }
    strcpy(to, "</ListBucketResult>");
    say_text(response);
}

static void act(const struct request *request, struct response *response)
{
    char name[NAME_MAX_BYTES], ignored[NAME_MAX_BYTES];
    const char *query = strchr(request->target, '?');
    const size_t length = query ? (size_t)(query - request->target) : strlen(request->target);
    decode(request->target + 1, length - 1, name, sizeof name);
    query = query ? query + 1 : "";
    if (query_has(query, "list-type", ignored, sizeof ignored))
        list(name, query, response);
    else if (query_has(query, "uploads", ignored, sizeof ignored))
        begin_upload(name, response);
    else if (query_has(query, "uploadId", ignored, sizeof ignored))
        of_upload(upload_of(query), query, request, response);
    else if (*request->method == 'G' || *request->method == 'H')
        get(find(name), request, response);
    else if (*request->method == 'P')
        put_object(name, request, response);
    else {
        struct object **at = place_of(name);
        if (find(name)) *at = (*at)->next;
        response->status = 204;
    }
}

void store_start(void)
{
    service_start(STORE_HOST, STORE_PORT, act);
}
