/* session_inside.h - what the files of the session share. Nobody else includes this. */
#ifndef CORE_TRAIN_SESSION_INSIDE_H
#define CORE_TRAIN_SESSION_INSIDE_H

#include "core/train/session.h"

/* The stream of training batches of this worker from batch `first` on. Labels have been checked. */
err session_open_pipeline(const struct session *, uint64_t first, struct pipeline **ret);

#endif
