/* settings.h - what may be changed of a job while it runs (`dtrain set`), and what has been.
 *
 * The changes are kept in the folder of the checkpoints (SETTINGS_NAME), oldest first. What the
 * values depend on (the learning rate, the last step) changes at a checkpoint: a change holds from
 * the step of that checkpoint on, and whoever restores a checkpoint of that step or a later one has
 * it. So it is the same for all ps, and restarts and other chiefs make no difference. The other
 * keys concern the chief alone, and the last change of each holds whatever is restored.
 *
 * A change stands instead of what the spec said then: where the spec says something else by now,
 * the spec holds.
 */
#ifndef CORE_TRAIN_SPEC_SETTINGS_H
#define CORE_TRAIN_SPEC_SETTINGS_H

#include "core/train/spec/spec.h"

enum { SETTINGS_MAX = 64, SETTING_VALUE_MAX = 32, SETTING_WHO_MAX = 64 };

enum setting_key {
    SETTING_LEARNING_RATE,
    SETTING_LAST_STEP,
    SETTING_SAVE_SECS,
    SETTING_SAVE_STEPS,
    SETTING_PUBLISH_SECS,
    SETTING_LOG_STEPS,
    SETTING_KEYS
};

struct setting {
    const char *key; /* as --set has it */
    const char *help;
    double min, max;
    bool is_integer;
    bool is_of_values; /* it changes at a checkpoint, for all ps */
};
extern const struct setting setting_table[SETTING_KEYS];

enum setting_kind {
    SETTING_NUMBER,
    SETTING_FACTOR, /* "x0.5": the learning rate of the spec times this */
    SETTING_SPEC,   /* "spec": the value of the spec again */
};

struct setting_change {
    enum setting_key key;
    enum setting_kind kind;
    double number;       /* or the factor */
    uint64_t step;       /* from which it holds */
    uint64_t generation; /* that ended with it; 0: of a key that is not of values */
    double time_s;       /* unix time */
    char who[SETTING_WHO_MAX];
    char instead_of[SETTING_VALUE_MAX]; /* what the spec had then at setting_instead_of */
};

struct settings {
    struct setting_change at[SETTINGS_MAX]; /* oldest first */
    int count;
};

/* key: as in the table, or what follows its last dot ("learning_rate"). ERR_INPUT: the text lists
 * what there is, or says which values the key takes. */
err setting_read(const char *key, const char *value, struct setting_change *ret);
/* "x0.5", "0.001", "spec" */
void setting_text(const struct setting_change *, char ret[SETTING_VALUE_MAX]);
/* The value of a key in the spec, as short JSON; "null": none. */
void setting_of_spec(const struct spec *, enum setting_key, char ret[SETTING_VALUE_MAX]);
/* The same of the key and those that mean the same in a spec (num_steps and epochs for last_step):
 * if that has changed since, the spec counts again. */
void setting_instead_of(const struct spec *, enum setting_key, char ret[SETTING_VALUE_MAX]);
void setting_note_who(struct setting_change *, const char *who); /* cut to its room */
/* Whether the change fits a job of this spec that is at this step. end_of_spec: the step at which
 * it ends if nobody has set one; 0: not known. ERR_INPUT. */
err setting_check(const struct setting_change *, const struct spec *, uint64_t step,
                  uint64_t end_of_spec);

/* None if there is no file. ERR_INPUT: it is not valid; ERR_IO: storage does not answer. */
err settings_load(const char *folder, struct settings *ret);
err settings_keep(const char *folder, const struct settings *);
/* The oldest change that a later one has replaced makes room. */
void settings_add(struct settings *, const struct setting_change *);
/* A checkpoint of this step is restored: changes of values at later steps are dropped. Returns how
 * many. */
int settings_forget_after(struct settings *, uint64_t step);

int settings_forget_key(struct settings *, enum setting_key); /* the same */

bool settings_hold(const struct settings *, const struct setting_change *); /* this very one */
/* The last change of the key; NULL: none, or the spec counts (again). */
const struct setting_change *settings_find(const struct settings *, const struct spec *,
                                           enum setting_key);
/* The factor on the rates of schedules; 1: nothing is set. */
double settings_rate_factor(const struct settings *, const struct spec *);
/* For keys that concern the chief alone: changes the spec as the job is to follow it; was: as it
 * was read. */
void settings_apply(const struct settings *, const struct train_spec *was, struct spec *);
/* For people: {"key": {"value": ..., "spec": ..., "step": ..., "by": ..., ...}, ...}; NULL: no
 * memory. */
json_t *settings_json(const struct settings *, const struct spec *);

#endif
