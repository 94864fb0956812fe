/* What files have that is seldom meant: in every format, plain and packed, in each file of a list,
 * in memory and as a stream it is said with file and line, and left out where that is allowed. */
#include "tests/core/data/support.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/base/log_kept.h"
#include "core/data/cells.h"

enum { FILES = 2, ROWS = 3, TEXT_MAX = 1024, PLACES = 4 * FILES };

#ifndef __has_feature
#define __has_feature(name) 0
#endif

/* The first and the last row, either file, packed or not: of each line all of them. A sanitizer
 * sees one of them, each in its turn: each line takes the way of any other; but all of a line that
 * could be read beyond its end. */
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
enum { IN_TURN = PLACES };
#else
enum { IN_TURN = 1 };
#endif

struct form {
    const char *source; /* of the spec, less files */
    const char *column; /* made of it; NULL: stored as it is */
    const char *head, *row;
};
static const struct form forms[] = {
    {"'format': 'csv', 'label': 'y', 'except': ['w']", NULL, "w,x,y\n", "a,1,0\n"},
    {"'format': 'csv', 'label': 'y'", "'numeric', 'name': 'x'", "w,x,y\n", "a,1,0\n"},
    {"'format': 'csv', 'label': 'y'", "'hash', 'name': 'w', 'buckets': 9", "w,x,y\n", "a,1,0\n"},
    {"'format': 'csv', 'label': 'y', 'label_type': 'word'", "'numeric', 'name': 'x', 'default': 0",
     "y,x\n", "a,1\n"},
    {"'format': 'csv', 'label': 'y', 'label_type': 'word', 'names': ['p', 'q', 'y']",
     "'hash', 'name': 'p', 'buckets': 9", "w,x,y\n", "a,1,b\n"},
    {"'format': 'csv', 'label': 'y', 'delimiter': '\\t'", "'numeric', 'name': 'x'", "w\tx\ty\n",
     "a\t1\t0\n"},
    {"'format': 'csv', 'label': 'y', 'delimiter': '::'", "'numeric', 'name': 'x'", "w::x::y\n",
     "a::1::0\n"},
    {"'format': 'csv', 'label': -1, 'header': false", "'numeric', 'name': '1'", "", "a,1,0\n"},
    {"'format': 'jsonl', 'label': 'y'", "'numeric', 'name': 'x'", "",
     "{\"w\": \"a\", \"x\": 1, \"y\": 0}\n"},
    {"'format': 'libsvm'", "'ids', 'name': 'x', 'source': 'features'", "", "0 1:1 2:1\n"},
    {"'format': 'slots', 'label': 'label'", "'numeric', 'name': 'x'", "", "0 x:1 w:a\n"},
};
enum { FORMS = sizeof forms / sizeof *forms };

struct text {
    char at[TEXT_MAX];
    size_t bytes;
};

static void add(struct text *t, const char *bytes, size_t count)
{
    assert_true(t->bytes + count < sizeof t->at);
    memcpy(t->at + t->bytes, bytes, count);
    t->bytes += count;
}

/* Sound rows, and in front of one of them the odd line */
static struct text file_with(const struct form *form, const char *odd, size_t bytes, int before)
{
    struct text t = {.bytes = 0};
    add(&t, form->head, strlen(form->head));
    for (int i = 0; i < ROWS; i++) {
        if (odd && i == before) add(&t, odd, bytes);
        add(&t, form->row, strlen(form->row));
    }
    return t;
}

static struct text file_of(const struct form *form, const char *odd, size_t bytes)
{
    return file_with(form, odd, bytes, ROWS - 1);
}

static void write_packed(const char *name, const struct text *t, bool is_packed)
{
    if (is_packed)
        file_write_gzip(name, t->at, t->bytes);
    else
        file_write(name, t->at, t->bytes);
}

static void spec_of(const struct form *form, const char *more, char ret[TEXT_MAX])
{
    const int used =
        snprintf(ret, TEXT_MAX, "{%s, 'file': ['file-0', 'file-1']%s}", form->source, more);
    if (form->column)
        snprintf(ret + used, (size_t)(TEXT_MAX - used),
                 ", 'columns': [{'column': %s}], 'batch_size': 1", form->column);
}

