/* scenes.h - what is trained on one device and another. */
#ifndef TESTS_DEVICE_SCENES_H
#define TESTS_DEVICE_SCENES_H

#include "tests/device/rig.h"

/* The models of the curves */
extern const struct scene scene_softmax_sgd, scene_mlp_momentum, scene_cnn_adam;

/* One whose convolutions a GPU makes in bf16 */
extern const struct scene scene_small_cnn, scene_small_cnn_bf16;

extern const struct scene scene_all_ops; /* on the way from the features to the logits */

/* Losses with weights, with numbers for labels, and of yes and no */
extern const struct scene scene_weighted, scene_squares, scene_huber, scene_distances,
    scene_sigmoid, scene_hinge, scene_more_for_yes, scene_probabilities;

/* What happens to gradients before they leave */
extern const struct scene scene_clipped_sums, scene_clipped_values, scene_sums, scene_regularized;

extern const struct scene scene_partitioned; /* three ps */

/* Gradients that are pushed as 16 bits: as soon as they are there, and clipped sums of parts */
extern const struct scene scene_rounded, scene_rounded_late;
/* The same, and values that come as 16 bits */
extern const struct scene scene_narrow, scene_narrow_parts;

#endif
