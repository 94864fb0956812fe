/* control_groups.h - the limits that control groups put on this process, as containers have them
 * (docker run --cpus=1.5 --memory=4g, the limits of a Kubernetes pod): versions 1 and 2.
 */
#ifndef CORE_BASE_CONTROL_GROUPS_H
#define CORE_BASE_CONTROL_GROUPS_H

#include <stdbool.h>
#include <stdio.h>

enum { CONTROL_PATH_MAX = 4096 };

/* What one group allows; 0: anything. folder: of the group, below root; is_unified: version 2. */
typedef double control_limit(const char *root, const char *folder, bool is_unified);

/* The least of all groups that the process is in; 0: there is no limit. controller: "cpu",
 * "memory"; root: a folder in front of /proc and of the control groups' mounts; "" but in tests.
 * What cannot be read limits nothing. */
double control_groups_least(const char *root, const char *controller, control_limit *);

/* To be read; NULL: it is not there. */
FILE *control_open(const char *root, const char *path);
/* The first number of a file of a group. false: there is none, as in "max". */
bool control_number(const char *root, const char *folder, const char *file, double *ret);
/* The number behind a name that begins a line: "MemTotal:  16318 kB", "inactive_file 4096". Closes
 * the file; NULL: there is none. */
bool control_named(FILE *, const char *name, double *ret);

#endif
