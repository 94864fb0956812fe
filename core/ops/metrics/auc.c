/* auc: the area under a curve: how well a model of yes and no ranks.
 *
 * ROC: the true positive rate over the false positive rate; PR: precision over recall. By
 * thresholds it is what tf.metrics.auc computes; the state counts labels between each two
 * thresholds. By ranking it is exact, and the state is all answers: for ROC, how often a yes is
 * ranked above a no (equal ones count half); for PR, the mean of the precision at each yes.
 */
#include <math.h>
#include <stdlib.h>

#include "core/ops/metrics/answers.h"

enum auc_curve { CURVE_ROC, CURVE_PR };
enum method { TRAPEZOIDAL, CAREFUL_INTERPOLATION, RANKING };

enum { THRESHOLDS_DEFAULT = 200, THRESHOLDS_MAX = 1 << 20 };

struct attributes {
    int curve, method; /* enum auc_curve, enum method */
    int64_t num_thresholds;
};

static const char *const curve_names[] = {[CURVE_ROC] = "ROC", [CURVE_PR] = "PR", NULL};
static const char *const method_names[] = {[TRAPEZOIDAL] = "trapezoidal",
                                           [CAREFUL_INTERPOLATION] = "careful_interpolation",
                                           [RANKING] = "ranking",
                                           NULL};

static const struct field fields[] = {
    FIELD_OF("curve", ENUM, struct attributes, curve, .fallback = "\"ROC\"", .choices = curve_names,
             .help = "which curve: ROC, or PR (precision over recall)"),
    FIELD_OF("num_thresholds", INT, struct attributes, num_thresholds, .fallback = "200", .min = 2,
             .max = THRESHOLDS_MAX, .help = "number of equally spaced thresholds of the curve"),
    FIELD_OF("summation_method", ENUM, struct attributes, method, .fallback = "\"trapezoidal\"",
             .choices = method_names,
             .help = "how the area is computed: trapezoidal; careful_interpolation (PR only); "
                     "ranking: exact, uses every example as a threshold and 24 bytes for each"),
    {0},
};

/* Names it "auc", "auc_pr", "auc_ranking", "auc_pr_careful_1000": with attributes that are not the
 * defaults */
static err infer(struct metric_node *node, struct arena *arena)
{
    const struct attributes *a = node->attributes;
    TRY(answers_infer_yes_or_no(node, arena));
    if (a->method == CAREFUL_INTERPOLATION && a->curve != CURVE_PR)
        return fail(ERR_INPUT, "summation_method: careful_interpolation is for the curve PR");
    const char *method = a->method == RANKING                 ? "_ranking"
                         : a->method == CAREFUL_INTERPOLATION ? "_careful"
                                                              : "";
    node->name = arena_format(arena, "auc%s%s", a->curve == CURVE_PR ? "_pr" : "", method);
    if (a->method != RANKING && a->num_thresholds != THRESHOLDS_DEFAULT)
        node->name = arena_format(arena, "%s_%lld", node->name, (long long)a->num_thresholds);
    return OK;
}

/* ---- by thresholds ---- */

/* A curve needs labels of both kinds; otherwise the area is undefined. */
static double area_of(double area, double yes, double no)
{
    if (yes > 0 && no > 0) return area;
    if (yes > 0) return metric_undefined(ALL_LABELS_ARE_1);
    return metric_undefined(no > 0 ? ALL_LABELS_ARE_0 : ALL_WEIGHTS_ARE_0);
}

/* Weights of labels above a threshold, or of all labels. */
struct curve_point {
    double yes, no;
};

/* Threshold i of n, as a float: -1e-7, 1 / (n - 1), 2 / (n - 1) ..., 1 + 1e-7 */
static float threshold_at(int64_t i, int64_t n)
{
    if (i == 0) return -1e-7f;
    return i == n - 1 ? 1 + 1e-7f : (float)((double)i / (double)(n - 1));
}

/* How many thresholds a probability is above; NaN: 0. */
static int64_t thresholds_below(double probability, int64_t n)
{
    int64_t i = probability > 0 ? (int64_t)(fmin(probability, 1) * (double)(n - 1)) : 0;
    while (i < n && probability > threshold_at(i, n)) i++;
    while (i > 0 && !(probability > threshold_at(i - 1, n))) i--;
    return i;
}

/* state: two numbers, of no and of yes, for each result of thresholds_below(), 0 to n */
static void add_to_bin(const struct metric_node *node, struct answer answer, double *state)
{
    const struct attributes *a = node->attributes;
    const double probability = answers_probability(node->loss, answer.said);
    state[2 * thresholds_below(probability, a->num_thresholds) + answers_wants_yes(answer.label)] +=
        answer.weight;
}

/* The area between a point and that of the next higher threshold */
static double trapezoid(enum auc_curve curve, struct curve_point at, struct curve_point next,
                        struct curve_point all)
{
    const double e = 1e-6;
    const double recall = (at.yes + e) / (all.yes + e),
                 next_recall = (next.yes + e) / (all.yes + e);
    if (curve == CURVE_ROC) return (at.no - next.no) / (all.no + e) * (recall + next_recall) / 2;
    const double precision = (at.yes + e) / (at.yes + at.no + e);
    const double next_precision = (next.yes + e) / (next.yes + next.no + e);
    return (recall - next_recall) * (precision + next_precision) / 2;
}

