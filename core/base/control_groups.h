/* control_groups.h - the limits that control groups put on this process, as containers have them
 * (docker run --cpus=1.5 --memory=4g, the limits of a Kubernetes pod): versions 1 and 2.
 */
#ifndef CORE_BASE_CONTROL_GROUPS_H
#define CORE_BASE_CONTROL_GROUPS_H

#include <stdbool.h>
#include <stdio.h>

enum { CONTROL_PATH_MAX = 4096 };

/* The limit of one group; 0: none. folder: the group's, below root; is_unified: version 2. */
typedef double control_limit(const char *root, const char *folder, bool is_unified);

/* The least limit of all groups that the process is in; 0: there is none. controller: "cpu",
 * "memory"; root: prefix of /proc and of the control groups' mounts, "" except in tests. Files that
 * cannot be read count as no limit. */
double control_groups_least(const char *root, const char *controller, control_limit *);

/* Opened for reading; NULL: it cannot be. */
FILE *control_open(const char *root, const char *path);
/* The first number in a file of a group. false: there is none, as in "max". */
bool control_number(const char *root, const char *folder, const char *file, double *ret);
/* The number behind a name that begins a line: "MemTotal:  16318 kB", "inactive_file 4096". Closes
 * the file, which may be NULL; false: the name is not in it. */
bool control_named(FILE *, const char *name, double *ret);

#endif