/* The line, in one of the files, is refused; and left out where as many broken rows are allowed. */
static void assert_said_at(const struct form *form, const char *odd, size_t bytes,
                           const char *words, int which)
{
    char spec[TEXT_MAX], stream[TEXT_MAX], place[64];
    struct dataset d;
    const int file = which % FILES, before = which < 2 * FILES ? ROWS - 1 : 0;
    const int line = before + 1 + (*form->head ? 1 : 0);
    for (int i = 0; i < FILES; i++) {
        const struct text t = file_with(form, i == file ? odd : NULL, bytes, before);
        snprintf(place, sizeof place, "file-%d", i);
        write_packed(place, &t, which / FILES % 2);
    }
    snprintf(place, sizeof place, "file-%d: line %d: ", file, line);
    spec_of(form, "", spec);
    assert_refused(spec, place, words, NULL);
    spec_of(form, ", 'bad_rows': 1", spec);
    source_open_ok(spec, &d);
    assert_int_equal(d.rows, FILES * ROWS);
    dataset_close(&d);
    if (!form->column) return;
    spec_of(form, ", 'stream': 'always'", stream);
    assert_refused(stream, place, words, NULL);
    spec_of(form, ", 'bad_rows': 1, 'stream': 'always'", stream);
    assert_stream_is_memory(spec, stream);
}

/* It has a NUL at its end, characters of more than one byte, or a line end within quotes. */
static bool could_be_overrun(const char *odd, size_t bytes)
{
    bool is_quoted = false;
    for (size_t i = 0; i < bytes; i++) {
        const bool is_at_end = i + 2 >= bytes;
        is_quoted ^= odd[i] == '"';
        if ((odd[i] == '\0' && is_at_end) || (odd[i] & 0x80) || (odd[i] == '\n' && is_quoted))
            return true;
    }
    return false;
}

static void assert_said(const struct form *form, const char *odd, size_t bytes, const char *words)
{
    static int turn;
    const int in_turn = could_be_overrun(odd, bytes) ? 1 : IN_TURN;
    for (int which = turn++ % in_turn; which < PLACES; which += in_turn)
        assert_said_at(form, odd, bytes, words, which);
}

static bool is_json_blank(const struct form *form, const char *row, size_t at, char byte)
{
    int quotes = 0;
    for (size_t i = 0; i < at; i++) quotes += row[i] == '"';
    return strstr(form->source, "jsonl") && byte == '\r' && quotes % 2 == 0;
}

/* The row with one more byte behind each of its bytes in turn, but the line end */
static void a_byte_that_text_has_not_is_said_wherever_it_stands(void **state)
{
    static const struct {
        char byte;
        const char *words;
    } odd[] = {{'\0', "has a NUL byte"}, {'\r', "has a carriage return (CR)"}};
    for (size_t o = 0; o < sizeof odd / sizeof *odd; o++)
        for (int f = 0; f < FORMS; f++) {
            const char *row = forms[f].row;
            const size_t length = strlen(row);
            for (size_t at = 1; at < length - 1; at++) {
                char line[TEXT_MAX];
                memcpy(line, row, at);
                line[at] = odd[o].byte;
                memcpy(line + at + 1, row + at, length - at);
                if (!is_json_blank(&forms[f], row, at, odd[o].byte))
                    assert_said(&forms[f], line, length + 1, odd[o].words);
            }
        }
}

/* Behind a lone CR rows may be. */
static void a_byte_that_text_has_not_is_said_in_comments(void **state)
{
    for (int f = 0; f < FORMS; f++) {
        if (!strstr(forms[f].source, "libsvm")) continue;
        assert_said(&forms[f], "# a\r0 1:1\n", 10, "has a carriage return (CR)");
        assert_said(&forms[f], " # a\0b\n", 7, "has a NUL byte");
        assert_said(&forms[f], "0 1:1 # a\rb\n", 12, "has a carriage return (CR)");
    }
}

/* All line ends, or those of the second file, or of what was put behind a sound file */
static void lines_that_end_with_cr_alone_or_twice_are_said(void **state)
{
    static const char *const ends[] = {"\r", "\r\r\n"};
    char spec[TEXT_MAX];
    for (int f = 0; f < FORMS; f++)
        for (int e = 0; e < (is_json_blank(&forms[f], "", 0, '\r') ? 1 : 2); e++)
            for (int file = 0; file < FILES; file++) {
                const struct text sound = file_of(&forms[f], NULL, 0);
                struct text other = {.bytes = 0};
                for (size_t i = 0; i < sound.bytes; i++) {
                    const bool is_end = sound.at[i] == '\n';
                    add(&other, is_end ? ends[e] : &sound.at[i], is_end ? strlen(ends[e]) : 1);
                }
                write_packed("file-0", file == 0 ? &other : &sound, e);
                write_packed("file-1", file == 1 ? &other : &sound, e);
                spec_of(&forms[f], "", spec);
                assert_refused(spec, file ? "file-1: line 1: " : "file-0: line 1: ",
                               "carriage return (CR)", "tr '\\r' '\\n'", NULL);
            }
}

