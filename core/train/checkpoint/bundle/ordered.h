/* ordered.h - encodes numbers and text so that bytes sort like the values (TensorFlow's
 * OrderedCode). */
#ifndef CORE_TRAIN_CHECKPOINT_BUNDLE_ORDERED_H
#define CORE_TRAIN_CHECKPOINT_BUNDLE_ORDERED_H

#include "core/base/proto.h"

void buffer_ordered_unsigned(struct buffer *, uint64_t);
void buffer_ordered_signed(struct buffer *, int64_t);
void buffer_ordered_text(struct buffer *, const char *);

#endif
