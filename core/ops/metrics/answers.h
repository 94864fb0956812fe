/* answers.h - shared by metrics that compare each prediction with its label: labels are float32 in
 * the order of the predictions, one for each. */
#ifndef CORE_OPS_METRICS_ANSWERS_H
#define CORE_OPS_METRICS_ANSWERS_H

#include "core/graph/op.h"

/* ERR_INPUT: answers_infer_yes_or_no: the loss is not of yes and no, nor of two classes, of which 1
 * is yes; answers_infer_numbers: it is not of numbers. */
err answers_infer_yes_or_no(struct metric_node *, struct arena *);
err answers_infer_numbers(struct metric_node *, struct arena *);

/* The probability of yes; said: a logit or a probability, whichever the loss takes. */
double answers_probability(const struct loss_node *, float said);

/* As TensorFlow casts labels to bool: any label but 0 is a yes. */
bool answers_wants_yes(double label);

struct answer {
    float said, label;
    double weight; /* of its example */
    int64_t row;   /* index of its example in the batch */
};

/* Calls answers_add for each answer of the rows, in order; for a metric's update. */
typedef void answers_add(const struct metric_node *, struct answer, double *state);
void answers_each(const struct metric_node *, struct device *, int64_t rows, answers_add *,
                  double *state);

/* For classes: adds to state[0] the labels that are among the k largest logits, and to state[1] all
 * labels, by weight. */
void answers_in_top(const struct metric_node *, struct device *, int64_t rows, int64_t k,
                    bool first_of_equal, double *state);

/* The attributes of metrics that count a probability above a threshold as yes. */
struct answers_threshold {
    double threshold;
};
extern const struct field answers_threshold_fields[];

/* Appends the threshold to the metric's name unless it is one half. */
err answers_infer_threshold(struct metric_node *, struct arena *);
bool answers_is_yes(const struct metric_node *, float said);

#endif
