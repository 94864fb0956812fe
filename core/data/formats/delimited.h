/* delimited.h - records of delimited text (CSV, TSV), one at a time.
 *
 * A record is a line, except that a cell in double quotes may contain delimiters, line ends and,
 * doubled, quotes; a quote elsewhere than at the beginning of a cell is text. Lines end with LF or
 * CRLF; a byte order mark at the beginning and empty lines are skipped, blanks around a cell are
 * dropped. A line with a NUL, or with a CR that is neither in quotes nor before LF, is an error;
 * with LINES such a CR is left to the caller.
 */
#ifndef CORE_DATA_FORMATS_DELIMITED_H
#define CORE_DATA_FORMATS_DELIMITED_H

#include "core/data/cells.h"
#include "core/data/input.h"

/* As the delimiter: cells are words separated by blanks; quotes are text, and blank lines are
 * skipped. */
static const char WORDS = '\0';
/* Message about a CR elsewhere, with advice */
extern const char delimited_of_return[];
/* As the delimiter: a cell is a whole line. */
static const char LINES = '\n';
enum { CELLS_MAX = 65536, RECORD_BYTES_MAX = 1 << 20 };

struct delimited {
    struct input *input; /* borrowed */
    char delimiter;
    const char *more; /* the delimiter's characters after the first, or ""; borrowed */
    size_t more_bytes;
    int64_t line;             /* of the record's begin, from 1 */
    uint64_t begin;           /* the record's offset in the unpacked file */
    struct block cell_memory; /* most of it is never touched */
    struct cell *cells;       /* [CELLS_MAX] in cell_memory */
    int count;

    char *buffer;   /* [BUFFER_BYTES] */
    size_t at, end; /* the part of the buffer not yet returned */
    /* Ends of cells, relative to `marked` in the buffer, of the lines from `at`; only of complete
     * lines that need no further checks. */
    uint16_t *marks; /* [MARKED_BYTES] */
    size_t marked;
    int mark, mark_count; /* the next one, and how many */
    int64_t next_line;
    int64_t lines;      /* of the record: more than one if a quoted cell has line ends */
    bool has_quote;     /* the record may have a quote */
    size_t others_left; /* bytes still to be checked for invalid UTF-8; 0: done */
    bool is_odd;        /* NULs or lone CRs were read, so every record is checked */
    bool is_at_end;     /* of the file; the buffer may still have records */
    bool skips_broken;  /* delimited_skip() does not return broken records */
    bool is_passed;     /* with ERR_INPUT: only this record is broken, and the next call returns the
                           one after it */
};

err delimited_open(struct input *, char delimiter, struct delimited *ret);
/* Before the first record */
void delimited_set_more(struct delimited *, const char *more);
void delimited_close(struct delimited *); /* may be zeroed */

/* Cells are valid until the next call. *ret_found is false after the last record. */
err delimited_next(struct delimited *, bool *ret_found);

/* Skips the next record that has cells and does not begin with `comment` (NUL: none is a comment).
 * It detects no errors but a file that ends within quotes and a record that is too long. */
err delimited_skip(struct delimited *, char comment, bool *ret_found);
/* Continues with the record that begins at this offset and line. */
err delimited_seek(struct delimited *, uint64_t begin, int64_t line);

#endif
