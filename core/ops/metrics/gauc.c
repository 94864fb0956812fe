/* gauc: how well a model ranks within groups, such as the ads that one user saw: the mean over
 * groups of the exact area under the ROC curve, weighted by impressions, the sum of the weights of
 * a group's rows (Zhu et al. 2017, "Optimized Cost per Click in Taobao Display Advertising",
 * equation 8; Zhou et al. 2018, "Deep Interest Network", equation 4). Groups whose labels are all
 * of one kind have no area and are left out with their impressions; so are rows without a group. */
#include <math.h>
#include <stdlib.h>

#include "core/ops/metrics/answers.h"

enum { GROUPS_AT_ONCE = 1024 };
static const int64_t NO_GROUP = -1;

struct attributes {
    const char *by;
};

static const struct field fields[] = {
    FIELD_OF("by", STRING, struct attributes, by,
             .help =
                 "the column of ids, one per row, whose equal ids are a group: a \"hash\" without "
                 "buckets tells apart all that its cells do; rows without an id are left out"),
    {0},
};

static err infer(struct metric_node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    node->name = arena_format(arena, "gauc_%s", a->by);
    return answers_infer_yes_or_no(node, arena);
}

/* state: the number of answers, then these three of each, of 8 bytes each. */
struct grouped_answer {
    int64_t group;
    double said;
    double weight; /* negative for a no */
};

static struct grouped_answer *ranked_of(double *state)
{
    return (struct grouped_answer *)(state + 1);
}

static int64_t state_count(const struct metric_node *node, int64_t rows)
{
    return 1 + 3 * rows * shape_count_from(&node->loss->logits->shape, 1);
}

/* NaN ranks last. `group` is the row's index here, which update() replaces by the group. */
static void append(const struct metric_node *node, struct answer answer, double *state)
{
    struct grouped_answer *to = ranked_of(state) + (int64_t)state[0]++;
    *to = (struct grouped_answer){answer.row, isnan(answer.said) ? -INFINITY : answer.said,
                                  answers_wants_yes(answer.label) ? answer.weight : -answer.weight};
}

static void update(const struct metric_node *node, struct device *d, int64_t rows, double *state)
{
    int64_t i = (int64_t)state[0];
    answers_each(node, d, rows, append, state);
    const int64_t end = (int64_t)state[0];
    struct grouped_answer *ranked = ranked_of(state);
    for (int64_t first = 0; first < rows; first += GROUPS_AT_ONCE) {
        int64_t groups[GROUPS_AT_ONCE] = {0}; /* in case the device fails */
        const int64_t left = rows - first, n = left < GROUPS_AT_ONCE ? left : GROUPS_AT_ONCE;
        d->kernels->download(d, groups, (const int64_t *)node->groups.value + first,
                             (size_t)n * sizeof *groups);
        for (; i < end && ranked[i].group < first + n; i++)
            ranked[i].group = groups[ranked[i].group - first];
    }
}

/* By group, and within it from the highest answer to the lowest */
static int compare(const void *a, const void *b)
{
    const struct grouped_answer *x = a, *y = b;
    if (x->group != y->group) return (x->group > y->group) - (x->group < y->group);
    return (x->said < y->said) - (x->said > y->said);
}

struct group {
    double area, yes, no;
};

/* Measures the group that begins at i; returns the index of the next one. */
static int64_t measure(const struct grouped_answer *ranked, int64_t count, int64_t i,
                       struct group *ret)
{
    const int64_t id = ranked[i].group;
    struct group g = {0};
    while (i < count && ranked[i].group == id) {
        const struct group before = g;
        const double said = ranked[i].said; /* equal answers are one point of the curve */
        for (; i < count && ranked[i].group == id && ranked[i].said == said; i++) {
            g.yes += fmax(ranked[i].weight, 0);
            g.no += fmax(-ranked[i].weight, 0);
        }
        g.area += (g.no - before.no) * (g.yes + before.yes) / 2;
    }
    *ret = g;
    return i;
}

static double result(const struct metric_node *node, double *state)
{
    struct grouped_answer *ranked = ranked_of(state);
    const int64_t count = (int64_t)state[0];
    double sum = 0, impressions = 0;
    qsort(ranked, (size_t)count, sizeof *ranked, compare);
    for (int64_t i = 0; i < count;) {
        const bool is_group = ranked[i].group != NO_GROUP;
        struct group g;
        i = measure(ranked, count, i, &g);
        if (!is_group || !(g.yes > 0 && g.no > 0)) continue;
        sum += g.area / (g.yes * g.no) * (g.yes + g.no);
        impressions += g.yes + g.no;
    }
    return impressions > 0 ? sum / impressions : metric_undefined(NO_GROUP_HAS_BOTH);
}

const struct metric metric_gauc = {
    .object = {"gauc",
               "mean of the exact area under the ROC curve of each group of rows, as those of a "
               "user, by the weight of its rows; groups with labels of one kind are left out; "
               "takes 24 bytes for each example",
               fields, sizeof(struct attributes)},
    .better = BETTER_MORE,
    .group_name = "by",
    .infer = infer,
    .state_count = state_count,
    .update = update,
    .result = result,
};
