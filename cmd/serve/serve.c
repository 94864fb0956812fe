/* serve.c - `dtrain serve SPEC.json --checkpoint=FOLDER`: predicts rows that clients send, through
 * TensorFlow Serving's REST interface. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/run/descriptors.h"
#include "cmd/serve/rest.h"
#include "core/base/clock.h"
#include "core/base/ending_signals.h"
#include "core/base/files/replace.h"
#include "core/base/log.h"
#include "net/notify.h"

enum {
    PORT_MAX = 65535,
    TURN_MS = 100,        /* pause between turns of models and checks for signals */
    OPENING_TURN_MS = 10, /* the same until all models serve */
    ADDRESS_BYTES = 320,
    BODIES_AT_ONCE = 8, /* of the largest size */
    BATCH_MAX = 1 << 16,
    ROWS_MAX = 1 << 20,
    CLIENTS_MAX = 4096,
    FILES_BESIDE = 128, /* open files besides clients, at least: of versions and libraries */
    SECONDS_MAX = 24 * 3600,
    WAIT_MS_MAX = 60000,
};

struct serve_flags {
    struct restored_flags shared;
    const char *models, *model_name, *host, *ready_file;
    int64_t port, max_batch, batch_wait_ms, max_rows, max_body_mb, max_clients;
    uint64_t poll_ms, silence_ms, drain_ms;
    bool follow;
};

#define COUNT(NAME, MEMBER, FALLBACK, LEAST, MOST, HELP)                                           \
    {                                                                                              \
        .name = NAME, .type = FIELD_INT, .offset = offsetof(struct serve_flags, MEMBER),           \
        .fallback = FALLBACK, .min = LEAST, .max = MOST, .help = HELP                              \
    }
#define SECONDS(NAME, MEMBER, FALLBACK, LEAST, HELP)                                               \
    {                                                                                              \
        .name = NAME, .type = FIELD_SECONDS, .offset = offsetof(struct serve_flags, MEMBER),       \
        .fallback = FALLBACK, .min = LEAST, .max = SECONDS_MAX, .help = HELP                       \
    }

static const struct field own_flags[] = {
    FIELD_OF(
        "models", STRING, struct serve_flags, models, .fallback = "null",
        .help =
            "file that names several models, instead of --checkpoint and SPEC.json: {\"models\": "
            "[{\"name\": \"clicks\", \"spec\": \"clicks.json\", \"checkpoint\": \"run\"}, ...]}, "
            "each also with \"set\", \"follow\" and \"version_labels\": [{\"label\": \"stable\", "
            "\"checkpoint\": \"run/model.ckpt-320\"}, ...]; relative paths begin at its folder"),
    FIELD_OF("model_name", STRING, struct serve_flags, model_name, .fallback = "null",
             .help = "NAME in /v1/models/NAME; default: the name in the spec, else model"),
    COUNT("port", port, "8501", 0, PORT_MAX,
          "port to answer at; 0: a free one, which --ready_file "
          "tells"),
    FIELD_OF(
        "host", STRING, struct serve_flags, host, .fallback = "127.0.0.1",
        .help = "address of this host to answer at: the default is reachable from this host alone; "
                "0.0.0.0: from all. Nothing is authenticated or encrypted: put a proxy in front "
                "for that"),
    FIELD_OF("ready_file", STRING, struct serve_flags, ready_file, .fallback = "null",
             .help = "file that is written once the server answers, with its port: {\"pid\": 4242, "
                     "\"http_port\": 8501}; removed at the end"),
    SECONDS("poll_secs", poll_ms, "2", 0.01,
            "seconds between two looks for a newer checkpoint in the folder"),
    FIELD_OF(
        "follow", BOOL, struct serve_flags, follow, .fallback = "false",
        .help = "also serve what the run publishes between checkpoints (train.publish), looked for "
                "as often as a newer checkpoint"),
    COUNT("max_batch", max_batch, "256", 1, BATCH_MAX,
          "maximum number of rows that are computed together"),
    COUNT("batch_wait_ms", batch_wait_ms, "0", 0, WAIT_MS_MAX,
          "milliseconds that a batch waits for more rows; 0: those that came while the one before "
          "was computed make a batch"),
    COUNT("max_rows", max_rows, "4096", 1, ROWS_MAX, "maximum number of rows of a request"),
    COUNT("max_body_mb", max_body_mb, "8", 1, 1024, "maximum megabytes of a request"),
    COUNT("max_clients", max_clients, "64", 1, CLIENTS_MAX,
          "maximum number of connections; others are closed; ulimit -n is raised for them"),
    SECONDS("silence_secs", silence_ms, "60", 1,
            "seconds after which a silent client is disconnected; one that is not answered, after "
            "twice as long"),
    SECONDS("drain_secs", drain_ms, "30", 0,
            "seconds that SIGTERM waits for requests that have begun"),
    {0},
};

