/* row_exchange.h - which messages with rows of tables are valid; they bypass the roles.
 *
 * ROWS bypasses the roles, since it is also received while a step is computed. A push consists of
 * ROWS and PUSH, on one link and in this order. The rows of a batch come before the VALUES that
 * answer the previous push, if that has named them; else the worker requests them, and is answered
 * at once. The runner has one of these structs for each peer.
 */
#ifndef CORE_CLUSTER_ROLE_ROW_EXCHANGE_H
#define CORE_CLUSTER_ROLE_ROW_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/message.h"

/* ---- at a ps ---- */

/* What a worker has announced with a push. */
struct rows_told {
    uint64_t push;    /* its number; 0: nothing */
    bool wants;       /* its answer is to bring rows */
    uint64_t brought; /* = push, once its answer has brought rows; 0: not yet */
};

enum rows_turn {
    ROWS_VOID,   /* of another generation: ignored */
    ROWS_REFUSE, /* likewise, but the worker waits: answer ROWS_NONE */
    ROWS_ANSWER, /* with rows, now */
    ROWS_KEEP,   /* until the push is applied */
    ROWS_WRONG,  /* refers to rows that were brought, and none were */
};

/* is_of_this_life: of the current generation, and the worker has windows. */
enum rows_turn rows_heard(struct rows_told *, const struct message *, bool is_of_this_life);
/* false: the ROWS of this PUSH have not come, so it is not valid. */
bool rows_belong(const struct rows_told *, const struct message *push);
/* To be called before VALUES are sent: true, once: rows are to be sent first. */
bool rows_are_due(struct rows_told *);
void rows_told_forget(struct rows_told *); /* after JOIN, which begins anew */

/* ---- at a worker ---- */

struct rows_asked {
    uint64_t number; /* of the last request */
    bool is_answered, is_refused;
    uint64_t came; /* 1 + batch whose rows came since the last VALUES; 0: none */
};

uint64_t rows_ask(struct rows_asked *); /* returns the number of this request */
/* The last request may still be answered: the memory that it names must not change. */
bool rows_are_open(const struct rows_asked *);
void rows_asked_forget(struct rows_asked *); /* after a new link */
/* fit: as many rows as were named last. */
void rows_arrived(struct rows_asked *, const struct message *, bool fit);
/* VALUES have come: returns 1 + the batch whose rows have come, too; 0: none. */
uint64_t rows_with_values(struct rows_asked *);

#endif
