/* text.c - parses the text of a `checkpoint` file, a CheckpointState in protocol buffers' text
 * format:
 *
 *     model_checkpoint_path: "model.ckpt-200"
 *     all_model_checkpoint_paths: "model.ckpt-100"
 *     all_model_checkpoint_paths: "model.ckpt-200"
 *
 * Fields may be in any order, comments begin with #, unknown fields are skipped.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/checkpoints_inside.h"

enum { NESTED_MAX = 64, WORD_MAX = 128 };

struct text_reader {
    const char *at, *end;
    int line;
};

/* The parsed text, before it is put in order. */
struct said_list {
    char newest[CHECKPOINT_PATH_MAX]; /* "": not given */
    struct checkpoint_state *state;   /* paths as records */
    double *times;
    int time_count;
};

static err unclear(const struct text_reader *r, const char *expected)
{
    return fail(ERR_INPUT, "line %d: expected %s", r->line, expected);
}

static char peek(const struct text_reader *r)
{
    return r->at < r->end ? *r->at : '\0';
}

static void pass(struct text_reader *r)
{
    if (r->at < r->end && *r->at++ == '\n') r->line++;
}

static void pass_blanks(struct text_reader *r)
{
    while (r->at < r->end && (isspace((unsigned char)*r->at) || *r->at == '#')) {
        bool is_comment = *r->at == '#';
        while (is_comment && r->at < r->end && *r->at != '\n') pass(r);
        pass(r);
    }
}

static bool take(struct text_reader *r, char c)
{
    pass_blanks(r);
    if (r->at >= r->end || *r->at != c) return false;
    pass(r);
    return true;
}

/* A name, or a number with its sign: letters, digits and . + - _ */
static err read_word(struct text_reader *r, char ret[WORD_MAX])
{
    int length = 0;
    pass_blanks(r);
    while (length < WORD_MAX - 1 && peek(r) &&
           (isalnum((unsigned char)peek(r)) || strchr(".+-_", peek(r)))) {
        ret[length++] = peek(r);
        pass(r);
    }
    ret[length] = '\0';
    return length > 0 && length < WORD_MAX - 1 ? OK : unclear(r, "a name or a number");
}

/* At most `count` digits of a base; -1: none. */
static int read_digits(struct text_reader *r, int base, int count)
{
    int value = -1;
    for (int i = 0; i < count; i++) {
        const char c = peek(r);
        const int digit = isdigit((unsigned char)c)    ? c - '0'
                          : isxdigit((unsigned char)c) ? tolower(c) - 'a' + 10
                                                       : base;
        if (digit >= base) break;
        value = (value < 0 ? 0 : value) * base + digit;
        pass(r);
    }
    return value;
}

/* The character after a backslash; -1: no such escape. */
static int read_escape(struct text_reader *r)
{
    static const char letters[] = "abfnrtv\\'\"?", meant[] = "\a\b\f\n\r\t\v\\'\"?";
    const char c = peek(r);
    const char *found = c ? strchr(letters, c) : NULL;
    if (isdigit((unsigned char)c)) return read_digits(r, 8, 3);
    pass(r);
    if (c == 'x' || c == 'X') return read_digits(r, 16, 2);
    return found ? meant[found - letters] : -1;
}

/* "..." or '...' */
static err read_string(struct text_reader *r, char ret[CHECKPOINT_PATH_MAX])
{
    const char quote = take(r, '"') ? '"' : '\'';
    if (quote == '\'' && !take(r, '\'')) return unclear(r, "a string in quotes");
    for (int length = 0; length < CHECKPOINT_PATH_MAX; length++) {
        int c = (unsigned char)peek(r);
        if (c == quote) {
            pass(r);
            ret[length] = '\0';
            return OK;
        }
        if (c == '\n') break;
        pass(r);
        if (c == '\\') c = read_escape(r);
        if (c <= 0 || c > 0xff) break;
        ret[length] = (char)c;
    }
    return unclear(r, "the end of a string of less than 4096 characters");
}