/* A model, and how it is opened */
struct opened_model {
    struct restored_flags flags;
    struct version_options options;
};

struct serve {
    struct serve_flags flags;
    const char *spec;
    struct opened_model opened[MODELS_MAX];
    struct rest rest;
    struct http_server *server;
    bool is_ready;
};

/* --checkpoint is checked later: it is not needed with --models. */
static struct object serve_flags(struct arena *arena)
{
    struct object flags = restored_model_flags_with(own_flags, sizeof(struct serve_flags), arena);
    ((struct field *)object_field(&flags, "checkpoint"))->fallback = "null";
    return flags;
}

static void print_serve_help(FILE *out)
{
    struct arena arena = {0};
    const struct object flags = serve_flags(&arena);
    fputs("  dtrain serve --checkpoint=FOLDER [FLAGS] SPEC.json\n"
          "  dtrain serve --models=FILE.json [FLAGS]\n\n"
          "Answers the requests of TensorFlow Serving's REST clients:\n\n"
          "  GET  /v1/models/NAME[/versions/N]            the version that is served\n"
          "  GET  /v1/models/NAME[/versions/N]/metadata   inputs and outputs\n"
          "  POST /v1/models/NAME[/versions/N]:predict    {\"instances\": [...]} or {\"inputs\": "
          "...}\n"
          "       /v1/models/NAME/labels/LABEL...         a version by its label (--models)\n"
          "  POST ...:classify, ...:regress               {\"examples\": [...]}\n"
          "  GET  /healthz, /readyz, /metrics\n\n"
          "A row is an object of cells where the spec has columns, read as those of a file are;\n"
          "else the numbers as the data store them. Outputs have the names that `dtrain predict`\n"
          "gives them. A newer checkpoint in the folder is loaded while requests continue; its\n"
          "version is its global step. On SIGTERM the server finishes the requests that have\n"
          "begun, and exits with 0.\n\n",
          out);
    flags_help(out, &flags);
    arena_free(&arena);
}

/* ---- the ready file ---- */

static err remove_ready_file(const struct serve *s)
{
    const char *path = s->flags.ready_file;
    if (!path || unlink(path) == 0 || errno == ENOENT) return OK;
    return fail(ERR_IO, "--ready_file: cannot remove %s: %s", path, strerror(errno));
}

static err tell_ready(struct serve *s)
{
    char text[ADDRESS_BYTES];
    s->is_ready = true;
    snprintf(text, sizeof text, "{\"pid\": %d, \"http_port\": %d}\n", (int)getpid(),
             http_server_port(s->server));
    if (s->flags.ready_file && file_replace(s->flags.ready_file, text, strlen(text)))
        return fail_prefix(ERR_IO, "--ready_file");
    if (notify("READY=1")) log_line(LOG_WARNING, "cannot say that it is ready: %s", error_text());
    return OK;
}

/* ---- life ---- */

/* Waits up to ms for one of these signals. */
static bool has_ended(const sigset_t *signals, uint64_t ms)
{
    const struct timespec wait = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    return sigtimedwait(signals, NULL, &wait) > 0;
}

