/* warm_start.c - see warm_start.h. */
#include "core/train/session/warm_start.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/log.h"
#include "core/data/columns/column.h"
#include "core/train/spec/kept_model.h"

struct planning {
    const struct session *session;
    const struct spec *spec;
    struct bundle *bundle;
    struct arena *arena; /* holds what is returned */
    struct arena scratch;
    struct kept_model kept;
    struct warm_start *ret;
    const char **skips;
    struct row_map *maps;
    int runs;
    struct warm_start_plan *plan; /* the plan that `ret` belongs to */
};

static void tell(struct planning *p, const char *line)
{
    struct warm_start_plan *plan = p->plan;
    if (plan->line_count < WARM_LINES_MAX)
        plan->lines[plan->line_count] = arena_string(p->arena, line);
    plan->line_count++;
}

static struct row_run *runs_for(const struct planning *p, int64_t most)
{
    return arena_array(p->arena, (size_t)most + 1, sizeof(struct row_run));
}

static void add_map(struct planning *p, const char *variable, int64_t rows, struct row_run *runs,
                    int count)
{
    p->maps[p->ret->row_count++] =
        (struct row_map){.variable = variable, .rows = rows, .runs = runs, .run_count = count};
    p->runs += count;
}

/* Row `to` comes from row `from`; consecutive rows become one run. */
static void add_row(struct row_run *runs, int *count, int64_t to, int64_t from)
{
    struct row_run *last = *count ? &runs[*count - 1] : NULL;
    if (last && last->to + last->count == to && last->from + last->count == from)
        last->count++;
    else
        runs[(*count)++] = (struct row_run){to, from, 1};
}

/* ---- words ---- */

static err fail_words(const struct planning *p, const struct param *param, const char *column)
{
    return fail(
        ERR_INPUT,
        "%s: the words of column \"%s\" are not those that it had when %s was made, which "
        "nobody kept: name a file with them, {\"vocabularies\": {\"%s\": \"old_words.txt\"}}, "
        "or \"skip\" \"%s\"",
        param->name, column, bundle_prefix(p->bundle), column, param->name);
}

/* Maps rows of words by the words, and rows of words outside the vocabulary by their hash if both
 * have the same number of buckets for these. */
static err map_words(struct planning *p, const struct param *param, const struct word_ids *now,
                     const struct kept_words *old, int64_t rows)
{
    struct word *words = arena_array(&p->scratch, (size_t)now->count + 1, sizeof *words);
    const int64_t here = param->shape.dim[0], buckets = here - now->count;
    const int64_t buckets_there = rows - old->ids.count;
    int count = 0;
    int64_t found = 0;
    struct row_run *runs = runs_for(p, now->count + 1);
    if (buckets_there < 0)
        return fail(ERR_INPUT,
                    "%s: there it has %" PRId64 " rows, fewer than the %" PRId64
                    " old words of column \"%s\"",
                    param->name, rows, old->ids.count, param->ids->name);
    word_ids_list(now, words);
    for (int64_t id = 0; id < now->count; id++) {
        const int64_t from = word_ids_find(&old->ids, words[id].text, words[id].length);
        if (from >= 0) add_row(runs, &count, id, from);
        found += from >= 0;
    }
    const bool has_buckets = buckets > 0 && buckets == buckets_there;
    for (int64_t i = 0; has_buckets && i < buckets; i++)
        add_row(runs, &count, now->count + i, old->ids.count + i);
    add_map(p, param->name, rows, runs, count);
    const int64_t left = here - found - (has_buckets ? buckets : 0);
    tell(p, arena_format(&p->scratch,
                         "%s: rows of %" PRId64 " of %" PRId64 " words of column \"%s\"%s; %" PRId64
                         " row%s initial values",
                         param->name, found, now->count, param->ids->name,
                         has_buckets ? " and of unknown words" : "", left,
                         left == 1 ? " keeps its" : "s keep their"));
    return OK;
}

