/* settings.h - refuses flags and keys of the spec that a run would silently ignore. */
#ifndef CMD_RUN_SETTINGS_H
#define CMD_RUN_SETTINGS_H

#include "cmd/cmd.h"

/* ERR_INPUT: a flag is unknown but a key of the spec; the error says how to set it. */
err settings_check_words(int argc, char **argv);
/* ERR_INPUT: a flag is given that is for another kind of task. */
err settings_check_flags(const struct run *);
/* ERR_INPUT: a key is given that has no effect in this run, or that it cannot fulfil. */
err settings_check_spec(const struct run *);

#endif