/* However many clients connect, descriptors must be left to read the next checkpoint. */
static err check_descriptors(int64_t clients)
{
    const uint64_t most = descriptors_raise(), needed = (uint64_t)clients + FILES_BESIDE;
    if (most >= needed) return OK;
    return fail(ERR_INPUT,
                "--max_clients=%lld: ulimit -n allows %llu open files and connections, and %llu "
                "are needed",
                (long long)clients, (unsigned long long)most, (unsigned long long)needed);
}

static err open_server(struct serve *s)
{
    char address[ADDRESS_BYTES];
    const struct serve_flags *f = &s->flags;
    const bool is_v6 = strchr(f->host, ':') && *f->host != '[';
    const size_t body = (size_t)f->max_body_mb << 20;
    const struct http_work work = {.clients = (int)f->max_clients,
                                   .clients_of_host = (int)f->max_clients,
                                   .silence_s = (int)(f->silence_ms / 1000),
                                   .answer_s = 2 * (int)(f->silence_ms / 1000),
                                   .body_max = body,
                                   .bodies_max = BODIES_AT_ONCE * body};
    if (strlen(f->host) + sizeof "[]:65535" > sizeof address)
        return fail(ERR_INPUT, "--host: \"%.64s...\" is too long", f->host);
    snprintf(address, sizeof address, is_v6 ? "[%s]:%lld" : "%s:%lld", f->host, (long long)f->port);
    const struct http_server_options options = {.address = address,
                                                .work = &work,
                                                .handle = rest_handle,
                                                .refuse = rest_refuse,
                                                .context = &s->rest};
    return http_server_open(&options, &s->server);
}

static err open_model(struct serve *s, const struct listed_model *m)
{
    const struct serve_flags *f = &s->flags;
    struct opened_model *o = &s->opened[s->rest.count];
    o->flags = f->shared;
    o->flags.checkpoint = m->checkpoint;
    o->flags.set = m->set;
    o->options = (struct version_options){.flags = &o->flags,
                                          .spec = m->spec,
                                          .label = m->label,
                                          .max_batch = f->max_batch,
                                          .batch_wait_ms = (uint64_t)f->batch_wait_ms,
                                          .follows = f->follow || m->follow};
    TRY(tally_open(&o->options.tally));
    const err e = served_open(m->name, &o->options, &s->rest.models[s->rest.count]);
    if (e)
        tally_close(o->options.tally);
    else
        s->rest.count++;
    return e;
}

static err open_models(struct serve *s, struct arena *arena)
{
    const struct serve_flags *f = &s->flags;
    struct listed_model only = {.name = f->model_name,
                                .spec = s->spec,
                                .checkpoint = f->shared.checkpoint,
                                .set = f->shared.set,
                                .follow = f->follow};
    struct objects models = {&only, 1};
    if (f->models) TRY(models_file_read(f->models, arena, &models));
    s->rest.rows_max = f->max_rows;
    s->rest.is_named = f->models;
    for (int i = 0; i < models.count; i++)
        TRY(open_model(s, (const struct listed_model *)models.at + i));
    return OK;
}

static err turn(struct serve *s, bool looks)
{
    bool is_ready = true;
    for (int i = 0; i < s->rest.count; i++) {
        const err e = served_turn(s->rest.models[i], looks);
        const char *label = served_label(s->rest.models[i]);
        if (e && label)
            return fail_prefix(e, "model \"%s\", label \"%s\"", served_name(s->rest.models[i]),
                               label);
        if (e && s->rest.is_named)
            return fail_prefix(e, "model \"%s\"", served_name(s->rest.models[i]));
        if (e) return e;
        is_ready &= served_is_ready(s->rest.models[i]);
    }
    return is_ready && !s->is_ready ? tell_ready(s) : OK;
}

