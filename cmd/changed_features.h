/* changed_features.h - the flag of all commands that read a checkpoint: what to do if the spec's
 * features have changed their meaning since it was made (core/train/spec/features.h). */
#ifndef CMD_CHANGED_FEATURES_H
#define CMD_CHANGED_FEATURES_H

enum changed_features { CHANGED_FEATURES_REFUSE, CHANGED_FEATURES_ACCEPT };
extern const char *const changed_features_names[]; /* ends with NULL; enum changed_features */

#define CHANGED_FEATURES_FLAG(of)                                                                  \
    {                                                                                              \
        .name = "changed_features", .type = FIELD_ENUM, .offset = offsetof(of, changed_features),  \
        .fallback = "\"refuse\"", .choices = changed_features_names,                               \
        .help =                                                                                    \
            "what to do if columns, words, boundaries, numbers of ids or the order of inputs "     \
            "differ from those the checkpoint was trained with: refuse, or accept with a warning"  \
    }

#endif
