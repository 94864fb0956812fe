/* error.h - kinds of errors, and the text of the last one.
 *
 * A function that can fail returns err. The kind says what the caller does next; the text is for a
 * person and stays in a buffer of the calling thread until the next fail(). Callers put their
 * context in front of it:
 *
 *     err e = shape_parse(...);
 *     if (e) return fail_prefix(e, "model[%d]", i);   ->  "model[2]: units must be from 1 to ..."
 *
 * The text is safe to print, whatever it quotes (printable.h).
 *
 * Out parameters (ret_...) are written only when OK is returned.
 */
#ifndef CORE_BASE_ERROR_H
#define CORE_BASE_ERROR_H

enum [[nodiscard]] err{
    OK = 0,       ERR_INPUT, /* a flag, a spec or a data file is wrong: a person must change it */
    ERR_MEMORY,              /* no memory, or a limit on memory reached */
    ERR_IO,                  /* the operating system refused a file or a socket */
    ERR_PEER,                /* another task is lost or refused: may work when started again */
    ERR_PROTOCOL,            /* a peer violated the protocol */
    ERR_DEVICE,              /* an arithmetic library or a GPU failed */
    ERR_LOST,                /* a GPU failed at run time: may work when started again */
    ERR_NUMBER,              /* NaN or infinity where a number must be */
    ERR_TIMEOUT,             /* a named limit on waiting was reached */
    ERR_STOPPED,             /* a signal asked to stop */
};
typedef enum err err;

enum { ERROR_TEXT_MAX = 1024 };

#define TRY(call)                                                                                  \
    do {                                                                                           \
        err try_error = (call);                                                                    \
        if (try_error) return try_error;                                                           \
    } while (0)

/* Sets the thread's text and returns the kind. */
err fail(err kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " before the thread's text and returns the kind. */
err fail_prefix(err kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The text of this thread's last failure; "" before the first. */
const char *error_text(void);

/* The kind in words: "bad input", "lost peer", ... */
const char *error_kind_name(err kind);

#endif
