/* ready.c - see ready.h. */
#include "cmd/launch/ready.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/run/http.h"
#include "core/base/files/replace.h"
#include "core/base/log.h"
#include "core/cluster/description/ports.h"
#include "net/notify.h"

enum { LINE_BYTES_MAX = ADDRESS_MAX + TASK_NAME_MAX + 96 };

err ready_check(const struct run *run)
{
    const enum run_kind kind = run_kind(run);
    const struct cluster_spec *cluster = &run->cluster;
    const bool is_called = kind == RUN_PS || (kind == RUN_CHIEF && spec_is_in_graph(&run->spec));
    if (kind == RUN_WORKER && spec_is_in_graph(&run->spec)) {
        const struct strings chief = {cluster->hosts[JOB_WORKER].at, 1};
        return ports_check_known(JOB_WORKER, &chief, "a worker that it reads for");
    }
    if (!is_called || run->flags.listening.ready_file) return OK;
    const char *own = cluster->hosts[cluster->job].at[cluster->task];
    if (!port_is_open(own)) return OK;
    return fail(ERR_INPUT,
                "%s/%d at %s chooses its port when it starts: it needs --ready_file, where it "
                "says which",
                job_name(cluster->job), cluster->task, own);
}

static struct ready opened; /* static: a signal handler may use it after the run */

static void close_opened(int signo)
{
    ready_close(&opened);
}

err ready_open(const struct run *run, struct ready **ret)
{
    const char *path = run->flags.listening.ready_file;
    struct stat left;
    opened.run = run;
    if (path) snprintf(opened.path, sizeof opened.path, "%s", path);
    *ret = &opened;
    tasks_end_by(close_opened);
    if (!path || lstat(path, &left)) return OK; /* other errors are reported when it is written */
    if (!S_ISREG(left.st_mode))
        return fail(ERR_INPUT, "--ready_file: %s is there, and no file", path);
    if (unlink(path))
        return fail(ERR_IO, "--ready_file: cannot remove %s: %s", path, strerror(errno));
    return OK;
}

static err write_file(struct ready *ready, const char *text)
{
    struct stat written;
    ready->is_written = true;
    const err e = file_replace(ready->path, text, strlen(text));
    ready->is_written = !e;
    if (e) return fail_prefix(e, "--ready_file");
    if (stat(ready->path, &written) == 0) ready->file = written.st_ino;
    return OK;
}

static err tell_by_file(struct ready *ready, const char *address)
{
    const struct cluster_spec *cluster = &ready->run->cluster;
    char name[TASK_NAME_MAX] = "evaluator";
    if (!cluster->is_distributed)
        task_name(JOB_WORKER, 0, name);
    else if (!cluster->is_evaluator)
        task_name(cluster->job, cluster->task, name);
    json_t *said = json_pack("{ss ss* si}", "task", name, "address", address, "pid", (int)getpid());
    const int port = task_http_port(ready->run->http);
    if (said && port) json_object_set_new(said, "http_port", json_integer(port));
    char *text = said ? json_dumps(said, JSON_PRESERVE_ORDER) : NULL;
    char line[LINE_BYTES_MAX];
    snprintf(line, sizeof line, "%s\n", text ? text : "");
    const err e = text ? write_file(ready, line) : fail(ERR_MEMORY, "no memory for --ready_file");
    free(text);
    json_decref(said);
    return e;
}

/* A failed NOTIFY_SOCKET is only logged. */
err ready_tell(struct ready *ready, const char *address)
{
    if (ready->path[0]) TRY(tell_by_file(ready, address));
    if (notify("READY=1")) log_line(LOG_WARNING, "cannot say that it is ready: %s", error_text());
    return OK;
}

/* Async-signal-safe. */
void ready_close(struct ready *ready)
{
    struct stat there;
    if (!ready || !atomic_exchange(&ready->is_written, false)) return;
    if (stat(ready->path, &there)) return;
    if (!ready->file || there.st_ino == ready->file) unlink(ready->path);
}
