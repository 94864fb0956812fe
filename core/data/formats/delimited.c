/* delimited.c - records of delimited text: see delimited.h. */
#include "core/data/formats/delimited.h"

#include "core/base/printable.h"
#include "core/data/not_utf8.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    BUFFER_BYTES = RECORD_BYTES_MAX + 1, /* a record, and a NUL after its last cell */
    MARKED_BYTES = 16 << 10,             /* searched at once: fits into the L1 cache */
    STEP_BYTES = 64,                     /* bytes per 64-bit mask */
    OTHERS_BYTES = 16 << 20,             /* bytes checked for UTF-8; after that the file is taken
                                            as valid */
    NULS_BYTES_MAX = 256 << 20,          /* limit of NULs to look through at the end of a file */
};
_Static_assert((int)MARKED_BYTES <= (int)CELLS_MAX, "marks of too many cells");

#define WRITE_LF "write LF instead (tr '\\r' '\\n')"
static const char of_nul[] = "has a NUL byte: was the file written to its end, and is it text? "
                             "(tr -d '\\0' leaves NULs out)";
const char delimited_of_return[] =
    "has a carriage return (CR) within: where lines end with CR alone, " WRITE_LF
    ", else leave it out (tr -d '\\r')";

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The first CR that is not followed by LF; NULL: none. A CR as the last byte does not count, as LF
 * may follow. */
static const char *find_lone_return(const char *from, const char *to)
{
    while (from < to && (from = memchr(from, '\r', (size_t)(to - from))) != NULL) {
        if (from + 1 < to && from[1] != '\n') return from;
        from++;
    }
    return NULL;
}

/* Whether there are NULs or lone CRs; most files have none, so that lines need no further check. */
static bool has_odd_bytes(const char *from, size_t bytes)
{
    return memchr(from, '\0', bytes) || find_lone_return(from, from + bytes);
}

/* Warns of text that is not UTF-8: words are compared by their bytes, so Latin-1 words would not
 * match those of other files. (For JSON the parser reports it.) from: index of the new bytes in the
 * buffer; a character may begin before it. */
static void look_for_others(struct delimited *d, size_t from)
{
    enum { BYTES_BEFORE = 3 };
    size_t bytes = d->end - from;
    for (int i = 0; i < BYTES_BEFORE && from > d->at; i++) from--, bytes++;
    while (from > d->at && bytes > 0 && (d->buffer[from] & 0xc0) == 0x80) from++, bytes--;
    const size_t sound = utf8_prefix(d->buffer + from, bytes);
    const bool is_begun = utf8_bytes(d->buffer + from + sound, bytes - sound) == PRINTABLE_BEGUN;
    if (sound == bytes || (is_begun && !d->is_at_end)) return;
    d->others_left = 0;
    not_utf8_warn(input_path(d->input), d->next_line, d->buffer + d->at, from + sound - d->at,
                  d->end - d->at);
}

static bool has_others(const char *from, size_t bytes)
{
    uint8_t all = 0;
    for (size_t i = 0; i < bytes; i++) all |= (uint8_t)from[i];
    return all & 0x80;
}

/* Moves the rest to the beginning of the buffer and reads more, so that it has at most `bytes`. */
static err fill_to(struct delimited *d, size_t bytes)
{
    size_t got = 0;
    memmove(d->buffer, d->buffer + d->at, d->end - d->at);
    d->end -= d->at;
    d->at = 0;
    TRY(input_some(d->input, d->buffer + d->end, bytes - d->end, &got));
    const size_t behind = d->end > 0 ? 1 : 0; /* the last byte may be a CR */
    if (!d->is_odd) d->is_odd = has_odd_bytes(d->buffer + d->end - behind, got + behind);
    d->end += got;
    d->is_at_end = got == 0;
    if (d->others_left == 0 || !has_others(d->buffer + d->end - got - behind, got + behind))
        return OK;
    d->others_left -= got < d->others_left ? got : d->others_left;
    look_for_others(d, d->end - got);
    return OK;
}

static err fill(struct delimited *d)
{
    return fill_to(d, RECORD_BYTES_MAX);
}

/* Skips the byte order mark that spreadsheets write, which would become part of the first column's
 * name. Reads little, since a stream may open a file just for its names. */
static err look_at_head(struct delimited *d)
{
    while (d->end < INPUT_TOLD_BYTES && !d->is_at_end) TRY(fill_to(d, MARKED_BYTES));
    if (d->end >= 3 && !memcmp(d->buffer, "\xef\xbb\xbf", 3)) d->at = 3;
    return input_is_table(d->input, d->buffer + d->at, d->end - d->at);
}

