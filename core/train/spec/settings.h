/* settings.h - settings that can be changed while a job runs (`dtrain set`), and their stored
 * changes.
 *
 * The changes are stored in the checkpoint folder (SETTINGS_NAME), oldest first. Settings that
 * affect values (the learning rate, the last step) change at a checkpoint: a change applies from
 * that checkpoint's step on, and to every run that restores a checkpoint of that step or a later
 * one. So it is the same on all ps, also after restarts and with other chiefs. The other settings
 * concern the chief only, and the last change of each applies whatever is restored.
 *
 * A change overrides the value that the spec had then: once the spec has another value, the spec
 * applies again.
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
    const char *key; /* as in --set */
    const char *help;
    double min, max;
    bool is_integer;
    bool is_of_values; /* it affects values: changes at a checkpoint, on all ps */
};
extern const struct setting setting_table[SETTING_KEYS];

enum setting_kind {
    SETTING_NUMBER,
    SETTING_FACTOR, /* "x0.5": a factor on the spec's learning rate */
    SETTING_SPEC,   /* "spec": back to the spec's value */
};

struct setting_change {
    enum setting_key key;
    enum setting_kind kind;
    double number;       /* or the factor */
    uint64_t step;       /* from which it applies */
    uint64_t generation; /* that ended with it; 0: a key that does not affect values */
    double time_s;       /* unix time */
    char who[SETTING_WHO_MAX];
    char instead_of[SETTING_VALUE_MAX]; /* result of setting_instead_of at that time */
};

struct settings {
    struct setting_change at[SETTINGS_MAX]; /* oldest first */
    int count;
};

/* key: as in the table, or the part after its last dot ("learning_rate"). ERR_INPUT: the text lists
 * the keys, or says which values this one takes. */
err setting_read(const char *key, const char *value, struct setting_change *ret);
/* "x0.5", "0.001", "spec" */
void setting_text(const struct setting_change *, char ret[SETTING_VALUE_MAX]);
/* The value of a key in the spec, as compact JSON; "null": none. */
void setting_of_spec(const struct spec *, enum setting_key, char ret[SETTING_VALUE_MAX]);
/* The same for the key and its alternatives (num_steps and epochs for last_step): if that has
 * changed since, the spec applies again. */
void setting_instead_of(const struct spec *, enum setting_key, char ret[SETTING_VALUE_MAX]);
void setting_note_who(struct setting_change *, const char *who); /* truncated */
/* Checks the change against a job of this spec at this step. end_of_spec: the step at which it ends
 * without changes; 0: unknown. ERR_INPUT. */
err setting_check(const struct setting_change *, const struct spec *, uint64_t step,
                  uint64_t end_of_spec);

/* Empty if there is no file. ERR_INPUT: it is invalid; ERR_IO: storage failed. */
err settings_load(const char *folder, struct settings *ret);
err settings_keep(const char *folder, const struct settings *);
/* Adds a change; if full, drops the oldest one that a later one has replaced. */
void settings_add(struct settings *, const struct setting_change *);
/* A checkpoint of this step was restored: drops changes of values at later steps. Returns how many.
 */
int settings_forget_after(struct settings *, uint64_t step);

int settings_forget_key(struct settings *, enum setting_key); /* drops all changes of the key;
                                                                 returns how many */

bool settings_hold(const struct settings *, const struct setting_change *); /* contains exactly this
                                                                               change */
/* The last change of the key; NULL: none, or the spec applies (again). */
const struct setting_change *settings_find(const struct settings *, const struct spec *,
                                           enum setting_key);
/* The factor on the rates of schedules; 1: not changed. */
double settings_rate_factor(const struct settings *, const struct spec *);
/* For keys that concern the chief only: updates the spec to the settings in effect; was: as it was
 * read. */
void settings_apply(const struct settings *, const struct train_spec *was, struct spec *);
/* For display: {"key": {"value": ..., "spec": ..., "step": ..., "by": ..., ...}, ...}; NULL: out of
 * memory. */
json_t *settings_json(const struct settings *, const struct spec *);

#endif
