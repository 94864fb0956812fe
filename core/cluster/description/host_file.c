/* host_file.c - see host_file.h. */
#include "core/cluster/description/host_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/files/file_system.h"

enum { HOST_FILE_BYTES_MAX = 16 << 20, LINE_MAX_BYTES = 512 };

static const char blanks[] = " \t\r\n";

/* The number of slots so far on this host. */
static int slots_of(const struct host_slots *slots, const char *host)
{
    int count = 0;
    for (int i = 0; i < slots->count; i++) count += strcmp(slots->at[i].host, host) == 0;
    return count;
}

/* It becomes an argument of ssh and must not look like an option. */
static err check_login(const char *login)
{
    const char *at = strchr(login, '@'), *host = at ? at + 1 : login;
    if (strchr(login, ','))
        return fail(ERR_INPUT, "expected one host on a line, got \"%.64s\"", login);
    if (*login != '-' && *host && *host != '-' && at != login) return OK;
    return fail(ERR_INPUT, "expected a host or user@host, got \"%.64s\"", login);
}

static bool read_count(const char *digits, int *ret)
{
    char *end;
    const long count = strtol(digits, &end, 10);
    *ret = (int)count;
    return *digits >= '0' && *digits <= '9' && !*end && count >= 1 && count <= HOST_SLOTS_MAX;
}

/* The number after "slots=", or Open MPI's "max-slots=" and "max_slots="; false: another word */
static bool read_slots(const char *word, int *ret_slots, int *ret_max)
{
    static const char *const limits[] = {"max-slots=", "max_slots="};
    if (strncmp(word, "slots=", 6) == 0) return read_count(word + 6, ret_slots);
    for (int i = 0; i < 2; i++)
        if (strncmp(word, limits[i], 10) == 0) return read_count(word + 10, ret_max);
    return false;
}

/* Removes brackets, "[::1]" to "::1", as ssh needs it; returns what follows them; NULL: no
 * brackets. */
static char *cut_brackets(char *login)
{
    char *open = strchr(login, '['), *close = strchr(login, ']');
    if (!open || !close || close < open) return NULL;
    const size_t length = (size_t)(close - open) - 1;
    memmove(open, open + 1, length);
    open[length] = '\0';
    return close + 1;
}

/* MPICH's form: "node1:3" has three slots; so has "[::1]:3", since IPv6 addresses have colons. */
static err cut_slots(char *login, int *ret)
{
    char given[LINE_MAX_BYTES];
    snprintf(given, sizeof given, "%s", login);
    char *behind = cut_brackets(login), *colon = behind ? behind : strchr(login, ':');
    if (!colon || !*colon || (!behind && strchr(colon + 1, ':'))) return OK;
    if (*colon != ':' || !read_count(colon + 1, ret))
        return fail(ERR_INPUT, "expected host:N with N slots, from 1 to %d, got \"%.64s\"",
                    (int)HOST_SLOTS_MAX, given);
    if (!behind) *colon = '\0';
    return OK;
}

static err add(struct host_slots *slots, const char *login, int count, struct arena *arena)
{
    if (count > HOST_SLOTS_MAX - slots->count)
        return fail(ERR_INPUT, "more than %d slots", (int)HOST_SLOTS_MAX);
    login = arena_string(arena, login);
    const char *at = strchr(login, '@'), *host = at ? at + 1 : login;
    int place = slots_of(slots, host);
    slots->hosts += place == 0;
    for (; count > 0; count--) slots->at[slots->count++] = (struct host_slot){login, host, place++};
    return OK;
}

static err read_line(char *line, struct arena *arena, struct host_slots *slots)
{
    line[strcspn(line, "#")] = '\0';
    char *state, *login = strtok_r(line, blanks, &state);
    int count = 0, most = 0;
    if (!login) return OK;
    TRY(cut_slots(login, &count));
    TRY(check_login(login));
    const int behind_colon = count;
    for (const char *word; (word = strtok_r(NULL, blanks, &state));)
        if (!read_slots(word, &count, &most))
            return fail(ERR_INPUT,
                        "expected slots=N or max-slots=N with N from 1 to %d, got \"%.64s\"",
                        (int)HOST_SLOTS_MAX, word);
    if (behind_colon && count != behind_colon)
        return fail(ERR_INPUT, "%.64s:%d has %d slots, slots=%d says others: leave one out", login,
                    behind_colon, behind_colon, count);
    if (most && count > most)
        return fail(ERR_INPUT, "slots=%d is more than max-slots=%d", count, most);
    if (!count) count = most ? most : 1;
    return add(slots, login, count, arena);
}

/* The line has a zero byte after its first character. */
static bool is_utf16(const char *line)
{
    return memcmp(line, "\xff\xfe", 2) == 0 || memcmp(line, "\xfe\xff", 2) == 0;
}

static err read_lines(FILE *file, const char *path, struct arena *arena, struct host_slots *slots)
{
    char line[LINE_MAX_BYTES];
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        if (number == 1 && is_utf16(line))
            return fail(ERR_INPUT, "%s: text in UTF-16: save it as UTF-8", path);
        const bool is_whole = strlen(line) + 1 < sizeof line || strchr(line, '\n');
        err e = is_whole ? read_line(line, arena, slots)
                         : fail(ERR_INPUT, "longer than %d characters", LINE_MAX_BYTES - 2);
        if (e) return fail_prefix(e, "%s:%d", path, number);
    }
    if (ferror(file)) return fail(ERR_IO, "%s: %s", path, strerror(errno));
    if (slots->count == 0) return fail(ERR_INPUT, "%s: there is no host in it", path);
    return OK;
}

err host_file_read(const char *path, struct arena *arena, struct host_slots *ret)
{
    FILE *file;
    if (file_open_text(path, HOST_FILE_BYTES_MAX, &file))
        return fail_prefix(ERR_INPUT, "--hostfile");
    file_skip_mark(file);
    struct host_slots slots = {.at = arena_array(arena, HOST_SLOTS_MAX, sizeof *slots.at)};
    const err e = read_lines(file, path, arena, &slots);
    fclose(file);
    if (!e) *ret = slots;
    return e;
}
