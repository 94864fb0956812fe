/* rest.c - see rest.h. */
#include "cmd/serve/rest.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/json_words.h"
#include "cmd/serve/answer.h"
#include "core/base/clock.h"

enum {
    OK_200 = 200,
    BAD_REQUEST = 400,
    NOT_FOUND = 404,
    BAD_METHOD = 405,
    TOO_LARGE = 413,
    FAILED = 500,
    NO_SERVICE = 503,
    NAME_BYTES = 256,
    VERSION_DIGITS_MAX = 18,
};

static const char models_path[] = "/v1/models/";

/* /v1/models/NAME/versions/N:verb, /v1/models/NAME/labels/LABEL:verb */
struct rest_target {
    char name[NAME_BYTES], label[NAME_BYTES]; /* "": not given */
    int64_t version;                          /* -1: not given */
    const char *rest;                         /* the remainder: "", "/metadata", ":predict" */
};

/* ---- answers ---- */

/* Begins an answer in memory, so that it is sent whole or not at all. */
static FILE *begin(struct http_reply *r)
{
    r->type = "application/json";
    return open_memstream(&r->body, &r->body_bytes);
}

static void end(struct http_reply *r, FILE *out)
{
    if (!out || !fclose(out)) return;
    free(r->body);
    r->body = NULL;
}

