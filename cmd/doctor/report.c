/* report.c - see report.h. */
#include "cmd/doctor/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/base/standard_output.h"

enum { TEXT_MAX = 1024 };

static const char *const words[HEALTH_COUNT] = {"ok", "note", "WARNING", "BAD"};
static const char *const json_words[HEALTH_COUNT] = {"ok", "note", "warning", "bad"};

err report_open(struct report *r, bool is_quiet)
{
    *r = (struct report){.findings = json_array(), .is_quiet = is_quiet};
    return r->findings ? OK : fail(ERR_MEMORY, "no memory for a report");
}

void report_close(struct report *r)
{
    json_decref(r->findings);
}

void report_say(struct report *r, enum health health, const char *subject, const char *advice,
                const char *format, ...)
{
    char text[TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->counts[health]++;
    json_array_append_new(r->findings,
                          json_pack("{ss ss ss ss*}", "health", json_words[health], "subject",
                                    subject, "text", text, "advice", advice));
    if (r->is_quiet) return;
    printf("%-8s %s: %s\n", words[health], subject, text);
    if (advice) printf("         -> %s\n", advice);
    fflush(stdout);
}

static err print_json(const struct report *r)
{
    json_t *all = json_pack("{sO si si}", "findings", r->findings, "warnings",
                            r->counts[HEALTH_WARNING], "bad", r->counts[HEALTH_BAD]);
    const bool is_printed = all && !json_dumpf(all, stdout, JSON_PRESERVE_ORDER | JSON_INDENT(2));
    json_decref(all);
    if (!is_printed) return fail(ERR_MEMORY, "no memory to print the report");
    putchar('\n');
    return OK;
}

err report_finish(const struct report *r)
{
    const int warnings = r->counts[HEALTH_WARNING], bad = r->counts[HEALTH_BAD];
    if (r->is_quiet)
        TRY(print_json(r));
    else if (bad || warnings)
        printf("%d bad, %d warning%s\n", bad, warnings, warnings == 1 ? "" : "s");
    else
        printf("nothing is wrong\n");
    return standard_output_flush();
}
