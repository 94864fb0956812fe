/* spec_inside.h - what the files of the spec reader share. Nobody else includes this. */
#ifndef CORE_TRAIN_SPEC_INSIDE_H
#define CORE_TRAIN_SPEC_INSIDE_H

#include "core/train/spec.h"

/* The JSON of a file, or of standard input for "-". New reference. */
err spec_read(const char *path, json_t **ret);

/* 16 hex digits of everything in the spec that all tasks must share. */
err spec_fingerprint(const struct spec *, char ret[17]);

#endif
