/* findings.c - see findings.h. */
#include "cmd/findings.h"

#include <stdarg.h>
#include <stdio.h>

void findings_say(struct findings *f, enum finding_level level, const char *format, ...)
{
    if (f->count == f->most) return;
    struct finding *finding = &f->at[f->count++];
    va_list list;
    va_start(list, format);
    vsnprintf(finding->text, sizeof finding->text, format, list);
    va_end(list);
    finding->rule = f->rule;
    finding->level = level;
}

void findings_print(const struct finding *findings, int count)
{
    for (int i = 0; i < count; i++)
        printf("%s %s\n", findings[i].level == FINDING_WARNING ? "!" : "-", findings[i].text);
}

json_t *findings_json(const struct finding *findings, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list,
                              json_pack("{ss ss ss}", "rule", findings[i].rule, "level",
                                        findings[i].level == FINDING_WARNING ? "warning" : "note",
                                        "text", findings[i].text));
    return list;
}
