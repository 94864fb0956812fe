/* scenes.c - see scenes.h. */
#include "tests/device/scenes.h"

#define DIGITS                                                                                     \
    "\"data\":{\"train\":{\"format\":\"digits\",\"rows\":230},\"eval\":{\"format\":\"digits\","    \
    "\"rows\":130},\"batch_size\":20,\"eval_batch_size\":50,\"scale\":0.0039},"
#define RUN "\"train\":{\"mode\":\"sync\",\"last_step\":100}"
#define CLASSES "\"loss\":\"softmax_cross_entropy\",\"metrics\":[\"accuracy\",\"loss\"],"
#define BY(name) "\"optimizer\":{\"type\":\"" name "\",\"learning_rate\":0.05},"
#define MLP                                                                                        \
    "\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":100,\"activation\":\"relu\"},"    \
    "{\"op\":\"dense\",\"units\":50,\"activation\":\"relu\"},{\"op\":\"dense\",\"units\":10}],"

const struct scene scene_softmax_sgd = {
    "{" DIGITS "\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":10}]," CLASSES
    "\"optimizer\":{\"type\":\"gradient_descent\",\"learning_rate\":0.5}," RUN "}",
    1, 1, 1};

#define MOMENTUM                                                                                   \
    CLASSES "\"optimizer\":{\"type\":\"momentum\",\"learning_rate\":0.1,\"momentum\":0.9}," RUN "}"

const struct scene scene_mlp_momentum = {"{" DIGITS MLP MOMENTUM, 2, 2, 1};

/* Channels of the second convolution come in fours, as tensor cores take them. */
#define SMALL_CNN                                                                                  \
    DIGITS                                                                                         \
    "\"model\":[{\"op\":\"conv2d\",\"filters\":8,\"kernel_size\":5,\"strides\":4,\"padding\":"     \
    "\"same\",\"activation\":\"relu\"},{\"op\":\"conv2d\",\"filters\":16,\"kernel_size\":3,"       \
    "\"padding\":\"same\",\"activation\":\"relu\"},{\"op\":\"flatten\"},{\"op\":\"dense\","        \
    "\"units\":10}]," MOMENTUM
const struct scene scene_small_cnn = {"{" SMALL_CNN, 2, 2, 1};
const struct scene scene_small_cnn_bf16 = {"{\"precision\":\"bf16\"," SMALL_CNN, 2, 2, 1};

const struct scene scene_cnn_adam = {
    "{" DIGITS "\"model\":[{\"op\":\"conv2d\",\"filters\":8,\"kernel_size\":5,\"padding\":\"same\","
    "\"activation\":\"relu\"},{\"op\":\"max_pool\",\"pool_size\":2,\"padding\":\"same\"},{\"op\":"
    "\"conv2d\",\"filters\":16,\"kernel_size\":5,\"padding\":\"same\",\"activation\":\"relu\"},"
    "{\"op\":\"max_pool\",\"pool_size\":2,\"padding\":\"same\"},{\"op\":\"flatten\"},{\"op\":"
    "\"dense\",\"units\":64,\"activation\":\"relu\"},{\"op\":\"dense\",\"units\":10}]," CLASSES
    "\"optimizer\":\"adam\"," RUN "}",
    2, 2, 1};

/* Every op that has no parameters, on the way from the features to the logits. */
const struct scene scene_all_ops = {
    "{" DIGITS "\"model\":[{\"op\":\"avg_pool\",\"pool_size\":2,\"name\":\"small\"},"
    "{\"op\":\"conv2d\",\"filters\":4,\"kernel_size\":3,\"padding\":\"same\",\"activation\":"
    "\"gelu\",\"name\":\"a\"},"
    "{\"op\":\"conv2d\",\"filters\":4,\"kernel_size\":3,\"padding\":\"same\",\"inputs\":[\"small\"]"
    ",\"name\":\"b\"},"
    "{\"op\":\"add\",\"inputs\":[\"a\",\"b\"],\"name\":\"sum\"},"
    "{\"op\":\"multiply\",\"inputs\":[\"a\",\"sum\"],\"name\":\"product\"},"
    "{\"op\":\"concat\",\"inputs\":[\"sum\",\"product\"],\"name\":\"both\"},"
    "{\"op\":\"swish\"},{\"op\":\"dropout\",\"rate\":0.25},{\"op\":\"flatten\"},"
    "{\"op\":\"dense\",\"units\":12,\"name\":\"wide\"},{\"op\":\"softmax\",\"name\":\"shares\"},"
    "{\"op\":\"dot_interaction\",\"inputs\":[\"wide\",\"shares\",\"wide\"],\"name\":\"pairs\"},"
    "{\"op\":\"factorization_machine\",\"inputs\":[\"wide\",\"shares\",\"wide\"],\"name\":"
    "\"machine\"},"
    "{\"op\":\"cross_layer\",\"inputs\":[\"wide\",\"shares\"],\"name\":\"crossed\"},"
    "{\"op\":\"concat\",\"inputs\":[\"shares\",\"pairs\",\"machine\",\"crossed\"]},"
    "{\"op\":\"dense\",\"units\":10}]," CLASSES BY("adagrad") RUN "}",
    1, 1, 1};

