/* row_exchange.h - which rows of tables count, of those that travel beside what the roles say.
 *
 * ROWS is carried past the roles, since it is heard while a step is computed as well. A push
 * consists of ROWS and PUSH, on one link and in this order. The rows of a batch come in front of
 * the VALUES that answer the push before it, where that has named them; else the worker asks for
 * them, and is answered at once. Who carries ROWS has one of these structs for each peer.
 */
#ifndef CORE_CLUSTER_ROLE_ROW_EXCHANGE_H
#define CORE_CLUSTER_ROLE_ROW_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/message.h"

/* ---- at a ps ---- */

/* What a worker has said with a push. */
struct rows_told {
    uint64_t push;    /* its number; 0: nothing */
    bool wants;       /* the answer to it brings rows */
    uint64_t brought; /* the same push, once the answer to it has brought rows; 0: not yet */
};

enum rows_turn {
    ROWS_VOID,   /* of another life of the values */
    ROWS_REFUSE, /* likewise, and somebody waits: ROWS_NONE */
    ROWS_ANSWER, /* with rows, now */
    ROWS_KEEP,   /* until the push is applied */
    ROWS_WRONG,  /* it is to be of rows that were brought, and none were */
};

/* is_of_this_life: of the generation that is served, and the worker has windows. */
enum rows_turn rows_heard(struct rows_told *, const struct message *, bool is_of_this_life);
/* A PUSH without the ROWS that belong to it is none. */
bool rows_belong(const struct rows_told *, const struct message *push);
/* Before VALUES leave: true, once: rows go in front of them. */
bool rows_are_due(struct rows_told *);
void rows_told_forget(struct rows_told *); /* a JOIN: it is said anew */

/* ---- at a worker ---- */

struct rows_asked {
    uint64_t number; /* of the last request */
    bool is_answered, is_refused;
    uint64_t came; /* 1 + number of the batch whose rows came since the last VALUES; 0: none */
};

uint64_t rows_ask(struct rows_asked *); /* the number of this request */
/* The last request was not answered, and may be: what it names must stay as it is. */
bool rows_are_open(const struct rows_asked *);
void rows_asked_forget(struct rows_asked *); /* the link is another one */
/* fit: they are as many as were named last. */
void rows_arrived(struct rows_asked *, const struct message *, bool fit);
/* VALUES are there: 1 + number of the batch whose rows are, too; 0: of none. */
uint64_t rows_with_values(struct rows_asked *);

#endif
