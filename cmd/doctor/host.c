/* host.c - checks this host, and what this process may use of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cores.h"
#include "cmd/doctor/doctor.h"
#include "cmd/run/descriptors.h"
#include "core/base/memory.h"
#include "core/data/images/image.h"
#include "core/data/packing/packing.h"
#include "kernels/device.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/tls.h"
#include "net/web/systems.h"

static const double GIGA = 1e9;

/* ---- processor ---- */

static void look_at_cores(struct report *r)
{
    const struct cores cores = cores_find("");
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int count = cores_count(&cores);
    report_say(r, HEALTH_OK, "processor", NULL, "%s", cpu_description());
    if (cores.quota > 0 && cores.quota < 1)
        report_say(r, HEALTH_WARNING, "cores", "give it a whole core (limits.cpu, --cpus)",
                   "the quota is %.2f of one: each step waits for its next share", cores.quota);
    else if (cores.quota > 0 && cores.quota < cores.affinity)
        report_say(r, HEALTH_NOTE, "cores", NULL,
                   "%d, by a quota of %.2f; %d of %ld may be used at a time", count, cores.quota,
                   cores.affinity, online);
    else if (count < online)
        report_say(r, HEALTH_NOTE, "cores", NULL, "%d of %ld, by affinity", count, online);
    else
        report_say(r, HEALTH_OK, "cores", NULL, "%d", count);
}

static void look_at_gpus(struct report *r)
{
    struct gpus gpus;
    if (!gpus_are_built_in)
        report_say(r, HEALTH_OK, "GPU", NULL, "this dtrain was built without CUDA");
    else if (gpu_list(&gpus))
        report_say(r, HEALTH_NOTE, "GPU", NULL, "%s", error_text());
    else
        report_say(r, HEALTH_OK, "GPU", NULL, "%d; dtrain devices lists them", gpus.count);
}

/* ---- memory ---- */

static void look_at_memory(struct report *r)
{
    const struct memory_room room = memory_room("");
    double total = 0, available = 0;
    memory_of_host("MemTotal", &total);
    memory_of_host("MemAvailable", &available);
    if (room.is_of_group)
        report_say(r, HEALTH_NOTE, "memory",
                   "dtrain check says what each ps needs; a task over the limit is killed (137)",
                   "%.2f GB, by a limit of control groups; the host has %.1f GB, %.1f available",
                   room.limit / GIGA, total / GIGA, available / GIGA);
    else
        report_say(r, HEALTH_OK, "memory", NULL, "%.1f GB, %.1f available", total / GIGA,
                   available / GIGA);
}

/* ---- files ---- */

static void look_at_descriptors(struct report *r, const struct run *run)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return;
    const rlim_t most = limit.rlim_max < LOOP_WATCH_MAX ? limit.rlim_max : LOOP_WATCH_MAX;
    const int needed = run->cluster.is_distributed ? task_descriptors_needed(&run->cluster) : 0;
    if (most < (rlim_t)needed)
        report_say(r, HEALTH_BAD, "open files", "raise ulimit -n (LimitNOFILE=, nofile)",
                   "%llu are allowed, and this task needs about %d with all its peers",
                   (unsigned long long)most, needed);
    else
        report_say(r, HEALTH_OK, "open files", NULL, "%llu are allowed", (unsigned long long)most);
}

static void look_at_temporary(struct report *r)
{
    const char *said = getenv("TMPDIR");
    const char *folder = said && said[0] ? said : "/tmp";
    struct statvfs space;
    if (access(folder, W_OK | X_OK))
        report_say(
            r, HEALTH_WARNING, "temporary files", "set TMPDIR to a folder of this task",
            "%s: %s: needed by a ps whose checkpoints cross the network, and for packed data",
            folder, strerror(errno));
    else if (statvfs(folder, &space) == 0)
        report_say(r, HEALTH_OK, "temporary files", NULL, "%s, %.1f GB free", folder,
                   (double)space.f_bavail * (double)space.f_frsize / GIGA);
}

/* ---- clock ---- */

static void look_at_clock(struct report *r)
{
    struct timex t = {0};
    char text[64];
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &utc);
    const int state = adjtimex(&t);
    if (state == TIME_ERROR || (state >= 0 && t.status & STA_UNSYNC))
        report_say(r, HEALTH_NOTE, "clock", "run chrony or systemd-timesyncd on the host",
                   "%s, and the kernel is not told that it is right: logs and summaries of several "
                   "hosts may not line up, and signed requests to storage may be refused",
                   text);
    else
        report_say(r, HEALTH_OK, "clock", NULL, "%s", text);
}

/* ---- libraries ---- */

static void look_at_library(struct report *r, const char *name, const char *version,
                            const char *needed_for)
{
    char subject[64];
    snprintf(subject, sizeof subject, "library %s", name);
    if (!version)
        report_say(r, HEALTH_NOTE, subject, NULL, "not built in: no %s", needed_for);
    else if (!version[0])
        report_say(r, HEALTH_NOTE, subject, "install it where that is needed",
                   "not installed: no %s", needed_for);
    else
        report_say(r, HEALTH_OK, subject, NULL, "%.*s", (int)strcspn(version, " "), version);
}

static void look_at_libraries(struct report *r)
{
    look_at_library(r, "libcurl", web_library_version(WEB_CURL), "data or checkpoints behind URLs");
    look_at_library(r, "libcrypto", web_library_version(WEB_CRYPTO), "signed requests (s3, gs)");
    look_at_library(r, "expat", web_library_version(WEB_EXPAT), "lists of files in s3");
    look_at_library(r, "libssl", tls_version(), "--key_file and --tls_cert");
    look_at_library(r, "libmicrohttpd", http_server_version(), "--http");
    look_at_library(r, "zstd", packing_zstd_version(), ".zst files");
    look_at_library(r, picture_jpeg.library, picture_jpeg.version(), "columns of JPEG files");
    look_at_library(r, picture_png.library, picture_png.version(), "columns of PNG files");
}

void doctor_host(struct report *r, const struct run *run)
{
    report_say(r, HEALTH_OK, "dtrain", NULL, "%s", version_text());
    look_at_cores(r);
    look_at_gpus(r);
    look_at_memory(r);
    look_at_descriptors(r, run);
    look_at_temporary(r);
    look_at_clock(r);
    look_at_libraries(r);
}