const struct scene scene_weighted = {
    "{" DIGITS MLP
    "\"loss\":{\"op\":\"softmax_cross_entropy\",\"label_smoothing\":0.1,\"class_weights\":[1,0,2,1,"
    "1,0.5,1,1,3,1]},\"metrics\":[\"accuracy\",{\"op\":\"in_top_k\",\"k\":3}]," BY("rmsprop") RUN
    "}",
    1, 1, 1};

const struct scene scene_clipped_sums = {
    "{" DIGITS MLP CLASSES
    "\"optimizer\":{\"type\":\"gradient_descent\",\"learning_rate\":0.5,\"clip\":{\"type\":"
    "\"global_norm\",\"norm\":0.05}}," RUN "}",
    2, 2, 3};

const struct scene scene_clipped_values = {
    "{" DIGITS MLP CLASSES
    "\"optimizer\":{\"type\":\"gradient_descent\",\"learning_rate\":0.5,\"clip\":{\"type\":"
    "\"value\",\"min\":-0.001,\"max\":0.002}}," RUN "}",
    1, 1, 1};

const struct scene scene_sums = {"{" DIGITS MLP CLASSES "\"optimizer\":\"adam\"," RUN "}", 1, 2, 3};

const struct scene scene_regularized = {
    "{" DIGITS
    "\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":20,\"kernel_regularizer\":{\"l1\":"
    "0.001,\"l2\":0.01}},{\"op\":\"dense\",\"units\":10,\"kernel_regularizer\":{\"l2\":0.004}}]"
    "," CLASSES BY("gradient_descent") RUN "}",
    2, 1, 2};

const struct scene scene_partitioned = {
    "{" DIGITS MLP CLASSES
    "\"placement\":{\"partitioner\":{\"type\":\"fixed_size\",\"num_shards\":3}},\"optimizer\":"
    "{\"type\":\"adam\",\"clip\":{\"type\":\"norm\",\"norm\":0.1}}," RUN "}",
    2, 3, 2};

#define NARROW(wire, values)                                                                       \
    "\"train\":{\"mode\":\"sync\",\"last_step\":100,\"wire\":\"" wire                              \
    "\",\"wire_values\":\"" values "\"}"
#define ROUNDED(wire) NARROW(wire, "float32")

const struct scene scene_rounded = {
    "{" DIGITS MLP CLASSES "\"optimizer\":\"adam\"," ROUNDED("bf16") "}", 2, 2, 1};
const struct scene scene_rounded_late = {
    "{" DIGITS MLP CLASSES
    "\"placement\":{\"partitioner\":{\"type\":\"fixed_size\",\"num_shards\":3}},\"optimizer\":"
    "{\"type\":\"adam\",\"clip\":{\"type\":\"norm\",\"norm\":0.1}}," ROUNDED("fp16") "}",
    2, 3, 2};
const struct scene scene_narrow = {
    "{" DIGITS MLP CLASSES "\"optimizer\":\"adam\"," NARROW("bf16", "bf16") "}", 2, 2, 1};
const struct scene scene_narrow_parts = {
    "{" DIGITS MLP CLASSES
    "\"placement\":{\"partitioner\":{\"type\":\"fixed_size\",\"num_shards\":3}},\"optimizer\":"
    "\"adam\"," NARROW("float32", "fp16") "}",
    2, 3, 2};

#define NUMBERS(last, loss, metrics)                                                               \
    "{\"data\":{\"train\":{\"format\":\"random\",\"rows\":90,\"shape\":[7],\"label_type\":"        \
    "\"number\"},\"eval\":{\"format\":\"random\",\"rows\":33,\"shape\":[7],\"label_type\":"        \
    "\"number\"},\"batch_size\":8,\"eval_batch_size\":10},\"model\":[{\"op\":\"dense\",\"units\":" \
    "9,\"activation\":\"tanh\"},{\"op\":\"dense\",\"units\":1,\"activation\":\"" last              \
    "\"}],\"loss\":" loss ",\"metrics\":[" metrics                                                 \
    "],\"optimizer\":{\"type\":\"momentum\",\"learning_rate\":0.05,\"momentum\":0.5}," RUN "}"
#define ANSWERS                                                                                    \
    "\"accuracy\",\"auc\",{\"op\":\"auc\",\"curve\":\"PR\",\"summation_method\":\"ranking\"},"     \
    "{\"op\":\"precision\",\"threshold\":0.4},\"recall\",\"log_loss\",\"calibration\""

const struct scene scene_squares = {
    NUMBERS("linear", "\"mean_squared_error\"",
            "\"loss\",\"mean_absolute_error\",\"root_mean_squared_error\""),
    1, 1, 1};
const struct scene scene_huber = {NUMBERS("linear", "\"huber\"", "\"loss\""), 1, 1, 1};
const struct scene scene_distances = {NUMBERS("linear", "\"absolute_difference\"", "\"loss\""), 1,
                                      1, 1};
const struct scene scene_sigmoid = {
    NUMBERS("linear", "\"sigmoid_cross_entropy\"", "\"loss\"," ANSWERS), 1, 1, 1};
const struct scene scene_hinge = {NUMBERS("linear", "\"hinge\"", "\"loss\"," ANSWERS), 1, 1, 1};
const struct scene scene_more_for_yes = {
    NUMBERS("linear", "{\"op\":\"weighted_cross_entropy\",\"pos_weight\":3}", ANSWERS), 1, 1, 1};
const struct scene scene_probabilities = {NUMBERS("sigmoid", "\"log_loss\"", ANSWERS), 1, 1, 1};