static err plan_words(struct planning *p, const struct param *param,
                      const struct column_spec *column, int64_t rows)
{
    const struct column_kind *kind = column->column.kind->descriptor;
    const struct format_context context = {.directory = p->spec->directory};
    struct word_ids now;
    struct kept_words old;
    TRY(kind->words(column->column.attributes, &context, p->arena, &now));
    TRY(kept_model_words(&p->kept, p->spec, column->name, &now, p->arena, &old));
    if (!old.are_known) {
        const bool is_changed = old.is_kept || rows != param->shape.dim[0];
        return is_changed ? fail_words(p, param, column->name) : OK;
    }
    if (old.are_same && rows == param->shape.dim[0]) return OK;
    return map_words(p, param, &now, &old, rows);
}

/* Maps ids that are the numbers in the data, of which more, or fewer, are allowed now */
static void plan_numbers(struct planning *p, const struct param *param, int64_t rows)
{
    const int64_t here = param->shape.dim[0], both = rows < here ? rows : here;
    struct row_run *runs = runs_for(p, 1);
    if (rows == here) return;
    runs[0] = (struct row_run){0, 0, both};
    add_map(p, param->name, rows, runs, 1);
    tell(p, arena_format(&p->scratch,
                         "%s: rows of ids below %" PRId64 "; %" PRId64 " keep their initial values",
                         param->name, both, here - both));
}

static err plan_table(struct planning *p, const struct param *param, int64_t rows)
{
    const struct column_spec *columns = p->spec->data.columns.at;
    for (int i = 0; i < p->spec->data.columns.count; i++) {
        const struct column_kind *kind = columns[i].column.kind->descriptor;
        if (strcmp(columns[i].name, param->ids->name) != 0) continue;
        if (kind->words) return plan_words(p, param, &columns[i], rows);
        if (kind->limit_name) plan_numbers(p, param, rows);
    }
    return OK;
}

/* ---- inputs ---- */

/* What the checkpoint calls the input of this name: its variables may have other names there. */
static const char *old_name(struct planning *p, const char *name)
{
    char stored[BUNDLE_NAME_MAX];
    if (shard_map(p->ret, name, "x", stored)) return name;
    if (!text_ends_with(stored, "/x")) return name;
    return arena_format(&p->scratch, "%.*s", (int)strlen(stored) - 2, stored);
}

/* A name of parts of a kernel: which parts of the checkpoint have it, and which of them the next
 * part of this name here corresponds to. */
struct part_name {
    struct word word;
    int first, last; /* in the checkpoint; -1: no part has the name */
    int at, old_at;  /* the part that the last one of this name corresponded to, by its name and by
                        its former name; -1: none */
    int here;        /* parts of this name here */
    bool is_asked;
};

struct parts_there {
    const struct kernel_parts *parts;
    int *next;      /* [count] the next part of the same name; -1: there is none */
    int64_t *start; /* [count] rows */
    struct part_name *names;
    size_t size; /* a power of two */
};

static struct part_name *name_place(const struct parts_there *there, const char *name)
{
    const struct word word = {name, strlen(name)};
    struct part_name *place = word_place(there->names, there->size, sizeof *place, word);
    if (!place->word.text) *place = (struct part_name){.word = word, .first = -1};
    return place;
}

/* Indexes the parts of the checkpoint by name, with room for the names of `here` parts of this
 * model and for their former names */
static void index_parts(const struct kernel_parts *parts, int here, struct arena *arena,
                        struct parts_there *ret)
{
    const size_t count = (size_t)parts->count;
    int64_t start = 0;
    *ret = (struct parts_there){.parts = parts, .size = 2};
    while (ret->size < 2 * (count + 2 * (size_t)here)) ret->size *= 2;
    ret->next = arena_array(arena, count + 1, sizeof *ret->next);
    ret->start = arena_array(arena, count + 1, sizeof *ret->start);
    ret->names = arena_array(arena, ret->size, sizeof *ret->names);
    for (int i = 0; i < parts->count; start += parts->at[i++].rows) {
        struct part_name *name = name_place(ret, parts->at[i].name);
        *(name->first < 0 ? &name->first : &ret->next[name->last]) = i;
        name->last = i;
        ret->next[i] = -1;
        ret->start[i] = start;
    }
}

