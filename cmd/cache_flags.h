/* cache_flags.h - flags for the local cache of data from URLs, of every command that reads data. */
#ifndef CMD_CACHE_FLAGS_H
#define CMD_CACHE_FLAGS_H

#include "core/base/files/cache.h"

struct cache_flags {
    const char *dir; /* NULL: no cache */
    int64_t mb;
};

/* Rows for the table of a struct with a member `cache` */
#define CACHE_FLAGS(owner)                                                                         \
    {.name = "cache_dir",                                                                          \
     .type = FIELD_STRING,                                                                         \
     .offset = offsetof(owner, cache.dir),                                                         \
     .fallback = "null",                                                                           \
     .help =                                                                                       \
         "folder of this host where data that are read from URLs are kept; tasks may share it"},   \
    {                                                                                              \
        .name = "cache_mb", .type = FIELD_INT, .offset = offsetof(owner, cache.mb),                \
        .fallback = "10240", .min = 1, .max = 1 << 30,                                             \
        .help = "size limit in megabytes; the least recently used files are evicted"               \
    }

/* To be called before data are read */
static inline err cache_flags_begin(const struct cache_flags *f)
{
    return f->dir ? cache_begin(f->dir, (uint64_t)f->mb << 20) : OK;
}

#endif