/* In the first of them, in another one, with and without a line end; all of its rows are left out.
 */
static void a_file_of_broken_rows_alone_is_left_out_where_that_is_allowed(void **state)
{
    static const char *const odd[] = {"z\rq", "z\rq\n", "z\rq\nz\rq\n", "z\rq\nz\rq"};
    char spec[TEXT_MAX];
    struct dataset d;
    for (int f = 0; f < FORMS; f++)
        for (int o = 0; o < 4; o++)
            for (int file = 0; file < FILES; file++) {
                const struct text sound = file_of(&forms[f], NULL, 0);
                struct text other = {.bytes = 0};
                add(&other, forms[f].head, strlen(forms[f].head));
                add(&other, odd[o], strlen(odd[o]));
                write_packed("file-0", file == 0 ? &other : &sound, false);
                write_packed("file-1", file == 1 ? &other : &sound, false);
                spec_of(&forms[f], ", 'bad_rows': 2", spec);
                source_open_ok(spec, &d);
                assert_int_equal(d.rows, ROWS);
                dataset_close(&d);
                spec_of(&forms[f], "", spec);
                assert_refused(spec, file ? "file-1: line " : "file-0: line ", NULL);
            }
}

/* One in front of the rows that are taken, another behind them */
static void broken_rows_that_skip_and_take_leave_out_are_not_looked_at(void **state)
{
    char spec[TEXT_MAX], stream[TEXT_MAX];
    struct dataset d;
    for (int f = 0; f < FORMS; f++) {
        const struct text t = file_with(&forms[f], "z\n", 2, 1);
        write_packed("file-0", &t, false);
        write_packed("file-1", &t, f % 2);
        spec_of(&forms[f], ", 'skip': 2, 'take': 3", spec);
        source_open_ok(spec, &d);
        assert_int_equal(d.rows, 3);
        dataset_close(&d);
        spec_of(&forms[f], ", 'skip': 2, 'take': 3, 'stream': 'always'", stream);
        if (forms[f].column) assert_stream_is_memory(spec, stream);
        spec_of(&forms[f], ", 'skip': 2", spec);
        assert_refused(spec, *forms[f].head ? "file-1: line 3: " : "file-1: line 2: ", NULL);
        spec_of(&forms[f], ", 'skip': 8", spec);
        assert_refused(spec, "skip 8 leaves none of the 8 rows", NULL);
        spec_of(&forms[f], ", 'skip': 7, 'take': 2", spec);
        assert_refused(spec, "take 2: only 1 of the 8 rows", NULL);
    }
}

/* In JSON it is a blank. */
static void a_return_between_members_is_none(void **state)
{
    struct dataset d;
    file_write_text("table", "{\"x\": 1,\r\"y\": 0}\r\r\n{\r\"x\":\r2, \"y\": 1}\r\n");
    source_open_ok("{'format': 'jsonl', 'file': 'table', 'label': 'y'}, 'columns': [{'column': "
                   "'numeric', 'name': 'x'}], 'batch_size': 1",
                   &d);
    assert_int_equal(d.rows, 2);
    dataset_close(&d);
}

/* As a file system leaves them behind when its host went down */
static void more_nuls_than_a_line_may_have_at_the_end_are_one_broken_row(void **state)
{
    enum { NULS = 1200000 };
    struct dataset d;
    char spec[TEXT_MAX], stream[TEXT_MAX], *bytes = calloc(NULS + TEXT_MAX, 1);
    for (int f = 0; f < FORMS; f++)
        for (int cut = 0; cut < 4; cut++) { /* bytes that are left of one more row */
            const struct text sound = file_of(&forms[f], NULL, 0);
            memcpy(bytes, sound.at, sound.bytes);
            memcpy(bytes + sound.bytes, forms[f].row, (size_t)cut);
            write_packed("file-1", &sound, false);
            file_write("file-0", bytes, sound.bytes + NULS);
            spec_of(&forms[f], "", spec);
            assert_refused(spec, *forms[f].head ? "file-0: line 5: " : "file-0: line 4: ",
                           "has a NUL byte", NULL);
            spec_of(&forms[f], ", 'bad_rows': 1", spec);
            spec_of(&forms[f], ", 'bad_rows': 1, 'stream': 'always'", stream);
            source_open_ok(spec, &d);
            assert_int_equal(d.rows, FILES * ROWS);
            dataset_close(&d);
            if (forms[f].column) assert_stream_is_memory(spec, stream);
            memset(bytes, 0, TEXT_MAX);
        }
    free(bytes);
}