/* Which part of the checkpoint the next part of this name corresponds to: of those with this name,
 * or else with its former name, the first, then the ones after it; -1: it is new, or not known. */
static int next_there(struct planning *p, struct parts_there *there, const char *part)
{
    struct part_name *name = name_place(there, part);
    const bool is_one = name->first == name->last && name->here == 1;
    if (kernel_part_is_described(part))
        return is_one && !kernel_part_is_unknown(part) ? name->first : -1;
    if (name->is_asked) {
        name->at = name->at < 0 ? -1 : there->next[name->at];
        name->old_at = name->old_at < 0 ? -1 : there->next[name->old_at];
    } else {
        name->at = name->first;
        name->old_at = name_place(there, old_name(p, part))->first;
    }
    name->is_asked = true;
    return name->at >= 0 ? name->at : name->old_at;
}

static err fail_part(const struct param *kernel, const struct kernel_part *part, int64_t rows)
{
    return fail(ERR_INPUT,
                "%s: input \"%s\" is %" PRId64 " numbers, and was %" PRId64
                " there; \"skip\" gives the kernel its initial values",
                kernel->name, part->name, part->rows, rows);
}

struct mapped_parts {
    struct row_run *runs;
    int count;
    int64_t rows;      /* rows that come from the checkpoint */
    bool are_in_place; /* each row is where it was */
    const char *fresh; /* names of inputs that are new */
};

static bool are_same(const struct kernel_parts *a, const struct kernel_parts *b)
{
    bool are = a->count == b->count;
    for (int i = 0; are && i < a->count; i++)
        are = a->at[i].rows == b->at[i].rows && strcmp(a->at[i].name, b->at[i].name) == 0;
    return are;
}

static err map_parts(struct planning *p, const struct param *kernel,
                     const struct kernel_parts *parts, const struct kernel_parts *old,
                     struct mapped_parts *ret)
{
    struct parts_there there;
    int64_t to = 0;
    index_parts(old, parts->count, &p->scratch, &there);
    *ret = (struct mapped_parts){.runs = runs_for(p, parts->count), .fresh = ""};
    ret->are_in_place = old->count == parts->count;
    for (int i = 0; i < parts->count; i++) name_place(&there, parts->at[i].name)->here++;
    for (int i = 0; i < parts->count; to += parts->at[i++].rows) {
        const struct kernel_part *part = &parts->at[i];
        const int at = next_there(p, &there, part->name);
        const int64_t from = at < 0 ? -1 : there.start[at], rows = at < 0 ? 0 : old->at[at].rows;
        ret->are_in_place &= from == to;
        if (from >= 0 && rows != part->rows) return fail_part(kernel, part, rows);
        if (from >= 0)
            ret->runs[ret->count++] = (struct row_run){to, from, rows};
        else if (strlen(ret->fresh) < 200)
            ret->fresh = arena_format(&p->scratch, "%s%s%s", ret->fresh, *ret->fresh ? ", " : "",
                                      part->name);
        ret->rows += from >= 0 ? rows : 0;
    }
    return OK;
}

/* Where no name matches one in the checkpoint and the shape is the same, rows are taken as they
 * stand, and also where the names do not fit this kernel. */
static err plan_kernel(struct planning *p, const struct param *kernel)
{
    char stored[BUNDLE_NAME_MAX];
    struct mapped_parts mapped;
    const struct kernel_parts parts =
        features_rows(p->session->data.features, kernel->name, &p->scratch);
    TRY(shard_map(p->ret, kernel->name, NULL, stored));
    const struct kernel_parts old = features_rows(p->kept.features, stored, &p->scratch);
    const int64_t rows = kernel->shape.rank == 1
                             ? kernel_parts_rows(&old)
                             : shard_rows_there(p->bundle, p->ret, kernel->name);
    if (!parts.count || !old.count || rows <= 0) return OK;
    if (kernel_parts_rows(&parts) != kernel->shape.dim[0] || kernel_parts_rows(&old) != rows)
        return OK;
    if (are_same(&parts, &old)) return OK;
    TRY(map_parts(p, kernel, &parts, &old, &mapped));
    if (mapped.are_in_place || !mapped.count) return OK;
    add_map(p, kernel->name, rows, mapped.runs, mapped.count);
    const bool is_square = kernel_is_square(p->session->graph, kernel);
    p->maps[p->ret->row_count - 1].is_square = is_square;
    tell(p, arena_format(&p->scratch, "%s: %" PRId64 " of %" PRId64 " rows%s, by inputs%s%s",
                         kernel->name, mapped.rows, kernel->shape.dim[0],
                         is_square ? " and columns" : "",
                         *mapped.fresh ? "; initial values for those of " : "", mapped.fresh));
    return OK;
}