static void drain(struct serve *s)
{
    s->rest.is_ending = true;
    const int left = http_server_drain(s->server, s->flags.drain_ms);
    if (left)
        log_line(LOG_WARNING, "%d request%s had not ended after %g s (--drain_secs)", left,
                 left == 1 ? "" : "s", (double)s->flags.drain_ms / 1000);
    log_line(LOG_INFO, "ended");
}

/* Serves until a signal. One that comes earlier does not wait until models are open. */
static err serve_until_signal(struct serve *s, const sigset_t *signals)
{
    uint64_t looked_ms = 0;
    log_line(LOG_INFO, "answers HTTP at %s, port %d: /v1/models/", s->flags.host,
             http_server_port(s->server));
    do {
        const uint64_t now_ms = clock_ms();
        const bool looks = !looked_ms || now_ms >= looked_ms + s->flags.poll_ms;
        if (looks) looked_ms = now_ms;
        TRY(turn(s, looks));
    } while (!has_ended(signals, s->is_ready ? TURN_MS : OPENING_TURN_MS));
    if (!s->is_ready) _exit(EXIT_DONE);
    drain(s);
    return OK;
}

static void close_all(struct serve *s)
{
    if (s->is_ready && remove_ready_file(s)) log_line(LOG_WARNING, "%s", error_text());
    http_server_close(s->server);
    for (int i = 0; i < s->rest.count; i++) {
        served_close(s->rest.models[i]);
        tally_close(s->opened[i].options.tally);
    }
}

/* Reads the flags: for one model, or for a file that lists several. */
static err parse(struct serve *s, int argc, char **argv, struct arena *arena)
{
    const struct object object = serve_flags(arena);
    int specs = 0;
    err e = flags_parse(&object, argc, argv, arena, &s->flags, &s->spec, 1, &specs);
    const bool is_one =
        specs || s->flags.shared.checkpoint || s->flags.shared.set.count || s->flags.model_name;
    if (!specs) s->spec = NULL;
    if (!e && s->flags.models && is_one)
        e = fail(ERR_INPUT, "--models names models with all that belongs to them: no SPEC.json, "
                            "--checkpoint, --set and --model_name beside it");
    if (!e && !s->flags.models && !specs)
        e = fail(ERR_INPUT, "no SPEC.json was named, and no file of --models");
    if (!e && !s->flags.models && !s->flags.shared.checkpoint)
        e = fail(ERR_INPUT, "--checkpoint is missing: a folder (its newest checkpoint), a prefix "
                            "or an .index file");
    return e ? fail_prefix(e, "%s", argv[0]) : OK;
}

static err serve(struct serve *s, int argc, char **argv, struct arena *arena)
{
    const sigset_t signals = ending_signals();
    TRY(parse(s, argc, argv, arena));
    if (s->spec && strcmp(s->spec, "-") == 0)
        return fail(ERR_INPUT,
                    "serve: the spec is read again with each checkpoint, and has to be a "
                    "file");
    if (s->flags.port == 0 && !s->flags.ready_file)
        return fail(ERR_INPUT, "serve: --port=0 needs --ready_file, where it says which it is");
    TRY(check_descriptors(s->flags.max_clients));
    TRY(remove_ready_file(s));
    sigprocmask(SIG_BLOCK, &signals, NULL);
    TRY(open_models(s, arena));
    TRY(open_server(s));
    return serve_until_signal(s, &signals);
}

static int cmd_serve(int argc, char **argv)
{
    struct arena arena = {0};
    struct serve *s = arena_new(&arena, sizeof *s);
    cpu_environment_prepare(argv);
    const err e = serve(s, argc - 1, argv + 1, &arena);
    const int code = e ? report_error(e) : EXIT_DONE;
    close_all(s);
    arena_free(&arena);
    return code;
}

const struct command command_serve = {
    .name = "serve",
    .arguments = "[FLAGS] SPEC.json",
    .summary = "answer requests for a model's predictions",
    .run = cmd_serve,
    .topic = "serve a model's predictions over HTTP",
    .print_help = print_serve_help,
};