static void a_return_in_front_of_a_line_end_or_in_quotes_is_none(void **state)
{
    struct dataset d;
    file_write_text("table", "w,x,y\r\n\"a\rb\",1,0\r\n\"c\r\nd\",2,1\r\n\r\n\"e\n\",3,0\r");
    source_open_ok("{'format': 'csv', 'file': 'table', 'label': 'y', 'except': ['w']}", &d);
    assert_int_equal(d.rows, 3);
    assert_memory_equal(d.columns[FEATURES].at, ((float[]){1, 2, 3}), 3 * sizeof(float));
    dataset_close(&d);
}

/* Also with a byte order mark in front, as `cat` leaves it */
static void a_header_in_the_middle_is_no_row(void **state)
{
    for (int f = 0; f < FORMS; f++) {
        char marked[TEXT_MAX];
        if (!*forms[f].head) continue;
        assert_said(&forms[f], forms[f].head, strlen(forms[f].head), "is the header once more");
        snprintf(marked, sizeof marked, "\xef\xbb\xbf%s", forms[f].head);
        assert_said(&forms[f], marked, strlen(marked), "is the header once more");
        snprintf(marked, sizeof marked, "\xef\xbb\xbf\"%c\"%s", *forms[f].head, forms[f].head + 1);
        assert_said(&forms[f], marked, strlen(marked), "is the header once more");
    }
}

static void a_mark_in_front_of_each_file_is_passed_over(void **state)
{
    char spec[TEXT_MAX];
    struct dataset d;
    for (int f = 0; f < FORMS; f++)
        for (int is_packed = 0; is_packed < 2; is_packed++) {
            const struct text sound = file_of(&forms[f], NULL, 0);
            struct text marked = {.bytes = 0};
            add(&marked, "\xef\xbb\xbf", 3);
            add(&marked, sound.at, sound.bytes);
            write_packed("file-0", &sound, is_packed);
            write_packed("file-1", &marked, is_packed);
            spec_of(&forms[f], "", spec);
            source_open_ok(spec, &d);
            assert_int_equal(d.rows, FILES * ROWS);
            dataset_close(&d);
        }
}

/* The same where the odd line is the last one, which nothing ends */
static void assert_said_at_end(const struct form *form, const char *odd, const char *words)
{
    char spec[TEXT_MAX];
    const struct text sound = file_of(form, NULL, 0);
    struct text other = sound;
    add(&other, odd, strlen(odd) - 1);
    write_packed("file-0", &sound, false);
    write_packed("file-1", &other, false);
    spec_of(form, "", spec);
    assert_refused(spec, "file-1: line 5: ", words, NULL);
}