err delimited_open(struct input *input, char delimiter, struct delimited *ret)
{
    struct delimited d = {.input = input, .delimiter = delimiter, .more = "", .next_line = 1};
    d.others_left = delimiter == LINES ? 0 : OTHERS_BYTES;
    TRY(input_is_text(input));
    d.buffer = malloc(BUFFER_BYTES);
    d.marks = malloc(MARKED_BYTES * sizeof *d.marks);
    err e = block_new(CELLS_MAX * sizeof *d.cells, &d.cell_memory);
    d.cells = d.cell_memory.at; /* other members stay zero, since all cells are text */
    if (e || !d.buffer || !d.marks) e = fail(ERR_MEMORY, "no memory to read %s", input_path(input));
    if (!e) e = look_at_head(&d);
    if (e)
        delimited_close(&d);
    else
        *ret = d;
    return e;
}

void delimited_set_more(struct delimited *d, const char *more)
{
    d->more = more;
    d->more_bytes = strlen(more);
}

void delimited_close(struct delimited *d)
{
    free(d->buffer);
    free(d->marks);
    block_drop(&d->cell_memory);
    *d = (struct delimited){0};
}

/* Position of a byte within a cell. */
enum byte_place { AT_START, IN_TEXT, IN_QUOTES, BEHIND_QUOTE };

static bool has_quotes(const struct delimited *d)
{
    return d->delimiter != WORDS && d->delimiter != LINES;
}

/* Bytes of the delimiter that begins at `from`; 0: none. to: end of the text. */
static size_t delimiter_at(const struct delimited *d, const char *from, const char *to)
{
    if (*from != d->delimiter) return 0;
    if (d->more_bytes == 0) return 1;
    const bool fits = (size_t)(to - from) > d->more_bytes;
    return fits && memcmp(from + 1, d->more, d->more_bytes) == 0 ? 1 + d->more_bytes : 0;
}

/* The position of the byte after c; c is not part of a delimiter, unless quoted. A quote only opens
 * at the beginning of a cell: elsewhere it is text, as in 5" screen. A doubled quote closes and
 * opens again. */
static enum byte_place place_after(enum byte_place place, char c)
{
    if (place == IN_QUOTES) return c == '"' ? BEHIND_QUOTE : IN_QUOTES;
    if (c == '"') return place == IN_TEXT ? IN_TEXT : IN_QUOTES;
    return place == AT_START && is_blank(c) ? AT_START : IN_TEXT;
}

/* Progress of searching a record's end; done: offset from the buffer's `at`. */
struct record_search {
    size_t done;
    enum byte_place place;
    int64_t lines;
    bool has_quote;
};

/* The common case of a line without quotes: finds its end by memchr, which is vectorized. */
static bool find_plain_end(const struct delimited *d, struct record_search *s)
{
    const char *from = d->buffer + d->at;
    const char *end = memchr(from, '\n', d->end - d->at);
    if (!end || (has_quotes(d) && memchr(from, '"', (size_t)(end - from)))) return false;
    *s = (struct record_search){.done = (size_t)(end - from), .lines = 1};
    return true;
}

/* Looks in the buffer for the line end that is not in quotes. */
static bool find_end(const struct delimited *d, struct record_search *s)
{
    const char *from = d->buffer + d->at;
    size_t have = d->end - d->at;
    if (s->done == 0 && find_plain_end(d, s)) return true;
    s->has_quote = has_quotes(d);
    while (s->done < have) {
        const char c = from[s->done];
        s->lines += c == '\n';
        if (c == '\n' && s->place != IN_QUOTES) return true;
        if (have - s->done <= d->more_bytes && !d->is_at_end) return false; /* may be cut */
        const size_t width = s->has_quote && s->place != IN_QUOTES
                                 ? delimiter_at(d, from + s->done, from + have)
                                 : 0;
        if (width)
            s->place = AT_START;
        else if (s->has_quote)
            s->place = place_after(s->place, c);
        s->done += width ? width : 1;
    }
    return false;
}

/* Whether from the first NUL on, the rest of the file is only NULs and line ends; reads it, up to
 * NULS_BYTES_MAX, since a huge sparse file would take hours. */