__attribute__((format(printf, 3, 4))) static void say(struct http_reply *r, int status,
                                                      const char *format, ...)
{
    char text[ERROR_TEXT_MAX + NAME_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    FILE *out = begin(r);
    r->status = status;
    if (!out) return;
    fputs("{\"error\": ", out);
    json_write_text(out, text);
    fputs("}\n", out);
    end(r, out);
}

void rest_refuse(int status, const char *text, struct http_reply *r)
{
    say(r, status, "%.*s%s", (int)strcspn(text, "\n"), text,
        status == TOO_LARGE ? " (--max_body_mb)" : "");
}

static void bad_method(struct http_reply *r, const char *allow)
{
    r->allow = allow;
    say(r, BAD_METHOD, "Method Not Allowed: this is asked for by %s", allow);
}

/* ---- which model ---- */

static bool read_version(const char **at, int64_t *ret)
{
    static const char word[] = "/versions/";
    *ret = -1;
    if (strncmp(*at, word, sizeof word - 1)) return true;
    const char *digits = *at + sizeof word - 1;
    const size_t count = strspn(digits, "0123456789");
    if (count == 0 || count > VERSION_DIGITS_MAX) return false;
    *ret = strtoll(digits, NULL, 10);
    *at = digits + count;
    return true;
}

static bool read_name(const char **at, char ret[NAME_BYTES])
{
    const size_t length = strcspn(*at, "/:");
    if (length == 0 || length >= NAME_BYTES) return false;
    memcpy(ret, *at, length);
    ret[length] = '\0';
    *at += length;
    return true;
}

static bool read_target(const char *path, struct rest_target *ret)
{
    static const char word[] = "/labels/";
    *ret = (struct rest_target){.version = -1, .rest = path + sizeof models_path - 1};
    if (!read_name(&ret->rest, ret->name)) return false;
    if (strncmp(ret->rest, word, sizeof word - 1)) return read_version(&ret->rest, &ret->version);
    ret->rest += sizeof word - 1;
    return read_name(&ret->rest, ret->label);
}

static bool has_name(struct served *s, const char *name)
{
    const char *of = served_name(s);
    return of && strcmp(of, name) == 0;
}

/* A version number matches models with any label; without one, labels must match (or both lack). */
static bool is_meant(struct served *s, const struct rest_target *t)
{
    const char *label = served_label(s);
    if (!has_name(s, t->name)) return false;
    return t->version >= 0 || strcmp(label ? label : "", t->label) == 0;
}

/* A reference to the version; *of: its model, or NULL if none has that name or label. */
static struct version *find_version(const struct rest *rest, const struct rest_target *t,
                                    struct served **of)
{
    struct version *version = NULL;
    *of = NULL;
    for (int i = 0; i < rest->count && !version; i++) {
        if (!is_meant(rest->models[i], t)) continue;
        *of = rest->models[i];
        version = served_take(*of, t->version);
    }
    return version;
}

static bool is_model(const struct rest *rest, const char *name)
{
    bool is_one = false;
    for (int i = 0; i < rest->count; i++) is_one |= has_name(rest->models[i], name);
    return is_one;
}

static void not_found(const struct rest *rest, struct http_reply *r, const struct rest_target *t)
{
    if (*t->label && is_model(rest, t->name))
        say(r, BAD_REQUEST, "Unrecognized servable version label: %s", t->label);
    else if (t->version < 0)
        say(r, NOT_FOUND, "Servable not found for request: Latest(%s)", t->name);
    else
        say(r, NOT_FOUND, "Servable not found for request: Specific(%s, %lld)", t->name,
            (long long)t->version);
}

/* NULL: the reply says why */
static struct version *take(const struct rest *rest, const struct rest_target *t,
                            struct served **of, struct http_reply *r)
{
    struct version *version = find_version(rest, t, of);
    bool is_opening = false;
    for (int i = 0; i < rest->count; i++) is_opening |= !served_is_ready(rest->models[i]);
    if (!version && is_opening && (!*of || !served_is_ready(*of)))
        say(r, NO_SERVICE, "the model is being opened: try again");
    else if (!version)
        not_found(rest, r, t);
    return version;
}

/* ---- requests ---- */

static void write_available(FILE *out, bool is_first, int64_t version)
{
    fprintf(out,
            "%s{\"version\": \"%lld\", \"state\": \"AVAILABLE\", "
            "\"status\": {\"error_code\": \"OK\", \"error_message\": \"\"}}",
            is_first ? "" : ", ", (long long)version);
}

/* All versions served under that name, each once */
static void write_others(FILE *out, const struct rest *rest, const struct rest_target *t,
                         int64_t first)
{
    int64_t said[MODELS_MAX] = {first};
    int count = 1;
    for (int i = 0; i < rest->count; i++) {
        struct version *version =
            has_name(rest->models[i], t->name) ? served_take(rest->models[i], -1) : NULL;
        if (!version) continue;
        const int64_t number = version_number(version);
        bool is_said = false;
        for (int k = 0; k < count; k++) is_said |= said[k] == number;
        if (!is_said) write_available(out, false, number);
        if (!is_said && count < MODELS_MAX) said[count++] = number;
        served_give(rest->models[i], version);
    }
}

static void answer_status(const struct rest *rest, const struct rest_target *t,
                          struct http_reply *r)
{
    struct served *of;
    struct version *version = find_version(rest, t, &of);
    if (!version) {
        if (*t->label)
            not_found(rest, r, t);
        else if (t->version < 0)
            say(r, NOT_FOUND, "Could not find any versions of model %s", t->name);
        else
            say(r, NOT_FOUND, "Could not find version %lld of model %s", (long long)t->version,
                t->name);
        return;
    }
    FILE *out = begin(r);
    if (out) {
        fputs("{\"model_version_status\": [", out);
        write_available(out, true, version_number(version));
        if (t->version < 0 && !*t->label) write_others(out, rest, t, version_number(version));
        fputs("]}\n", out);
    }
    end(r, out);
    served_give(of, version);
}

static void answer_metadata(const struct rest *rest, const struct rest_target *t,
                            struct http_reply *r)
{
    struct served *of;
    struct version *version = take(rest, t, &of, r);
    if (!version) return;
    FILE *out = begin(r);
    if (out) answer_write_metadata(out, t->name, version);
    end(r, out);
    served_give(of, version);
}

enum rest_verb { PREDICT, CLASSIFY, REGRESS, VERBS };
static const char *const verbs[VERBS] = {":predict", ":classify", ":regress"};

static int status_of(err e)
{
    return e == ERR_INPUT ? BAD_REQUEST : e == ERR_MEMORY ? NO_SERVICE : FAILED;
}

static int write_answer(enum rest_verb verb, struct version *version, const struct taken_rows *rows,
                        const struct version_answer *answer, struct http_reply *r)
{
    FILE *out = begin(r);
    err e = OK;
    if (!out) return OK_200; /* the reply reports that there is no memory */
    if (verb == PREDICT) answer_write_predictions(out, version, rows, answer);
    if (verb == CLASSIFY) e = answer_write_classes(out, version, rows->rows, answer);
    if (verb == REGRESS) e = answer_write_numbers(out, version, rows->rows, answer);
    end(r, out);
    if (!e) return OK_200;
    free(r->body);
    r->body = NULL;
    say(r, BAD_REQUEST, "%s", error_text());
    return BAD_REQUEST;
}

static err check_size(const struct version *version, const struct taken_rows *rows)
{
    const struct graph *graph = version_graph(version);
    int64_t numbers = 0;
    for (int i = 0; i < graph->head_count; i++)
        numbers += shape_count_from(&graph->heads[i].loss.logits->shape, 1);
    if (rows->rows <= ANSWER_NUMBERS_MAX / numbers) return OK;
    return fail(ERR_INPUT, "%lld rows of %lld numbers: an answer has at most %d",
                (long long)rows->rows, (long long)numbers, (int)ANSWER_NUMBERS_MAX);
}

static int compute(const struct rest *rest, enum rest_verb verb, struct version *version,
                   const struct http_request *request, struct http_reply *r, int64_t *ret_rows)
{
    struct taken_rows rows;
    struct version_answer answer;
    int status =
        intake_read(version_intake(version), verb == PREDICT ? FORM_PREDICT : FORM_EXAMPLES,
                    request->body ? request->body : "", request->body_bytes, rest->rows_max, &rows);
    if (status) {
        say(r, status, "%s", error_text());
        return status;
    }
    *ret_rows = rows.rows;
    err e = check_size(version, &rows);
    if (e) {
        status = TOO_LARGE;
    } else {
        e = version_predict(version, &rows, &answer);
        status = e ? status_of(e) : write_answer(verb, version, &rows, &answer, r);
        if (!e) version_answer_free(&answer);
    }
    if (e) say(r, status, "%s", error_text());
    taken_rows_free(&rows);
    return status;
}

static void answer_verb(const struct rest *rest, enum rest_verb verb, const struct rest_target *t,
                        const struct http_request *request, struct http_reply *r)
{
    const uint64_t began_ns = clock_ns();
    struct served *of;
    int64_t rows = 0;
    struct version *version = take(rest, t, &of, r);
    int status = r->status;
    if (version) {
        status = compute(rest, verb, version, request, r, &rows);
        served_give(of, version);
    }
    if (of || !rest->is_named)
        tally_note_request(served_tally(of ? of : rest->models[0]), status, rows,
                           clock_ns() - began_ns);
}

static void malformed(const struct http_request *request, struct http_reply *r)
{
    say(r, BAD_REQUEST, "Malformed request: %s %.200s", request->is_post ? "POST" : "GET",
        request->path);
}

static void answer_model(const struct rest *rest, const struct http_request *request,
                         struct http_reply *r)
{
    struct rest_target t;
    if (!read_target(request->path, &t)) {
        malformed(request, r);
        return;
    }
    const int verb = text_find(verbs, VERBS, t.rest);
    if (verb >= 0 && request->is_post)
        answer_verb(rest, (enum rest_verb)verb, &t, request, r);
    else if (verb >= 0)
        bad_method(r, "POST");
    else if (strcmp(t.rest, "") && strcmp(t.rest, "/metadata"))
        malformed(request, r);
    else if (request->is_post)
        bad_method(r, "GET, HEAD");
    else if (*t.rest)
        answer_metadata(rest, &t, r);
    else
        answer_status(rest, &t, r);
}

/* ---- for operators ---- */

static void answer_metrics(const struct rest *rest, struct http_reply *r)
{
    struct served_counters *each = calloc((size_t)rest->count, sizeof *each);
    FILE *out = each ? begin(r) : NULL;
    for (int i = 0; out && i < rest->count; i++) {
        const char *name = rest->is_named ? served_name(rest->models[i]) : NULL;
        each[i].model = name ? name : "";
        each[i].label = served_label(rest->models[i]);
        tally_read(served_tally(rest->models[i]), each[i].at);
    }
    if (out) counters_write_served(out, each, rest->count);
    end(r, out);
    free(each);
    r->type = "text/plain; version=0.0.4; charset=utf-8";
}

static void answer_word(struct http_reply *r, int status, const char *text)
{
    r->status = status;
    r->body = strdup(text);
    r->body_bytes = strlen(text);
}

static void answer_ready(const struct rest *rest, struct http_reply *r)
{
    bool is_ready = true;
    for (int i = 0; i < rest->count; i++) is_ready &= served_is_ready(rest->models[i]);
    if (rest->is_ending)
        answer_word(r, NO_SERVICE, "not ready: it ends\n");
    else if (!is_ready)
        answer_word(r, NO_SERVICE, "not ready: a model is being opened\n");
    else
        answer_word(r, OK_200, "ready\n");
}

void rest_handle(void *context, const struct http_request *request, struct http_reply *r)
{
    const struct rest *rest = context;
    const char *path = request->path;
    const bool is_own =
        !strcmp(path, "/metrics") || !strcmp(path, "/healthz") || !strcmp(path, "/readyz");
    if (!strncmp(path, models_path, sizeof models_path - 1))
        answer_model(rest, request, r);
    else if (!strcmp(path, "/v1/models"))
        say(r, BAD_REQUEST, "Missing model name in request: /v1/models/NAME");
    else if (is_own && request->is_post)
        bad_method(r, "GET, HEAD");
    else if (!strcmp(path, "/metrics"))
        answer_metrics(rest, r);
    else if (!strcmp(path, "/healthz"))
        answer_word(r, OK_200, "ok\n");
    else if (!strcmp(path, "/readyz"))
        answer_ready(rest, r);
    else
        say(r, NOT_FOUND,
            "there are /v1/models/NAME, /v1/models/NAME/metadata, /v1/models/NAME:predict, "
            ":classify and :regress, /metrics, /healthz and /readyz");
}