static double quotient(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* Davis and Goadrich: between two points yes and no grow in proportion, not precision and recall.
 */
static double interpolated(struct curve_point at, struct curve_point next, struct curve_point all)
{
    const double yes = at.yes - next.yes, count = at.yes + at.no, next_count = next.yes + next.no;
    const double slope = quotient(yes, count - next_count);
    const double intercept = next.yes - slope * next_count;
    const double ratio = count > 0 && next_count > 0 ? count / next_count : 1;
    return quotient(slope * (yes + intercept * log(ratio)), all.yes);
}

/* From the highest threshold to the lowest, which all but NaN are above. */
static double area_by_thresholds(const struct attributes *a, const double *state)
{
    struct curve_point all = {0}, at = {0};
    double area = 0;
    for (int64_t i = 0; i <= a->num_thresholds; i++) {
        all.no += state[2 * i];
        all.yes += state[2 * i + 1];
    }
    for (int64_t i = a->num_thresholds; i > 0; i--) {
        const struct curve_point next = at;
        at.no += state[2 * i];
        at.yes += state[2 * i + 1];
        if (i == a->num_thresholds) continue; /* the highest threshold has none before it */
        area += a->method == TRAPEZOIDAL ? trapezoid((enum auc_curve)a->curve, at, next, all)
                                         : interpolated(at, next, all);
    }
    return area_of(area, all.yes, all.no);
}

/* Curves with more thresholds are not drawn. */
enum { CURVE_THRESHOLDS_MAX = 10000 };

static int thresholds(const struct metric_node *node)
{
    const struct attributes *a = node->attributes;
    const bool is_drawn = a->method != RANKING && a->num_thresholds <= CURVE_THRESHOLDS_MAX;
    return is_drawn ? (int)a->num_thresholds : 0;
}

static void curve(const struct metric_node *node, const double *state, float *ret)
{
    const int64_t n = thresholds(node);
    struct curve_point all = {0}, above = {0};
    for (int64_t i = 0; i <= n; i++) {
        all.no += state[2 * i];
        all.yes += state[2 * i + 1];
    }
    for (int64_t i = n - 1; i >= 0; i--) { /* those above threshold i are above i + 1 thresholds */
        above.no += state[2 * (i + 1)];
        above.yes += state[2 * (i + 1) + 1];
        ret[PR_YES_ABOVE * n + i] = (float)above.yes;
        ret[PR_NO_ABOVE * n + i] = (float)above.no;
        ret[PR_NO_BELOW * n + i] = (float)(all.no - above.no);
        ret[PR_YES_BELOW * n + i] = (float)(all.yes - above.yes);
        ret[PR_PRECISION * n + i] = (float)quotient(above.yes, above.yes + above.no);
        ret[PR_RECALL * n + i] = (float)quotient(above.yes, all.yes);
    }
}

/* ---- by ranking ---- */

struct ranked {
    double said, label, weight;
};

/* state: the number of answers, then a struct ranked of each. NaN ranks last. */
static void append(const struct metric_node *node, struct answer answer, double *state)
{
    struct ranked *to = (struct ranked *)(state + 1) + (int64_t)state[0]++;
    *to =
        (struct ranked){isnan(answer.said) ? -INFINITY : answer.said, answer.label, answer.weight};
}

static int compare(const void *a, const void *b)
{
    const double x = ((const struct ranked *)a)->said, y = ((const struct ranked *)b)->said;
    return (x < y) - (x > y);
}

/* Adds all equal answers, which are one point of the curve, to *at; returns the index behind
 * them. */
static int64_t next_point(const struct ranked *ranked, int64_t count, int64_t i,
                          struct curve_point *at)
{
    const double said = ranked[i].said;
    for (; i < count && ranked[i].said == said; i++) {
        const bool is_yes = answers_wants_yes(ranked[i].label);
        at->yes += is_yes ? ranked[i].weight : 0;
        at->no += is_yes ? 0 : ranked[i].weight;
    }
    return i;
}

static double area_by_ranking(enum auc_curve curve, double *state)
{
    struct ranked *ranked = (struct ranked *)(state + 1);
    const int64_t count = (int64_t)state[0];
    struct curve_point at = {0};
    double area = 0;
    qsort(ranked, (size_t)count, sizeof *ranked, compare);
    for (int64_t i = 0; i < count;) {
        const struct curve_point before = at;
        i = next_point(ranked, count, i, &at);
        if (curve == CURVE_ROC)
            area += (at.no - before.no) * (at.yes + before.yes) / 2;
        else
            area += (at.yes - before.yes) * quotient(at.yes, at.yes + at.no);
    }
    return area_of(quotient(area, curve == CURVE_ROC ? at.yes * at.no : at.yes), at.yes, at.no);
}

/* ---- both ---- */

static int64_t state_count(const struct metric_node *node, int64_t rows)
{
    const struct attributes *a = node->attributes;
    if (a->method != RANKING) return 2 * (a->num_thresholds + 1);
    return 1 + 3 * rows * shape_count_from(&node->loss->logits->shape, 1);
}

static void update(const struct metric_node *node, struct device *d, int64_t rows, double *state)
{
    const struct attributes *a = node->attributes;
    answers_each(node, d, rows, a->method == RANKING ? append : add_to_bin, state);
}

static double result(const struct metric_node *node, double *state)
{
    const struct attributes *a = node->attributes;
    return a->method == RANKING ? area_by_ranking((enum auc_curve)a->curve, state)
                                : area_by_thresholds(a, state);
}

const struct metric metric_auc = {
    .object = {"auc",
               "area under the ROC or precision-recall curve, of labels 0 against all others; "
               "undefined if all labels are of one kind",
               fields, sizeof(struct attributes)},
    .better = BETTER_MORE,
    .infer = infer,
    .state_count = state_count,
    .update = update,
    .result = result,
    .thresholds = thresholds,
    .curve = curve,
};
