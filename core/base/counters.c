/* counters.c - see counters.h. */
#include "core/base/counters.h"

#include <math.h>
#include <string.h>

#include "core/base/fields/help.h"
#include "core/base/number_bytes.h"

enum { HELP_TEXT_COLUMN = 6 };

const struct counter_row counter_rows[COUNTERS] = {
#define COUNTER(ID, family, type, labels, owner, help) {family, TYPE_##type, labels, owner, help},
#define SERVED(...)
#include "core/base/counters.def"
#undef COUNTER
#undef SERVED
};

const struct counter_row served_rows[SERVED_COUNTERS] = {
#define COUNTER(...)
#define SERVED(ID, family, type, labels, help) {family, TYPE_##type, labels, BY_SERVER, help},
#include "core/base/counters.def"
#undef COUNTER
#undef SERVED
};

const char *counter_type_name(enum counter_type type)
{
    static const char *const names[] = {[TYPE_TOTAL] = "counter",
                                        [TYPE_GAUGE] = "gauge",
                                        [TYPE_BUCKET] = "histogram",
                                        [TYPE_SUM] = "histogram",
                                        [TYPE_COUNT] = "histogram"};
    return names[type];
}

const char *counter_owner_name(enum counter_owner owner)
{
    static const char *const names[] = {
        [BY_ALL] = "every task", [BY_WORKER] = "worker", [BY_CHIEF] = "chief",
        [BY_PS] = "ps",          [BY_FIRST] = "ps/0",    [BY_SERVER] = "dtrain serve"};
    return names[owner];
}

bool counter_is_of(enum counter c, bool is_ps, bool is_first)
{
    switch (counter_rows[c].owner) {
    case BY_WORKER:
    case BY_CHIEF: /* any worker may become chief */
        return !is_ps;
    case BY_PS:
        return is_ps;
    case BY_FIRST:
        return is_ps && is_first;
    default:
        return true;
    }
}

static const char *family_name(const struct counter_row *row, char ret[COUNTER_NAME_MAX])
{
    snprintf(ret, COUNTER_NAME_MAX, "dtrain_%s", row->family);
    return ret;
}

static const char *row_name(const struct counter_row *row, char ret[COUNTER_NAME_MAX])
{
    static const char *const endings[] = {[TYPE_TOTAL] = "",
                                          [TYPE_GAUGE] = "",
                                          [TYPE_BUCKET] = "_bucket",
                                          [TYPE_SUM] = "_sum",
                                          [TYPE_COUNT] = "_count"};
    snprintf(ret, COUNTER_NAME_MAX, "dtrain_%s%s", row->family, endings[row->type]);
    return ret;
}

const char *counter_name(enum counter c, char ret[COUNTER_NAME_MAX])
{
    return row_name(&counter_rows[c], ret);
}

const char *counter_key(enum counter c, char ret[COUNTER_KEY_MAX])
{
    char name[COUNTER_NAME_MAX];
    const char *labels = counter_rows[c].labels;
    counter_name(c, name);
    snprintf(ret, COUNTER_KEY_MAX, *labels ? "%s{%s}" : "%s", name + strlen("dtrain_"), labels);
    return ret;
}

void counters_note_staleness(struct counters *counters, uint64_t staleness)
{
    static const struct {
        enum counter bucket;
        uint64_t most;
    } buckets[] = {{COUNTER_STALENESS_0, 0},   {COUNTER_STALENESS_1, 1},
                   {COUNTER_STALENESS_2, 2},   {COUNTER_STALENESS_4, 4},
                   {COUNTER_STALENESS_8, 8},   {COUNTER_STALENESS_16, 16},
                   {COUNTER_STALENESS_32, 32}, {COUNTER_STALENESS_ANY, UINT64_MAX}};
    for (size_t i = 0; i < sizeof buckets / sizeof *buckets; i++)
        if (staleness <= buckets[i].most) counters->at[buckets[i].bucket]++;
    counters->at[COUNTER_STALENESS_SUM] += (double)staleness;
    counters->at[COUNTER_STALENESS_COUNT]++;
}

/* ---- of the last seconds ---- */

const char task_status_gone[] = "has left";

bool task_status_is_gone(const struct task_status *t)
{
    return !t->is_ps && strcmp(t->state, task_status_gone) == 0;
}

double task_status_lately(const struct task_status *t, enum counter c)
{
    return t->recent_s > 0 ? t->recent.at[c] : t->counters.at[c];
}

double task_status_clock_s(const struct task_status *t, uint64_t now_ms)
{
    const double said_s = t->counters.at[COUNTER_CLOCK];
    return said_s > 0 ? said_s + ((double)now_ms - (double)t->heard_ms) / 1000 : 0;
}

