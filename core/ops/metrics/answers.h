/* answers.h - what metrics share that look at each answer of the model beside its label: labels
 * are float32 in the order of what the last node makes, one for each. */
#ifndef CORE_OPS_METRICS_ANSWERS_H
#define CORE_OPS_METRICS_ANSWERS_H

#include "core/graph/op.h"

/* ERR_INPUT where the loss is not over yes and no, nor over two classes, of which 1 is the yes;
 * where it is not over numbers. */
err answers_infer_yes_or_no(struct metric_node *, struct arena *);
err answers_infer_numbers(struct metric_node *, struct arena *);

/* How likely yes is, of what a node said: a logit, or the probability itself. */
double answers_probability(const struct loss_node *, float said);

/* As TensorFlow casts labels to bool: every share but 0 is a yes. */
bool answers_wants_yes(double label);

struct answer {
    float said, label;
    double weight; /* of its example */
    int64_t row;   /* of the batch: its example */
};

/* For the update of a metric: adds all answers of the rows, one by one in their order. */
typedef void answers_add(const struct metric_node *, struct answer, double *state);
void answers_each(const struct metric_node *, struct device *, int64_t rows, answers_add *,
                  double *state);

/* Of classes: adds the rows whose label is among the k largest logits, and all rows. */
void answers_in_top(const struct metric_node *, struct device *, int64_t rows, int64_t k,
                    bool first_of_equal, double *state);

/* Of metrics that take a probability above a threshold for yes: all attributes that they have. */
struct answers_threshold {
    double threshold;
};
extern const struct field answers_threshold_fields[];

/* The metric's name tells the threshold where that is not one half. */
err answers_infer_threshold(struct metric_node *, struct arena *);
bool answers_is_yes(const struct metric_node *, float said);

#endif
