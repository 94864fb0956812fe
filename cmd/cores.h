/* cores.h - how many cores this process may use: by its affinity, and by the CPU quota of its
 * control groups, as containers have one (docker run --cpus=1.5, limits.cpu of Kubernetes).
 */
#ifndef CMD_CORES_H
#define CMD_CORES_H

struct cores {
    int affinity; /* at least 1 */
    double quota; /* cores, of the tightest control group; 0: no quota */
};

/* root: prefix of /proc and of the control groups' mounts; "" except in tests. Files that cannot be
 * read impose no limit. */
struct cores cores_find(const char *root);
/* The smaller of both, rounded up; at least 1. */
int cores_count(const struct cores *);

int cores_here(void); /* of this process */

#endif