static err pass_nuls(struct delimited *d, bool *ret_is_so)
{
    while (d->buffer[d->at]) d->at++;
    const size_t from = input_offset(d->input);
    while ((d->at < d->end || !d->is_at_end) && input_offset(d->input) - from < NULS_BYTES_MAX) {
        if (d->at == d->end)
            TRY(fill(d));
        else if (memchr("\0\r\n", d->buffer[d->at], 3))
            d->at++;
        else
            break;
    }
    *ret_is_so = d->at == d->end;
    return OK;
}

/* NULs at the end are from a host that crashed while writing: they count as one broken row. */
static err refuse_long(struct delimited *d, const struct record_search *s)
{
    const bool has_quote = s->place == IN_QUOTES;
    if (d->is_odd && memchr(d->buffer + d->at, '\0', d->end - d->at)) {
        TRY(pass_nuls(d, &d->is_passed));
        d->is_passed = d->is_passed && !(has_quote && s->lines > 0);
        return fail(ERR_INPUT, "%s: line %lld: %s", input_path(d->input), (long long)d->line,
                    of_nul);
    }
    return fail(ERR_INPUT, "%s: line %lld: longer than %d bytes%s", input_path(d->input),
                (long long)d->line, (int)RECORD_BYTES_MAX,
                has_quote   ? "; a quote was opened and not closed"
                : d->is_odd ? "; do its lines end with CR alone? " WRITE_LF
                            : "");
}

/* Finds the next record; *ret_bytes: without its line end, *ret_taken: with it. */
static err find_record(struct delimited *d, size_t *ret_bytes, size_t *ret_taken)
{
    struct record_search s = {0};
    d->mark = d->mark_count = 0;
    d->line = d->next_line;
    d->begin = input_offset(d->input) - (d->end - d->at);
    bool found = find_end(d, &s);
    while (!found && !d->is_at_end) {
        if (d->end - d->at == RECORD_BYTES_MAX) return refuse_long(d, &s);
        TRY(fill(d));
        found = find_end(d, &s);
    }
    if (s.place == IN_QUOTES) {
        d->is_passed = s.lines == 0; /* else the quote may have swallowed rows */
        d->at = d->is_passed ? d->end : d->at;
        return fail(ERR_INPUT, "%s: line %lld: a quote is opened and the file ends",
                    input_path(d->input), (long long)d->line);
    }
    d->next_line += s.lines;
    d->has_quote = s.has_quote;
    d->lines = s.lines + !found; /* the last line may lack a line end */
    *ret_bytes = s.done;
    *ret_taken = s.done + (found ? 1 : 0);
    if (s.done > 0 && d->buffer[d->at + s.done - 1] == '\r') --*ret_bytes;
    return OK;
}

/* *to, which is overwritten by a NUL, is the delimiter or line end after the cell, or the extra
 * byte of the buffer. */
static void trim(char *from, char *to, struct cell *ret)
{
    while (from < to && is_blank(*from)) from++;
    while (to > from && is_blank(to[-1])) to--;
    *to = '\0';
    ret->text = from;
    ret->length = (size_t)(to - from);
}

/* A quote opened by mistake extends to the next quote, maybe lines below: true if there is text
 * after that one. (In a cell within one line a closing quote followed by text is just text.) */
static bool has_swallowed(const struct cell *cell)
{
    if (cell->length == 0 || cell->text[0] != '"' || !memchr(cell->text, '\n', cell->length))
        return false;
    size_t at = 1;
    while (at < cell->length &&
           (cell->text[at] != '"' || (at + 1 < cell->length && cell->text[at + 1] == '"')))
        at += cell->text[at] == '"' ? 2 : 1;
    return at + 1 < cell->length;
}

static err refuse_swallowed(const struct delimited *d)
{
    return fail(
        ERR_INPUT,
        "%s: line %lld: a quote is opened in front of cell %d, goes on over an end of line, "
        "and where it is closed, there is more text: is a quote missing, or one too many?",
        input_path(d->input), (long long)d->line, d->count);
}

/* Removes quotes around a cell in place, and then blanks at its ends; "" inside becomes one quote.
 */
static void unquote(struct cell *cell)
{
    if (cell->length < 2 || cell->text[0] != '"' || cell->text[cell->length - 1] != '"') return;
    char *const begin = (char *)cell->text, *to = begin;
    const char *end = cell->text + cell->length - 1;
    for (const char *from = cell->text + 1; from < end; from++) {
        if (*from == '"' && from + 1 < end && from[1] == '"') from++;
        *to++ = *from;
    }
    trim(begin, to, cell);
}