static void lines_of_another_width_say_why(void **state)
{
    static const struct {
        const char *row, *words;
    } odd[] = {{"a;1;0\n", "is its delimiter another?"},
               {"# none\n", "comments are not read here"},
               {"a,1,0,\n", "it ends with a delimiter, the first line does not"},
               {"a,1,234,0\n", "a cell with a delimiter in it is to stand in quotes"},
               {"\"a,1,0\na,\",1\n", "in quotes it goes on to line"}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        for (int f = 0; f < 3; f++) {
            assert_said(&forms[f], odd[i].row, strlen(odd[i].row), odd[i].words);
            assert_said_at_end(&forms[f], odd[i].row, odd[i].words);
        }
}

/* Rows that a stray quote has swallowed are more than one broken one. */
static void a_quote_that_swallows_rows_is_an_error_always(void **state)
{
    static const char *const quotes[] = {"\"a,1,0\n\"b\",1,0\n", "\"a,1,0\n\"b,1,0\n",
                                         "\"a\n\"b,1,0\n"};
    char spec[TEXT_MAX];
    for (size_t q = 0; q < sizeof quotes / sizeof *quotes; q++)
        for (int f = 0; f < 3; f++) {
            const struct text sound = file_of(&forms[f], NULL, 0);
            const struct text odd = file_of(&forms[f], quotes[q], strlen(quotes[q]));
            write_packed("file-0", &sound, false);
            write_packed("file-1", &odd, false);
            spec_of(&forms[f], ", 'bad_rows': 9", spec);
            assert_refused(spec, "file-1: line 4: a quote is opened in front of cell 0", NULL);
            assert_said_at_end(&forms[f], quotes[q], "a quote is opened in front of cell 0");
        }
}

static void first_lines_that_are_no_names_are_said(void **state)
{
#define SOURCE "{'format': 'csv', 'file': 'table', 'label': 'y'}"
#define CUT "{'format': 'csv', 'file': 'table', 'label': 'y', 'delimiter': ';'}"
    file_write_text("table", "w;x;y\na;1;0\n");
    assert_refused(SOURCE, "table: no column \"y\"", "all of the first line is one, \"w;x;y\"",
                   "is \"delimiter\" another?", NULL);
    file_write_text("table", "# of today\nw,x,y\na,1,0\n");
    assert_refused(SOURCE, "all of the first line is one, \"# of today\"", "are these the names?",
                   NULL);
    file_write_text("table", "{\"x\": 1, \"y\": 0}\n{\"x\": 2, \"y\": 1}\n");
    assert_refused(SOURCE, "table: the first line is a JSON object", "\"format\": \"jsonl\"", NULL);
    file_write_text("table", "sep=;\nw;x;y\na;1;0\n");
    assert_refused(CUT, "table: line 1: \"sep=\"", "leave the line out", NULL);
    struct dataset d;
    file_write_text("table", "sep=a,y\n1,0\n"); /* a name */
    source_open_ok(SOURCE, &d);
    dataset_close(&d);
    file_write_text("table", "x,y,\n1,0\n");
    assert_refused(SOURCE, "table: line 2: expected 3 cells", "ends with a delimiter, and no name",
                   NULL);
}

/* ---- numbers ---- */

static void numbers_as_people_write_them_are_refused_with_what_to_write(void **state)
{
    static const struct {
        const char *text, *hint;
    } numbers[] = {{"1,5", "decimals are written with a point"},
                   {"2026-03-25 09:19:00", "dates are read by \"column\": \"date\""},
                   {"5/3/2026", "dates are read by"},
                   {"25.03.2026", "dates are read by"},
                   {"2026-03-25T09:19:00Z", "dates are read by"},
                   {"1,234.5", "nothing between thousands"},
                   {"1.234,5", "nothing between thousands"},
                   {"1.234.567,5", "nothing between thousands"},
                   {"-1 234", "nothing between thousands"},
                   {"1 234,5", "nothing between thousands"},
                   {"1,234,567.25", "nothing between thousands"},
                   {"-1,5 %", "nothing between thousands"},
                   {"1'234", "nothing between thousands"},
                   {"1_234", "nothing between thousands"},
                   {"1\xc2\xa0"
                    "234",
                    "nothing between thousands"},
                   {"\xe2\x88\x92"
                    "5",
                    "a minus is written as -"},
                   {"$5", "without currency and %"},
                   {"5 %", "nothing between thousands"},
                   {"5%", "without currency and %"},
                   {"5\xe2\x82\xac", "without currency and %"}};
    char row[64];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        for (int f = 0; f < 2; f++) {
            snprintf(row, sizeof row, "a,\"%s\",0\n", numbers[i].text);
            assert_said(&forms[f], row, strlen(row), numbers[i].hint);
        }
        snprintf(row, sizeof row, "{\"x\": \"%s\", \"y\": 0}\n", numbers[i].text);
        assert_said(&forms[8], row, strlen(row), numbers[i].hint);
    }
    assert_said(&forms[9], "0 1:1,5\n", 8, "decimals are written with a point");
    static const char *const others[] = {"",      "1",     "1.5", "red",  "1,2,x", "a b",
                                         ",",     "1.2.3", "-",   "1e5",  "%",     "0x1f",
                                         "1 2 3", "1,2,3", "0 0", "1, 5", "12 34", "1,234,56"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_string_equal(
            cell_number_hint(&(struct cell){.text = others[i], .length = strlen(others[i])}), "");
}

/* ---- what is only warned of ---- */

static bool is_warned(const char *words)
{
    json_t *kept = log_kept_json(0, 100), *line;
    size_t i;
    bool is_there = false;
    json_array_foreach(json_object_get(kept, "lines"), i, line) is_there |=
        strstr(json_string_value(json_object_get(line, "text")), words) != NULL;
    json_decref(kept);
    return is_there;
}

static void assert_warned(const char *source, const char *words)
{
    struct dataset d;
    assert_false(is_warned(words));
    source_open_ok(source, &d);
    dataset_close(&d);
    assert_true(is_warned(words));
}

static void names_that_are_the_same_or_none_are_warned_of(void **state)
{
    file_write_text("table", "twin,y,twin\n1,0,2\n");
    assert_warned(SOURCE, "table: line 1: columns 0 and 2 are both called \"twin\"");
    file_write_text("table", "other,other,x,y\n1,0,2,1\n");
    assert_warned(SOURCE ", 'columns': [{'column': 'numeric', 'name': 'x'}], 'batch_size': 1",
                  "columns 0 and 1 are both called \"other\"");
    assert_refused(SOURCE ", 'columns': [{'column': 'numeric', 'name': 'other'}], 'batch_size': 1",
                   "table: cells 0 and 1 are both called \"other\"", "rename one", NULL);
    file_write_text("table", "\n\n,x,y\n0,2,1\n");
    assert_warned(SOURCE, "table: line 3: column 0 has no name, and is a feature");
}

/* Numbers of columns are names; of a file without a header the first row is not. */
static void a_name_that_is_a_number_is_warned_of(void **state)
{
    struct dataset d;
    file_write_text("table", "0,1,y\n1,0,2\n");
    source_open_ok(SOURCE, &d);
    dataset_close(&d);
    assert_false(is_warned("is a number"));
    file_write_text("table", "0.5,x,y\n1,0,2\n");
    assert_warned(SOURCE, "table: line 1: the name of column 0 is a number, \"0.5\"");
    file_write_text("table", "1.5,2,0\n1,0,2\n"); /* a row, in place of which names are given */
    assert_warned("{'format': 'csv', 'file': 'table', 'label': 'y', 'names': ['w', 'x', 'y']}",
                  "table: line 1: the name of column 0 is a number, \"1.5\"");
}

/* What a read ends with may be half of a character: lines of every length from there on. */
static void write_characters(const char *name, bool is_packed, const char *last)
{
    enum { BYTES = 5 << 18 };
    char *text = malloc(BYTES + TEXT_MAX), *at = text + sprintf(text, "w,x,y\n");
    for (int i = 0; at - text < BYTES; i++) {
        for (int k = 0; k < 1 + i % 7; k++)
            at = stpcpy(at, i % 3 ? "\xc3\xa9" : "\xf0\x9f\x9a\x80");
        at = stpcpy(at, ",1,0\n");
    }
    at = stpcpy(at, last);
    if (is_packed)
        file_write_gzip(name, text, (size_t)(at - text));
    else
        file_write(name, text, (size_t)(at - text));
    free(text);
}

static void words_that_are_no_utf_8_are_warned_of_with_their_line(void **state)
{
    static const struct {
        const char *name, *source, *text, *words;
    } files[] = {
        {"latin", "'csv', 'label': 'y', 'except': ['w']", "w,x,y\na,1,0\ncaf\xe9 b,1,0\n",
         "latin: line 3: \"caf\\xe9\" is no UTF-8"},
        {"named", "'csv', 'label': 'y'", "x\xfc,y\n1,0\n", "named: line 1: \"x\\xfc\" is no UTF-8"},
        {"quoted", "'csv', 'label': 'y', 'except': ['w']", "w,x,y\n\"a\n\xff\",1,0\n",
         "quoted: line 3: \"\\xff\" is no UTF-8"},
        {"cut", "'csv', 'label': 'y', 'except': ['w']", "x,y,w\n1,0,caf\xc3",
         "cut: line 2: \"caf\\xc3\" is no UTF-8"},
        {"sparse", "'libsvm', 'features': 2", "0 1:1\n0 2:1 # \xe9\n",
         "sparse: line 2: \"\\xe9\" is no UTF-8"},
    };
    char source[TEXT_MAX];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        file_write_text(files[i].name, files[i].text);
        snprintf(source, sizeof source, "{'format': %s, 'file': '%s'}", files[i].source,
                 files[i].name);
        assert_warned(source, files[i].words);
    }
    file_write_text("words", "a\nb\xe9\n");
    file_write_text("ascii", "w,y\na,0\n");
    assert_warned("{'format': 'csv', 'file': 'ascii', 'label': 'y'}, 'columns': [{'column': "
                  "'vocabulary', 'name': 'w', 'file': 'words'}], 'batch_size': 1",
                  "words: line 2: \"b\\xe9\" is no UTF-8");
}

