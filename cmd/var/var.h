/* var.h - what the verbs of `dtrain var` share. */
#ifndef CMD_VAR_VAR_H
#define CMD_VAR_VAR_H

#include <jansson.h>

#include "cmd/registry/visited.h"
#include "core/base/fields/fields.h"
#include "core/cluster/visit/target.h"

struct var_flags {
    struct cluster_flags cluster; /* ps_hosts, or coordinator and cluster */
    uint64_t timeout_ms, every_ms;
    int64_t count;
    bool json;
};

struct var {
    struct var_flags flags;
    struct visited visited;
    int ps_count; /* that take part */
    struct arena arena;
    struct visitor *visitor; /* of the visited */
    const char *name;
    struct selection selection;
    json_t *value;     /* NULL: none was given */
    bool *holds;       /* [ps]: has (a part of) the variable; all of them before the first answer */
    uint64_t *version; /* [ps]: of the last answer */
    int code;          /* of the job, where it ended while it was watched */
};

/* Does the ps say that it cannot answer? */
err var_check_answer(const struct var *, int ps);

err var_ls(struct var *);

#endif