/* The delimiter after the cell, or `to`; *ret_width: bytes of the delimiter. */
static char *cell_end(const struct delimited *d, char *from, char *to, size_t *ret_width)
{
    enum byte_place place = AT_START;
    for (; from < to; from++) {
        *ret_width = place == IN_QUOTES ? 0 : delimiter_at(d, from, to);
        if (*ret_width) return from;
        if (d->has_quote) place = place_after(place, *from);
    }
    return to;
}

static err too_many(const struct delimited *d)
{
    return fail(ERR_INPUT, "%s: line %lld: more than %d cells", input_path(d->input),
                (long long)d->line, (int)CELLS_MAX);
}

/* Splits into cells in place: overwrites bytes of the record by NULs and unquoted text. */
static err split(struct delimited *d, char *from, char *to)
{
    for (d->count = 0; d->count < CELLS_MAX; d->count++) {
        size_t width = 0;
        char *end = cell_end(d, from, to, &width);
        trim(from, end, &d->cells[d->count]);
        if (d->lines > 1 && has_swallowed(&d->cells[d->count])) return refuse_swallowed(d);
        if (d->has_quote) unquote(&d->cells[d->count]);
        if (end == to) {
            d->count++;
            return OK;
        }
        from = end + width;
    }
    return too_many(d);
}

static err split_words(struct delimited *d, char *from, char *to)
{
    for (d->count = 0;; d->count++) {
        while (from < to && is_blank(*from)) from++;
        if (from == to) return OK;
        if (d->count == CELLS_MAX) return too_many(d);
        char *end = from;
        while (end < to && !is_blank(*end)) end++;
        trim(from, end, &d->cells[d->count]);
        from = end < to ? end + 1 : to;
    }
}

static void take_line(struct delimited *d, char *from, char *to)
{
    trim(from, to, &d->cells[0]);
    d->count = d->cells[0].length > 0;
}

/* Whether there is a CR outside quotes; with LINES the caller decides. */
static bool has_return(const struct delimited *d, const char *from, size_t bytes)
{
    enum byte_place place = AT_START;
    if (d->delimiter == LINES || !memchr(from, '\r', bytes)) return false;
    if (!has_quotes(d) || !memchr(from, '"', bytes)) return true;
    for (const char *at = from, *to = from + bytes; at < to; at++) {
        const size_t width = place == IN_QUOTES ? 0 : delimiter_at(d, at, to);
        if (*at == '\r' && place != IN_QUOTES) return true;
        place = width ? AT_START : place_after(place, *at);
        at += width ? width - 1 : 0;
    }
    return false;
}

/* For files with is_odd */
static err check_bytes(struct delimited *d, const char *from, size_t bytes)
{
    const bool has_nul = memchr(from, '\0', bytes);
    d->is_passed = has_nul || has_return(d, from, bytes);
    if (!d->is_passed) return OK;
    return fail(ERR_INPUT, "%s: line %lld: %s", input_path(d->input), (long long)d->line,
                has_nul ? of_nul : delimited_of_return);
}

/* Whether next_cells would find cells, the first of them not a comment */
static bool has_cells(const struct delimited *d, const char *from, size_t bytes, char comment)
{
    size_t blanks = 0;
    const bool is_trimmed = !has_quotes(d);
    while (is_trimmed && blanks < bytes && is_blank(from[blanks])) blanks++;
    return blanks < bytes && (!comment || from[blanks] != comment);
}

err delimited_skip(struct delimited *d, char comment, bool *ret_found)
{
    size_t bytes = 0, taken = 0;
    bool is_row;
    do {
        *ret_found = true;
        d->is_passed = false;
        err e = find_record(d, &bytes, &taken);
        const char *from = d->buffer + d->at;
        is_row = !e && has_cells(d, from, bytes, comment);
        if (!e) d->at += taken;
        if (!e && d->is_odd && !is_row) e = check_bytes(d, from, bytes);
        if (e && d->is_passed && d->skips_broken) return OK;
        TRY(e);
    } while (taken > 0 && !is_row);
    *ret_found = taken > 0;
    return OK;
}

err delimited_seek(struct delimited *d, uint64_t begin, int64_t line)
{
    d->at = d->end = 0;
    d->mark = d->mark_count = 0;
    d->is_at_end = d->is_passed = false;
    d->next_line = line;
    return input_seek(d->input, begin);
}

/* ---- many lines at once ----
 *
 * Most lines are complete in the buffer and have no quotes. For a run of these, ends of cells are
 * found 64 bytes at a time; then each line is split there. */

