/* host_file.c - see host_file.h. */
#include "core/cluster/description/host_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 512 };

static const char blanks[] = " \t\r\n";
static const char slots_word[] = "slots=";

/* How many of the slots so far are of this host. */
static int slots_of(const struct host_slots *slots, const char *host)
{
    int count = 0;
    for (int i = 0; i < slots->count; i++) count += strcmp(slots->at[i].host, host) == 0;
    return count;
}

/* A word in front of ssh's other words must not look like a flag of its own. */
static err check_login(const char *login)
{
    const char *at = strchr(login, '@'), *host = at ? at + 1 : login;
    if (*login != '-' && *host && *host != '-' && at != login) return OK;
    return fail(ERR_INPUT, "expected a host or user@host, got \"%.64s\"", login);
}

static err read_slots(const char *word, int *ret)
{
    *ret = 1;
    if (!word) return OK;
    char *end = NULL;
    const size_t before = sizeof slots_word - 1;
    const long count = strncmp(word, slots_word, before) == 0 ? strtol(word + before, &end, 10) : 0;
    if (!end || *end || count < 1 || count > HOST_SLOTS_MAX)
        return fail(ERR_INPUT, "expected slots=N with N from 1 to %d, got \"%.64s\"",
                    (int)HOST_SLOTS_MAX, word);
    *ret = (int)count;
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
    char *state, *login = strtok_r(line, blanks, &state), *word = strtok_r(NULL, blanks, &state);
    const char *more = word ? strtok_r(NULL, blanks, &state) : NULL;
    int count;
    if (!login) return OK;
    TRY(check_login(login));
    TRY(read_slots(word, &count));
    if (more)
        return fail(ERR_INPUT, "expected no more than a host and slots=N, got \"%.64s\"", more);
    return add(slots, login, count, arena);
}

static err read_lines(FILE *file, const char *path, struct arena *arena, struct host_slots *slots)
{
    char line[LINE_MAX_BYTES];
    for (int number = 1; fgets(line, sizeof line, file); number++) {
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
    FILE *file = fopen(path, "re");
    if (!file) return fail(ERR_INPUT, "--hostfile: %s: %s", path, strerror(errno));
    struct host_slots slots = {.at = arena_array(arena, HOST_SLOTS_MAX, sizeof *slots.at)};
    const err e = read_lines(file, path, arena, &slots);
    fclose(file);
    if (!e) *ret = slots;
    return e;
}
