/* recurrent.h - shared by recurrent ops: x [batch, time, inputs] goes step by step through a cell;
 * the output is its states, y [batch, time, units], or the last one [batch, units].
 *
 * Tensors kept for backward have time as the first axis, so that each step of all examples is one
 * matrix.
 */
#ifndef CORE_OPS_RECURRENT_RECURRENT_H
#define CORE_OPS_RECURRENT_RECURRENT_H

#include "core/ops/layer.h"
#include "core/ops/mask.h"

enum { OUTPUT_ALL, OUTPUT_LAST };
enum { STATE_ZERO, STATE_CARRIED };
extern const char *const recurrent_outputs[], *const recurrent_states[];

/* The attributes of such an op begin with it. */
struct recurrent {
    struct layer layer;
    int64_t units;
    int output, state;
    const char *mask, *initial_state;
};

#define RECURRENT_FIELDS                                                                           \
    {.name = "units",                                                                              \
     .type = FIELD_INT,                                                                            \
     .offset = offsetof(struct recurrent, units),                                                  \
     .min = 1,                                                                                     \
     .max = 1 << 16,                                                                               \
     .help = "size of the state"},                                                                 \
        {.name = "output",                                                                         \
         .type = FIELD_ENUM,                                                                       \
         .offset = offsetof(struct recurrent, output),                                             \
         .fallback = "\"all\"",                                                                    \
         .choices = recurrent_outputs,                                                             \
         .help = "all: the state after each step, [batch, time, units], zero where the mask is; "  \
                 "last: that after the last step, [batch, units]"},                                \
        MASK_FIELD(offsetof(struct recurrent, mask)),                                              \
        {.name = "state",                                                                          \
         .type = FIELD_ENUM,                                                                       \
         .offset = offsetof(struct recurrent, state),                                              \
         .fallback = "\"zero\"",                                                                   \
         .choices = recurrent_states,                                                              \
         .help = "what each batch begins with. carried: what the same row of the batch before "    \
                 "ended with, through which no gradient goes; zeros where an epoch begins, or a "  \
                 "run that is resumed. Rows have to follow one another so (a text in lanes)"},     \
        {.name = "initial_state",                                                                  \
         .type = FIELD_STRING,                                                                     \
         .offset = offsetof(struct recurrent, initial_state),                                      \
         .fallback = "null",                                                                       \
         .help = "a node of [batch, units] with the initial state; null: zeros"},                  \
        LAYER_LINEAR_FIELDS

/* Indices of named inputs, in the order in which such ops list them */
enum { INITIAL_STATE = MASK_INPUT + 1, RECURRENT_MORE };

struct steps_of_time {
    int64_t batch, time, inputs, units;
};
struct steps_of_time recurrent_sizes(const struct node *);

/* Checks the inputs and sets the output's shape. */
err recurrent_infer(struct node *);
/* ERR_INPUT: named input k exists and has another shape */
err recurrent_check(const struct node *, int k, const struct shape *);
struct tensor recurrent_saved(int64_t n, int64_t batch, int64_t width);

/* y [n1, n0, width] (+)= x [n0, n1, width] */
void recurrent_turn(struct device *, float *y, const float *x, int64_t n0, int64_t n1,
                    int64_t width, bool add);
/* Functions of such an op for states carried from batch to batch. */
err recurrent_prepare(struct node *, struct device *);
size_t recurrent_prepared_bytes(const struct node *, struct device *);
void recurrent_release(struct node *, struct device *);
void recurrent_advance(const struct node *, struct device *, bool is_fresh);
/* After the last step: keeps the state that the next batch begins with, if states are carried. k:
 * index of the initial state's named input */
void recurrent_end(const struct node *, struct device *, int k, const float *state);

/* Sets the state before the first step; and passes its gradient on, if needed. */
void recurrent_begin(const struct node *, struct device *, int k, float *state);
void recurrent_begin_back(const struct node *, struct device *, int k, const float *gradient);
/* Sets the output from `states` [time, batch, units], those after each step */
void recurrent_give(const struct node *, struct device *, const float *states);
/* For backward. Sets dh to the gradient of the last state; recurrent_slope is the output's gradient
 * of step t, to be added at that step, NULL: none. */
void recurrent_take(const struct node *, struct device *, float *dh);
const float *recurrent_slope(const struct node *, int64_t t);
struct by_example recurrent_mask(const struct node *, int64_t t);

/* sums [time batch, width] = x kernel + bias, with the kernel's first rows, those of the inputs;
 * recurrent_add_state adds the product of one step's state with its other rows. */
void recurrent_sums(const struct node *, struct device *, int param, const float *x, float *sums);
void recurrent_add_state(const struct node *, struct device *, int param, const float *state,
                         float *sums);
/* d[batch, units] (+)= dsums kernel' */
void recurrent_to_state(const struct node *, struct device *, int param, const float *dsums,
                        float *d, bool add);
/* Gradients of a kernel and its bias, from their inputs in all steps; and dx [time batch, inputs]
 * (+)= that of the inputs. */
void recurrent_to_params(const struct node *, struct device *, int param, const float *x,
                         const float *states, const float *dsums);
void recurrent_to_input(const struct node *, struct device *, int param, const float *dsums,
                        float *dx, bool add);

#endif