static void characters_that_are_read_in_two_parts_are_whole(void **state)
{
    struct dataset d;
    for (int packed = 0; packed < 2; packed++) {
        write_characters("whole", packed, "");
        source_open_ok("{'format': 'csv', 'file': 'whole', 'label': 'y', 'except': ['w']}", &d);
        dataset_close(&d);
        assert_false(is_warned("whole: "));
    }
    write_characters("late", true, "\xe9,1,0\n");
    assert_warned("{'format': 'csv', 'file': 'late', 'label': 'y', 'except': ['w']}",
                  "late: line ");
}

/* Plain and packed, whatever is fetched instead of a file */
static void what_is_no_table_is_called_what_it_is(void **state)
{
    static const struct {
        const char *head, *is;
    } files[] = {{"<!DOCTYPE html><html>", "a page of HTML"},
                 {"<HTML>\n<body>", "a page of HTML"},
                 {"\xef\xbb\xbf<?xml version=\"1.0\"?>", "an XML document"},
                 {"%PDF-1.4\n", "a PDF document"},
                 {"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"}};
    char tar[TEXT_MAX] = "a.csv";
    memcpy(tar + 257, "ustar", 5);
    for (int packed = 0; packed < 2; packed++) {
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            struct text t = {.bytes = 0};
            add(&t, files[i].head, strlen(files[i].head));
            add(&t, "\nw,x,y\n", 7);
            write_packed("table", &t, packed);
            assert_refused(SOURCE, "table: is ", files[i].is, "not read here", NULL);
        }
        struct text t = {.bytes = 0};
        add(&t, tar, sizeof tar - 1);
        write_packed("table", &t, packed);
        assert_refused(SOURCE, "table: is a tar archive", "tar -xf", NULL);
    }
    struct text sound = {.bytes = 0};
    struct dataset d;
    add(&sound, "w,x,y\n", 6);
    while (sound.bytes < 252) add(&sound, "a,1,0\n", 6);
    add(&sound, "our mustard,1,0\n", 16);
    assert_memory_equal(sound.at + 257, "ustar", 5);
    write_packed("table", &sound, false);
    source_open_ok("{'format': 'csv', 'file': 'table', 'label': 'y', 'except': ['w']}", &d);
    dataset_close(&d);
    file_write_text("table", "w,y\na,0\n");
    file_write_text("words", "\xef\xbb\xbf<!DOCTYPE html>\na\n");
    assert_refused(SOURCE ", 'columns': [{'column': 'vocabulary', 'name': 'w', 'file': 'words'}], "
                          "'batch_size': 1",
                   "words: is a page of HTML", NULL);
    file_write_text("list", "[\n{\"x\": 1, \"y\": 0}\n]\n");
    assert_refused("{'format': 'jsonl', 'file': 'list', 'label': 'y'}, 'columns': [{'column': "
                   "'numeric', 'name': 'x'}], 'batch_size': 1",
                   "list: line 1: expected an object, got a list", "jq -c '.[]'", NULL);
}

