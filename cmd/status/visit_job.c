/* visit_job.c - see visit_job.h. */
#include "cmd/status/visit_job.h"

#include <errno.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/files/file_system.h"
#include "core/base/log.h"
#include "core/cluster/role/verdict.h"

enum { READY_FILE_BYTES_MAX = 1 << 20 };

/* Reads the ready file that ps/0 has written (cmd/launch/ready.h). */
static err read_ready_file(struct job_flags *flags, struct arena *arena)
{
    json_error_t error;
    const char *task = "", *address = NULL;
    if (flags->cluster.ps_hosts || flags->cluster.coordinator)
        return fail(ERR_INPUT, "--ready_file stands for --ps_hosts and --coordinator");
    FILE *file;
    const err opened = file_open_text(flags->ready_file, READY_FILE_BYTES_MAX, &file);
    if (opened) return fail_prefix(opened, "--ready_file");
    json_t *json = json_loadf(file, 0, &error);
    fclose(file);
    if (!json)
        return fail(ERR_INPUT,
                    "--ready_file=%s: expected what ps/0 has written there (its --ready_file): %s",
                    flags->ready_file, error.text);
    const int failed = json_unpack(json, "{ss s?s}", "task", &task, "address", &address);
    err e = OK;
    if (failed)
        e = fail(ERR_INPUT,
                 "--ready_file=%s: expected what ps/0 has written there (its --ready_file)",
                 flags->ready_file);
    else if (strcmp(task, "ps/0") == 0 && address)
        flags->cluster.ps_hosts = arena_string(arena, address);
    else
        e = fail(ERR_INPUT, "--ready_file=%s is of %.32s, not of ps/0%s", flags->ready_file, task,
                 address ? ""
                         : ": a process that trains alone has none, and is looked at by its "
                           "--http, its log or SIGUSR1");
    json_decref(json);
    return e;
}

enum { WORDS_MAX = 2 };

err job_visit_read(struct job_visit *v, const struct object *object, int argc, char **argv,
                   void *ret_flags, struct job_flags *flags, const char **ret_words, int most)
{
    const char *words[WORDS_MAX + 1]; /* one more, to name the first that is too many */
    int count;
    const err e = flags_parse(object, argc, argv, &v->arena, ret_flags, words, most + 1, &count);
    if (e) return fail_prefix(e, "%s", object->name);
    if (count > most)
        return fail(ERR_INPUT, "%s: unexpected argument \"%.64s\"", object->name, words[most]);
    for (int i = 0; i < most; i++) ret_words[i] = i < count ? words[i] : NULL;
    if (flags->ready_file) {
        if (!flags_given(object, argc, argv, "ps_hosts")) flags->cluster.ps_hosts = NULL;
        TRY(read_ready_file(flags, &v->arena));
    }
    if (!flags->cluster.ps_hosts && !flags->cluster.coordinator && !flags->cluster.cluster)
        return fail(ERR_INPUT,
                    "%s needs --ps_hosts, or --coordinator and --cluster, or --ready_file: where "
                    "the job is found",
                    object->name);
    return visited_read(&v->visited, &flags->cluster, object->name, &v->arena);
}

static int count_up(const struct visitor *visitor)
{
    int count = 0;
    for (int ps = 0; ps < visitor_ps_count(visitor); ps++) count += visitor_is_up(visitor, ps);
    return count;
}

err job_visit_open(struct job_visit *v, const struct job_flags *flags, bool all)
{
    v->timeout_ms = flags->timeout_ms;
    const struct visitor_options options = {.only_first = !all, .any_count = true};
    const err e = visited_open(&v->visited, options, flags->timeout_ms, &v->arena, &v->visitor);
    if (e != ERR_TIMEOUT || !all || !v->visitor || !count_up(v->visitor)) return e;
    log_line(LOG_WARNING, "%s", error_text());
    return OK;
}

void job_visit_close(struct job_visit *v)
{
    visited_close(&v->visited);
    arena_free(&v->arena);
}

int job_visit_ps_count(const struct job_visit *v)
{
    return visitor_ps_count(v->visitor);
}

bool job_visit_is_up(const struct job_visit *v, int ps)
{
    return visitor_is_up(v->visitor, ps);
}

const char *job_visit_trouble(const struct job_visit *v, int ps)
{
    return visitor_is_up(v->visitor, ps) ? "" : visitor_trouble(v->visitor, ps);
}

err job_visit_ask(struct job_visit *v, int ps, json_t *ask, json_t **ret)
{
    if (!ask) return fail(ERR_MEMORY, "no memory to ask");
    err e = visitor_ask(v->visitor, ps, ask);
    json_decref(ask);
    if (!e) e = visitor_wait_all(v->visitor, v->timeout_ms);
    if (e) {
        visitor_forget(v->visitor, ps); /* else the next ask would wait for this answer, too */
        return e;
    }
    *ret = visitor_answer(v->visitor, ps);
    const char *error = json_string_value(json_object_get(*ret, "error"));
    const bool is_asked_wrongly = json_integer_value(json_object_get(*ret, "code")) == EXIT_INPUT;
    return error ? fail(is_asked_wrongly ? ERR_INPUT : ERR_PEER, "ps/%d: %s", ps, error) : OK;
}

bool job_visit_job_has_ended(const struct job_visit *v)
{
    return v->visitor && visitor_verdict(v->visitor)->has_come;
}

bool job_visit_goes_on(const struct job_visit *v, err e)
{
    return (e == ERR_PEER || e == ERR_TIMEOUT) && !job_visit_job_has_ended(v);
}

err job_visit_rest(struct job_visit *v, uint64_t ms)
{
    const uint64_t until_ms = clock_ms() + ms;
    for (uint64_t now_ms = clock_ms(); now_ms < until_ms && !job_visit_job_has_ended(v);
         now_ms = clock_ms())
        visitor_poll(v->visitor, (int)(until_ms - now_ms));
    if (!job_visit_job_has_ended(v)) return OK;
    const struct visitor_verdict *verdict = visitor_verdict(v->visitor);
    return fail(ERR_PEER, "the job has ended%s%s", verdict->text[0] ? ": " : "", verdict->text);
}
