/* doctor.h - the checks of `dtrain doctor`, one file each. */
#ifndef CMD_DOCTOR_DOCTOR_H
#define CMD_DOCTOR_DOCTOR_H

#include "cmd/cmd.h"
#include "cmd/doctor/report.h"

/* This host and what this process may use of it: processor, memory, files, clock, libraries. */
void doctor_host(struct report *, const struct run *);
/* The spec: whether it is valid, and the folders that the run writes to. */
void doctor_spec(struct report *, struct run *);
/* The tasks of the cluster, seen from this host: names, ports, answers. */
void doctor_cluster(struct report *, struct run *, uint64_t timeout_ms);
/* Latency and bandwidth to each other task's host, if `dtrain doctor` runs there within links_ms.
 */
void doctor_links(struct report *, const struct run *, uint64_t links_ms);

#endif
