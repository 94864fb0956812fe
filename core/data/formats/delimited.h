/* delimited.h - records of delimited text (CSV, TSV), one at a time.
 *
 * A record is a line, except that a cell in double quotes may hold delimiters, line ends and, as
 * "", quotes; a quote behind the beginning of a cell is text. LF and CRLF end lines, a byte order
 * mark at the beginning and empty lines are skipped, blanks around a cell do not belong to it.
 * A line with a NUL, or with a CR in it that is neither in quotes nor in front of LF, is refused;
 * of LINES a CR within is left to the reader.
 */
#ifndef CORE_DATA_FORMATS_DELIMITED_H
#define CORE_DATA_FORMATS_DELIMITED_H

#include "core/data/cells.h"
#include "core/data/input.h"

/* The delimiter of cells that are words with any blanks around them: quotes are text then, and
 * lines of blanks are skipped. */
static const char WORDS = '\0';
/* What is wrong with a CR elsewhere, and what to do */
extern const char delimited_of_return[];
/* Of cells that are whole lines. */
static const char LINES = '\n';
enum { CELLS_MAX = 65536, RECORD_BYTES_MAX = 1 << 20 };

struct delimited {
    struct input *input; /* borrowed */
    char delimiter;
    const char *more; /* of a delimiter of several characters those behind the first, else "";
                         borrowed */
    size_t more_bytes;
    int64_t line;             /* where the record begins, from 1 */
    uint64_t begin;           /* its first byte in what is unpacked, from 0 */
    struct block cell_memory; /* most of which is never touched */
    struct cell *cells;       /* [CELLS_MAX] there */
    int count;

    char *buffer;   /* [BUFFER_BYTES] */
    size_t at, end; /* of what is in the buffer and not yet given out */
    /* Where cells of the lines from `at` end, from `marked` in the buffer; of whole ones that need
     * no other look. */
    uint16_t *marks; /* [MARKED_BYTES] */
    size_t marked;
    int mark, mark_count; /* the next one, all */
    int64_t next_line;
    int64_t lines;      /* of the record: more than one where a cell in quotes has line ends */
    bool has_quote;     /* the record may have one */
    size_t others_left; /* bytes to look at for what is no UTF-8; 0: it is known */
    bool is_odd;        /* NULs or lone CRs were read: each record is looked at */
    bool is_at_end;     /* of the file; the buffer may hold more */
    bool skips_broken;  /* as it reads them: delimited_skip() passes over records that are */
    bool is_passed; /* beside an ERR_INPUT: it is about this record alone, and the next call gives
                       the one behind it */
};

err delimited_open(struct input *, char delimiter, struct delimited *ret);
/* Before the first record */
void delimited_set_more(struct delimited *, const char *more);
void delimited_close(struct delimited *); /* a zeroed one is fine */

/* The cells stay until the next call. *ret_found is false past the last record. */
err delimited_next(struct delimited *, bool *ret_found);

/* Passes over the next record that has cells and does not begin with `comment` (NUL: any may). Of
 * errors it sees only a file that ends within quotes, or a record that is too long. */
err delimited_skip(struct delimited *, char comment, bool *ret_found);
/* The next record is the one that begins there: its byte and its line. */
err delimited_seek(struct delimited *, uint64_t begin, int64_t line);

#endif