double task_status_time_lately(const struct task_status *t)
{
    double all = 0;
    for (int c = COUNTER_TIME_COMPUTE; c <= COUNTER_TIME_HOOKS; c++)
        all += task_status_lately(t, (enum counter)c);
    return all;
}

/* ---- bytes ---- */

void counters_pack(const struct counters *counters, unsigned char ret[COUNTERS_BYTES])
{
    for (int c = 0; c < COUNTERS; c++) number_put(ret + 8 * c, counters->at[c]);
}

bool counters_unpack(const unsigned char *from, size_t bytes, struct counters *ret)
{
    if (bytes != COUNTERS_BYTES) return false;
    for (int c = 0; c < COUNTERS; c++) {
        ret->at[c] = number_get(from + 8 * c);
        const bool may_be_any = c == COUNTER_LOSS || c == COUNTER_GRADIENT_NORM;
        if (!may_be_any && (!isfinite(ret->at[c]) || ret->at[c] < 0)) return false;
    }
    return true;
}

/* ---- text ---- */

static void write_number(FILE *out, double number)
{
    if (isnan(number))
        fputs("NaN", out);
    else if (isinf(number))
        fputs(number > 0 ? "+Inf" : "-Inf", out);
    else
        fprintf(out, "%.15g", number);
}

static void write_family(FILE *out, const struct counter_row *row)
{
    char name[COUNTER_NAME_MAX];
    family_name(row, name);
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, row->help, name,
            counter_type_name(row->type));
}

/* The end of the family of the row at `first`: its rows stand together. */
static int family_end(const struct counter_row *rows, int first, int count)
{
    int end = first + 1;
    while (end < count && strcmp(rows[end].family, rows[first].family) == 0) end++;
    return end;
}

static bool is_of_any(int c, const struct task_status *status, int count)
{
    for (int i = 0; i < count; i++)
        if (counter_is_of((enum counter)c, status[i].is_ps, status[i].index == 0)) return true;
    return false;
}

/* The samples of one task's histogram stand together. more: a label in front of the row's own. */
static void write_samples(FILE *out, const struct counter_row *rows, int count, const double *at,
                          const char *more)
{
    char name[COUNTER_NAME_MAX];
    for (int i = 0; i < count; i++) {
        const char *labels = rows[i].labels;
        fputs(row_name(&rows[i], name), out);
        if (*more && *labels)
            fprintf(out, "{%s,%s}", more, labels);
        else if (*more || *labels)
            fprintf(out, "{%s%s}", more, labels);
        putc(' ', out);
        write_number(out, at[i]);
        putc('\n', out);
    }
}

void counters_write_text(FILE *out, const struct task_status *status, int count)
{
    char task[STATUS_NAME_MAX + 16];
    for (int first = 0, end; first < COUNTERS; first = end) {
        end = family_end(counter_rows, first, COUNTERS);
        if (!is_of_any(first, status, count)) continue;
        write_family(out, &counter_rows[first]);
        for (int i = 0; i < count; i++) {
            if (!counter_is_of((enum counter)first, status[i].is_ps, status[i].index == 0))
                continue;
            snprintf(task, sizeof task, "task=\"%s\"", status[i].task);
            write_samples(out, &counter_rows[first], end - first, &status[i].counters.at[first],
                          task);
        }
    }
}

void counters_write_served(FILE *out, const struct served_counters *of, int count)
{
    char label[2 * SERVED_MODEL_MAX + 32];
    for (int first = 0, end; first < SERVED_COUNTERS; first = end) {
        end = family_end(served_rows, first, SERVED_COUNTERS);
        write_family(out, &served_rows[first]);
        for (int i = 0; i < count; i++) {
            snprintf(label, sizeof label, *of[i].model ? "model=\"%s\"" : "%s", of[i].model);
            if (of[i].label)
                snprintf(label, sizeof label, "model=\"%s\",label=\"%s\"", of[i].model,
                         of[i].label);
            write_samples(out, &served_rows[first], end - first, &of[i].at[first], label);
        }
    }
}

static void help_rows(FILE *out, const struct counter_row *rows, int count)
{
    char name[COUNTER_NAME_MAX];
    for (int i = 0, end = 0; i < count; i++) {
        const struct counter_row *row = &rows[i];
        if (i == end) {
            fprintf(out, "  %s (%s, %s)\n", family_name(row, name), counter_type_name(row->type),
                    counter_owner_name(row->owner));
            help_text(out, row->help, HELP_TEXT_COLUMN);
            end = family_end(rows, i, count);
        }
        if (*row->labels) fprintf(out, "        {%s}\n", row->labels);
    }
}

void counters_help(FILE *out)
{
    help_rows(out, counter_rows, COUNTERS);
    fputs("\nOf dtrain serve, at its /metrics:\n\n", out);
    help_rows(out, served_rows, SERVED_COUNTERS);
}