static void a_name_that_a_file_lacks_comes_with_those_that_it_has(void **state)
{
    file_write_text("table", "w,x,y\na,1,0\n");
    file_write_text("next", "x,y\n1,0\n");
    assert_refused("{'format': 'csv', 'file': 'table', 'label': 'clicked'}",
                   "no column \"clicked\"; it has w, x, y", NULL);
    assert_refused(SOURCE
                   ", 'columns': [{'column': 'numeric', 'name': 'seconds'}], 'batch_size': 1",
                   "has no cell \"seconds\"; it has w, x, y", NULL);
    assert_refused("{'format': 'csv', 'file': ['table', 'next'], 'label': 'y'}, 'columns': "
                   "[{'column': 'hash', 'name': 'w', 'buckets': 2}], 'batch_size': 1",
                   "next: expected 3 cells as in the files before, got 2: no \"w\"", NULL);
    file_write_text("next", "b,2,1\nc,1,0\n");
    assert_refused("{'format': 'csv', 'file': ['table', 'next'], 'label': 2}, 'columns': "
                   "[{'column': 'hash', 'name': 'w', 'buckets': 2}], 'batch_size': 1",
                   "next: cell 0: expected \"w\" as in the files before, got \"b\"",
                   "say \"header\": false, or without a spec --header=false", NULL);
    file_write_text("rows", "{\"x\": 1, \"clicked\": 1}\n");
    assert_refused("{'format': 'jsonl', 'file': 'rows', 'label': 'click'}, 'columns': [{'column': "
                   "'numeric', 'name': 'x'}], 'batch_size': 1",
                   "rows: line 1: \"click\" (did you mean \"clicked\"?): ", "without a label",
                   NULL);
    file_write_text("table", "x,y\n1,NA\n");
    assert_refused(
        "{'format': 'csv', 'file': 'table', 'label': 'y', 'missing': ['NA']}, 'columns': "
        "[{'column': 'numeric', 'name': 'x'}], 'batch_size': 1",
        "table: line 2: column 1 (y): ", "a row without a label is broken", NULL);
}