/* ---- all of them ---- */

static bool is_absent(struct planning *p, const struct param *param)
{
    if (p->spec->train.warm_start.absent != ABSENT_INITIAL ||
        shard_rows_there(p->bundle, p->ret, param->name) >= 0)
        return false;
    p->skips[p->ret->skip_count++] = param->name;
    tell(p, arena_format(&p->scratch, "%s is not in the checkpoint and keeps its initial values",
                         param->name));
    return true;
}

static err plan_params(struct planning *p)
{
    const struct graph *g = p->session->graph;
    for (int i = 0; i < g->param_count; i++) {
        const struct param *param = g->params[i];
        if (shard_map_skips(p->ret, param->name) || is_absent(p, param)) continue;
        const int64_t rows = shard_rows_there(p->bundle, p->ret, param->name);
        if (param->ids && !param->growth && rows > 0) TRY(plan_table(p, param, rows));
    }
    for (int i = 0; i < g->param_count; i++)
        if (!g->params[i]->ids && !shard_map_skips(p->ret, g->params[i]->name))
            TRY(plan_kernel(p, g->params[i]));
    if (p->runs > ROW_RUNS_MAX)
        return fail(ERR_INPUT,
                    "the rows of words and inputs that changed are %d stretches, of at most %d: "
                    "keep the old words in their order, and add new ones behind them",
                    p->runs, (int)ROW_RUNS_MAX);
    return OK;
}

void warm_start_log(const struct warm_start_plan *plan, const char *prefix)
{
    log_line(LOG_INFO, "begins with values of %s", prefix);
    for (int i = 0; i < plan->line_count && i < WARM_LINES_MAX; i++)
        log_line(LOG_INFO, "    %s", plan->lines[i]);
    if (plan->line_count > WARM_LINES_MAX)
        log_line(LOG_INFO, "    and %d more", plan->line_count - WARM_LINES_MAX);
}

static void begin(struct planning *p)
{
    const struct warm_start_spec *spec = &p->spec->train.warm_start;
    const size_t params = (size_t)p->session->graph->param_count;
    const size_t skips = (size_t)spec->skip.count;
    p->skips = arena_array(p->arena, skips + params + 1, sizeof *p->skips);
    p->maps = arena_array(p->arena, 2 * params + 1, sizeof *p->maps);
    if (skips) memcpy(p->skips, spec->skip.at, skips * sizeof *p->skips);
    *p->ret = (struct warm_start){.maps = spec->maps.at,
                                  .map_count = spec->maps.count,
                                  .skips = p->skips,
                                  .skip_count = spec->skip.count,
                                  .slots = spec->slots,
                                  .can_skip = true,
                                  .rows = p->maps};
}

err session_plan_warm_start(const struct session *s, struct bundle *bundle, struct arena *arena,
                            struct warm_start_plan *ret)
{
    struct planning p = {.session = s,
                         .spec = s->options.spec,
                         .bundle = bundle,
                         .arena = arena,
                         .ret = &ret->how,
                         .plan = ret};
    *ret = (struct warm_start_plan){0};
    begin(&p);
    err e = kept_model_read(bundle_prefix(bundle), &p.kept);
    if (!e && s->data.train) e = features_check_text(p.spec, p.kept.features, s->data.train);
    if (!e) e = plan_params(&p);
    kept_model_free(&p.kept);
    arena_free(&p.scratch);
    return e;
}
