/* message.h - what tasks say to each other.
 *
 * A message is a small header, and with it either a body (a few bytes of text or numbers) or a
 * stretch of a window. A window is memory of the sender that the receiver sees as memory of its
 * own: over TCP the stretch is carried into the receiver's buffer before the message is delivered,
 * within one host both sides map the same pages and nothing moves. Payloads are therefore never
 * serialised and never copied on the way.
 *
 * On the wire: MESSAGE_HEADER_BYTES little-endian bytes, then the body or the stretch.
 */
#ifndef NET_MESSAGE_H
#define NET_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/range.h"

enum {
    PROTOCOL_VERSION = 25,
    MESSAGE_HEADER_BYTES = 80,
    MESSAGE_BODY_MAX = 16 << 20,
    MESSAGE_MAGIC = 0x31745264
};
#define MESSAGE_COUNT_MAX (UINT64_C(1) << 62) /* steps, pushes, terms: a sum of two fits too */

/* messages.def lists them. */
enum message_type {
#define MESSAGE(KIND, ...) MESSAGE_##KIND,
#include "net/messages.def"
    MESSAGE_TYPES
};

enum message_sender {
    FROM_PS = 1,
    FROM_WORKER = 2, /* including the chief */
    FROM_CHIEF = 4,
    FROM_VISITOR = 8
};

enum message_load {
    ALONE,
    WITH_BODY,    /* optional */
    WITH_STRETCH, /* of a ps' block; none if that is empty or there is nothing to send yet */
    WITH_ROWS,    /* optional: a stretch of the window of rows */
    WITH_LENT,    /* optional: of the window of gradients, also from a ps to a worker */
};

enum ps_state { PS_EMPTY, PS_READY, PS_SERVING };

enum leads_code {
    LEADS_HEARD,  /* as the sender has heard; a worker that sends this could lead */
    LEADS_CLAIMS, /* the sender itself leads */
};

enum ready_code {
    READY_WANTS, /* the next array, by INIT (none where the block is empty) */
    READY_RESTORED,
    READY_FAILED, /* to restore; body: text */
};

enum join_code {
    JOIN_PLAIN,
    JOIN_TAKES_BACK, /* what an earlier life pushed to some ps only, and no round has taken yet,
                        comes again; others wait for it: no snapshot holds the worker */
    JOIN_UNUSED,     /* nothing came of the last ticket: it is given back */
    JOIN_COMPLETES,  /* to ps/0: another ps has the push that comes next: there is a ticket for it,
                   beyond the last step if need be */
};

enum values_code {
    VALUES_TICKET = 1,       /* one more step may be computed (ps/0 says so) */
    VALUES_DROPPED = 2,      /* the gradient that this answers was too old and not applied */
    VALUES_FINAL = 4,        /* nobody will change them any more */
    VALUES_HELD = 8,         /* none during a snapshot: only what became of the gradient */
    VALUES_WANTS_PARTS = 16, /* parts of the next gradient help before it is whole */
    VALUES_STOPS = 32,       /* the job is to end: who lacks its batch for the step brings none */
    VALUES_WANTS_WHOLE = 64, /* the next gradient is not to come in parts, which would keep room */
};

enum resume_code {
    RESUME_GO,
    RESUME_STAY, /* all ps have the snapshot, and nobody is answered yet: a resize or change
                    follows */
    RESUME_DROP, /* the checkpoint is given up: what is written of it goes */
};

enum averages_code {
    AVERAGES_LAST = 1, /* all that are wanted have come with this */
    AVERAGES_NONE = 2, /* there are none for this worker now */
};

enum finished_code {
    FINISHED_UNUSED = 1, /* the last ticket: there is no batch for it */
};

enum leave_code {
    LEAVE_ASKED,  /* between two steps: the ticket for the next one comes back */
    LEAVE_ABSENT, /* asked by who takes no part: nothing is known of the push that a ticket is for
                   */
    LEAVE_GRANTED,
    LEAVE_REFUSED, /* too few would be left, or nobody to lead: the job is to end instead */
    LEAVE_GONE,
};

enum rows_code {
    ROWS_ASKED = 1,    /* to a ps: only ids, to be answered at once */
    ROWS_AND_NEXT = 4, /* to a ps: beside gradients ids, to be answered with the push's values */
    ROWS_BROUGHT = 8,  /* to a ps: gradients of the rows that the answer to the push before has
                          brought: it has their ids */
    ROWS_MADE = 16,    /* to a ps, beside ROWS_ASKED: as who does not train reads them */
    ROWS_NONE = 2, /* to a worker: the answer is that there are none, as of another generation */
};