static err read_path(struct text_reader *r, char ret[CHECKPOINT_PATH_MAX])
{
    TRY(read_string(r, ret));
    return ret[0] ? OK : unclear(r, "a path");
}

static err read_time(struct text_reader *r, double *ret)
{
    char word[WORD_MAX], *end = NULL;
    TRY(read_word(r, word));
    const double value = strtod(word, &end);
    if (*end || !isfinite(value) || value < 0) return unclear(r, "a time in seconds");
    *ret = value;
    return OK;
}

/* Skips a value of an unknown field: a word, a string, or anything in brackets. */
static err pass_value(struct text_reader *r)
{
    char closing[NESTED_MAX], text[CHECKPOINT_PATH_MAX];
    int depth = 0;
    do {
        pass_blanks(r);
        const char c = peek(r);
        const bool opens = c && strchr("{[<", c), is_mark = depth > 0 && c && strchr(":,;", c);
        if (opens && depth == NESTED_MAX) return unclear(r, "less brackets within brackets");
        if (opens) closing[depth++] = c == '{' ? '}' : c == '[' ? ']' : '>';
        const bool closes = !opens && depth > 0 && c == closing[depth - 1];
        if (closes) depth--;
        if (opens || closes || is_mark) {
            pass(r);
        } else if (c == '"' || c == '\'') {
            TRY(read_string(r, text));
        } else {
            TRY(read_word(r, text));
        }
    } while (depth > 0);
    return OK;
}

static err read_field(struct text_reader *r, struct said_list *said)
{
    char name[WORD_MAX], path[CHECKPOINT_PATH_MAX];
    TRY(read_word(r, name));
    pass_blanks(r);
    if (!take(r, ':') && peek(r) != '{' && peek(r) != '<') return unclear(r, "a colon");
    if (strcmp(name, "model_checkpoint_path") == 0) return read_path(r, said->newest);
    if (strcmp(name, "all_model_checkpoint_paths") == 0) {
        TRY(read_path(r, path));
        return state_add(said->state, path, -1);
    }
    if (strcmp(name, "all_model_checkpoint_timestamps") == 0) {
        if (said->time_count == CHECKPOINTS_MAX) return unclear(r, "less times");
        return read_time(r, &said->times[said->time_count++]);
    }
    if (strcmp(name, "last_preserved_timestamp") == 0)
        return read_time(r, &said->state->preserved_s);
    return pass_value(r);
}

/* Assigns one time to each path; then moves or adds the newest to the end. */
static err put_in_order(const struct text_reader *r, const struct said_list *said)
{
    struct checkpoint_state *state = said->state;
    double time_s = -1;
    if (!said->newest[0]) return unclear(r, "a model_checkpoint_path");
    for (int i = 0; said->time_count == state->count && i < state->count; i++)
        state->records[i].time_s = said->times[i];
    for (int i = state->count - 1; i >= 0; i--) {
        if (strcmp(state->records[i].prefix, said->newest) != 0) continue;
        time_s = state->records[i].time_s;
        state_forget(state, i);
    }
    return state_add(state, said->newest, time_s);
}

err state_parse(const char *text, size_t length, struct checkpoint_state *ret)
{
    struct text_reader reader = {.at = text, .end = text + length, .line = 1};
    struct checkpoint_state state = {0};
    struct said_list said = {.state = &state, .times = malloc(CHECKPOINTS_MAX * sizeof(double))};
    err e = said.times ? OK : fail(ERR_MEMORY, "no memory for a list of checkpoints");
    for (pass_blanks(&reader); !e && reader.at < reader.end; pass_blanks(&reader)) {
        e = read_field(&reader, &said);
        if (!e && !take(&reader, ';')) take(&reader, ',');
    }
    if (!e) e = put_in_order(&reader, &said);
    free(said.times);
    if (e) {
        state_fini(&state);
    } else {
        *ret = state;
    }
    return e;
}