/* A bit for each byte that equals c; the first byte has the lowest bit. */
#ifdef __SSE2__
static uint64_t bits_of(const char at[STEP_BYTES], char c)
{
    const __m128i wanted = _mm_set1_epi8(c);
    uint64_t bits = 0;
    for (int i = 0; i < STEP_BYTES; i += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(at + i));
        bits |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, wanted)) << i;
    }
    return bits;
}
#else
/* In a word of 8 bytes, the highest bit of each byte is set if the byte is 0 after xor; the product
 * gathers the 8 bits. */
static uint64_t bits_of(const char at[STEP_BYTES], char c)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    uint64_t bits = 0, word;
    for (int i = 0; i < STEP_BYTES; i += 8) {
        memcpy(&word, at + i, sizeof word);
        word = le64toh(word) ^ UINT64_C(0x0101010101010101) * (unsigned char)c;
        word = ~(((word & low) + low) | word | low) >> 7;
        bits |= (word * UINT64_C(0x0102040810204080) >> 56) << i;
    }
    return bits;
}
#endif

/* Ends of cells and lines in the 64 bytes, up to the first quote; *ret_goes_on is false if there is
 * one. */
static uint64_t ends_of(const struct delimited *d, const char *at, bool *ret_goes_on)
{
    const char delimiter = d->delimiter == WORDS ? ' ' : d->delimiter;
    const uint64_t ends = bits_of(at, '\n') | bits_of(at, delimiter);
    if (d->delimiter == WORDS) return ends | bits_of(at, '\t');
    const uint64_t quotes = has_quotes(d) ? bits_of(at, '"') : 0;
    *ret_goes_on = !quotes;
    return quotes ? ends & ((quotes & -quotes) - 1) : ends;
}

/* Keeps marks of complete lines only: the rest is searched again later. */
static void mark_lines(struct delimited *d)
{
    const char *from = d->buffer + d->at;
    const size_t have = d->end - d->at < MARKED_BYTES ? d->end - d->at : MARKED_BYTES;
    uint16_t *marks = d->marks;
    int count = 0;
    bool goes_on = true;
    for (size_t i = 0; goes_on && i + STEP_BYTES <= have; i += STEP_BYTES)
        for (uint64_t ends = ends_of(d, from + i, &goes_on); ends; ends &= ends - 1)
            marks[count++] = (uint16_t)(i + (size_t)__builtin_ctzll(ends));
    while (count > 0 && from[marks[count - 1]] != '\n') count--;
    d->marked = d->at;
    d->mark = 0;
    d->mark_count = count;
}

/* Splits the next marked line. Between words there may be several blanks; a blank or empty line has
 * no cells. */
static void take_marked(struct delimited *d)
{
    const bool may_be_empty = has_quotes(d);
    char *const line = d->buffer + d->at, *const marked = d->buffer + d->marked, *from = line;
    const uint16_t *mark = d->marks + d->mark;
    struct cell *cell = d->cells;
    d->line = d->next_line++;
    d->lines = 1;
    d->begin = input_offset(d->input) - (d->end - d->at);
    for (bool is_end = false; !is_end;) {
        char *const to = marked + *mark++;
        is_end = *to == '\n';
        char *const end = is_end && to > line && to[-1] == '\r' ? to - 1 : to;
        trim(from, end, cell);
        cell += may_be_empty ? !is_end || end > line : cell->length > 0;
        from = to + 1;
    }
    d->count = (int)(cell - d->cells);
    d->mark = (int)(mark - d->marks);
    d->at = (size_t)(from - d->buffer);
}

/* Empty lines have no cells; with WORDS or LINES nor have blank ones. */
static err next_cells(struct delimited *d, bool *ret_found)
{
    size_t bytes = 0, taken = 0;
    d->count = 0;
    if (d->mark == d->mark_count && !d->more_bytes && !d->is_odd) mark_lines(d);
    *ret_found = d->mark < d->mark_count;
    if (*ret_found) {
        take_marked(d);
        return OK;
    }
    TRY(find_record(d, &bytes, &taken));
    *ret_found = taken > 0;
    char *from = d->buffer + d->at;
    d->at += taken;
    if (bytes == 0) return OK;
    if (d->is_odd) TRY(check_bytes(d, from, bytes));
    if (d->delimiter == WORDS) return split_words(d, from, from + bytes);
    if (d->delimiter != LINES) return split(d, from, from + bytes);
    take_line(d, from, from + bytes);
    return OK;
}

err delimited_next(struct delimited *d, bool *ret_found)
{
    d->is_passed = false;
    do TRY(next_cells(d, ret_found));
    while (*ret_found && d->count == 0);
    return OK;
}
