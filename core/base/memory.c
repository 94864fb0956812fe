/* memory.c - see memory.h. */
#include "core/base/memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINES_MAX = 200 };

double memory_resident(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*s %lu", &pages) != 1) pages = 0;
    if (file) fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

bool memory_of_host(const char *name, double *ret)
{
    const size_t length = strlen(name);
    char line[128];
    bool is_told = false;
    FILE *file = fopen("/proc/meminfo", "re");
    for (int i = 0; file && !is_told && i < LINES_MAX && fgets(line, sizeof line, file); i++)
        is_told = !strncmp(line, name, length) && sscanf(line + length, ": %lf kB", ret) == 1;
    if (file) fclose(file);
    if (is_told) *ret *= 1024;
    return is_told;
}