enum trace_code {
    TRACE_PLAN,    /* chief to ps/0, ps/0 to workers */
    TRACE_MARK,    /* worker to ps: its first step begins */
    TRACE_PUSHING, /* worker to ps: a push comes next */
    TRACE_CLOCK,   /* ps to worker, answer to both; body: three times */
    TRACE_END,     /* worker to ps: its last step is over */
    TRACE_COLLECT, /* chief to ps: whoever has not ended is not waited for */
    TRACE_PART,    /* worker to ps/0, ps to chief; body: spans of the sender, or of worker `task` */
};

enum request_code {
    REQUEST_SAVE,    /* to the chief: a checkpoint now */
    REQUEST_LEAVE,   /* to a worker: to leave, as by a signal, while the job continues */
    REQUEST_LOG,     /* to a worker: lines of its log, from `number` on; a REPLY comes */
    REQUEST_PROFILE, /* to the chief: a timeline of `number` steps; a REPLY comes */
    REQUEST_SETTING, /* to the chief: JSON of a key and its value, or none; a REPLY comes */
};

enum shard_file { SHARD_DATA, SHARD_INDEX };

/* A struct of the fields of each kind: struct message_push {gradients, push, step, updates}. */
#define FIELD(type, name, range, meaning) type name;
#define SKIP(type)                                                                                 \
    type:                                                                                          \
    8 * sizeof(type);
#define MESSAGE(KIND, kind, senders, load, ...)                                                    \
    struct message_##kind {                                                                        \
        __VA_ARGS__                                                                                \
    };
#include "net/messages.def"
#undef FIELD
#undef SKIP

struct message {
    uint32_t type;           /* enum message_type */
    uint32_t task;           /* index of the sender in its job */
    uint32_t job;            /* enum job of the sender */
    uint64_t generation;     /* drawn by the chief whenever it initialises or restores the values;
                                messages of another generation are void */
    uint64_t offset, length; /* of its stretch, in bytes of the window; length 0: none */
    /* The floats of the block that the stretch holds, if it is one of the block: filled in, and
     * translated, by the owners of links, not by transports. */
    struct range range;
    uint32_t body_bytes;
    const void *body; /* valid during the call that delivers it; not terminated */
    union {           /* by type */
#define MESSAGE(KIND, kind, ...) struct message_##kind kind;
#include "net/messages.def"
        struct message_places { /* for net/message.c: the fields of any kind */
            uint32_t narrow;
            uint64_t wide[4];
        } places;
    };
};

/* messages.def lists them. */
enum message_range {
#define RANGE(name, most) RANGE_##name,
#include "net/messages.def"
    MESSAGE_RANGES
};

/* The fields of a kind by their places in the header, for code that loops over them. */
enum { MESSAGE_PLACES = 5 };
struct message_field {
    const char *name; /* NULL: this kind has no field there */
    enum message_range range;
};
const struct message_field *message_field(uint32_t type, int place);
uint64_t message_number(const struct message *, int place); /* 0 where it has no field */
void message_set_number(struct message *, int place,
                        uint64_t); /* no effect without one; place 0 keeps 32 bits */

/* The limits of all ranges, as a receiver knows them now. */
struct message_ends {
    struct message_end {
        uint64_t least, most; /* 0 is always allowed */
    } at[MESSAGE_RANGES];
};
extern const struct message_ends message_ends_of_all; /* the widest, valid for any receiver */

const char *message_name(uint32_t type); /* "PUSH"; any number is fine */
bool message_has_stretch(uint32_t type); /* a stretch of the block */
bool message_has_rows(uint32_t type);    /* its stretch lies in the window of rows */
bool message_has_lent(uint32_t type);    /* in the window of gradients, whoever sends it */
/* It moves bytes of a window and means nothing by itself. */
bool message_is_part(uint32_t type);
/* It does not concern steps or values: parts sent after it may be delivered before it. */
bool message_may_wait(uint32_t type);
/* Queued parts are overtaken by what the receiver needs sooner: by parts that lie further back in
 * the block, by rows, and by VALUES; 0: it overtakes nothing. */
uint64_t message_urgency(const struct message *);
bool message_yields(const struct message *);
/* Why this sender (the enum message_sender bits that apply to it) may not send such a message, as
 * text to follow "sent PUSH, "; NULL: messages.def allows it. */
const char *message_fault(const struct message *, unsigned sender);
/* Whether all of its fields are within their ranges. false: ret_text says which is not, to follow
 * the same words. */
enum { MESSAGE_BREACH_MAX = 128 };
bool message_is_within(const struct message *, const struct message_ends *,
                       char ret_text[MESSAGE_BREACH_MAX]);

/* "PUSH gradients 1, push 7, step 6, updates 6", for a trace */
enum { MESSAGE_TEXT_MAX = 256 };
const char *message_show(const struct message *, char text[MESSAGE_TEXT_MAX]);

#endif