static void a_file_that_is_read_twice_is_warned_of(void **state)
{
    file_write_text("part-a.csv", "x,y\n1,0\n");
    file_write_text("part-b.csv", "x,y\n1,0\n");
    assert_warned("{'format': 'csv', 'file': ['part-*', './part-a.csv'], 'label': 'y'}",
                  "part-a.csv: is listed twice");
    file_write_gzip("part-b.csv.gz", "x,y\n1,0\n", 8);
    assert_warned("{'format': 'csv', 'file': 'part-*', 'label': 'y'}",
                  "part-b.csv and part-b.csv.gz: both are read");
}

/* However many are of one kind, each kind is said. */
static void many_warnings_of_a_kind_hide_none_of_another(void **state)
{
    enum { MANY = 100 };
    char name[64];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "many-%d.csv", i);
        file_write_text(name, "x,y\n1,0\n");
    }
    assert_warned("{'format': 'csv', 'file': ['many-*', 'many-*.csv'], 'label': 'y'}",
                  "many-0.csv: is listed twice, and so are others, 100 times in all");
    for (int i = 0; i < MANY; i++) { /* each of its own kind */
        char first[96];
        struct dataset d;
        snprintf(first, sizeof first, "d%d,d%d,x,y\n1,2,3,0\n", i, i);
        file_write_text("twins", first);
        source_open_ok("{'format': 'csv', 'file': 'twins', 'label': 'y'}", &d);
        dataset_close(&d);
    }
    file_write_text("without-z", "x,y\n1,0\n");
    assert_warned("{'format': 'csv', 'file': 'without-z', 'label': 'y'}, 'columns': [{'column': "
                  "'numeric', 'name': 'z', 'default': 0}, {'column': 'numeric', 'name': 'x'}], "
                  "'batch_size': 1",
                  "without-z: the header has no \"z\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_byte_that_text_has_not_is_said_wherever_it_stands),
        cmocka_unit_test(a_byte_that_text_has_not_is_said_in_comments),
        cmocka_unit_test(lines_that_end_with_cr_alone_or_twice_are_said),
        cmocka_unit_test(broken_rows_that_skip_and_take_leave_out_are_not_looked_at),
        cmocka_unit_test(a_return_between_members_is_none),
        cmocka_unit_test(more_nuls_than_a_line_may_have_at_the_end_are_one_broken_row),
        cmocka_unit_test(a_file_of_broken_rows_alone_is_left_out_where_that_is_allowed),
        cmocka_unit_test(a_return_in_front_of_a_line_end_or_in_quotes_is_none),
        cmocka_unit_test(a_header_in_the_middle_is_no_row),
        cmocka_unit_test(a_mark_in_front_of_each_file_is_passed_over),
        cmocka_unit_test(lines_of_another_width_say_why),
        cmocka_unit_test(a_quote_that_swallows_rows_is_an_error_always),
        cmocka_unit_test(first_lines_that_are_no_names_are_said),
        cmocka_unit_test(numbers_as_people_write_them_are_refused_with_what_to_write),
        cmocka_unit_test(names_that_are_the_same_or_none_are_warned_of),
        cmocka_unit_test(a_name_that_is_a_number_is_warned_of),
        cmocka_unit_test(words_that_are_no_utf_8_are_warned_of_with_their_line),
        cmocka_unit_test(characters_that_are_read_in_two_parts_are_whole),
        cmocka_unit_test(what_is_no_table_is_called_what_it_is),
        cmocka_unit_test(a_name_that_a_file_lacks_comes_with_those_that_it_has),
        cmocka_unit_test(a_file_that_is_read_twice_is_warned_of),
        cmocka_unit_test(many_warnings_of_a_kind_hide_none_of_another),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
