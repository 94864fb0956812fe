/* events.h - TensorBoard event files: records of protocol buffer messages with checksums.
 *
 * One writer appends to one file, <directory>/events.out.tfevents.<seconds>.<host><suffix>; a run
 * is a folder, and several files in it are read in name order as one. The first record is the
 * format's version. Events gather in memory (at most 64 KiB) until events_flush. A disk that
 * refuses is ERR_IO, the caller decides whether that matters: what was not written is tried again
 * with the next flush, until it is more than 8 MiB. Wall times are unix seconds, given by the
 * caller.
 */
#ifndef CORE_TRAIN_SUMMARY_EVENTS_H
#define CORE_TRAIN_SUMMARY_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/train/summary/graph_def.h"
#include "core/train/summary/histogram.h"

struct events;

/* Makes the folder and the file. If there is a file of that name, the seconds go up by one until it
 * is new (at most 1000 times). suffix: "" or e.g. ".eval". */
err events_open(const char *directory, double wall_s, const char *suffix, struct events **ret);
/* Makes a folder whose name the program chooses, below one that the user names: a link there is
 * replaced (own.h). If its parent does not exist, events_open makes both. */
err events_own_folder(const char *directory);
/* From now on a thread writes, so that only events_close waits for a disk or a server: a flush
 * returns, as ERR_IO, what has failed since the one before. ERR_MEMORY, ERR_IO: no thread could be
 * made. */
err events_write_beside(struct events *);
/* Flushes without reporting failures: whoever wants to know calls events_flush first. NULL is fine.
 */
void events_close(struct events *);

/* Scalars, histograms and texts of one step gather in one event until events_end_step. Any text may
 * be a tag: characters that TensorBoard does not allow become underscores. */
void events_begin_step(struct events *, double wall_s, uint64_t step);
void events_scalar(struct events *, const char *tag, double value);
void events_histogram(struct events *, const char *tag, const struct histogram *);
void events_text(struct events *, const char *tag, const char *markdown);
/* values: as metrics have it (core/graph/op.h) */
void events_pr_curve(struct events *, const char *tag, const float *values, int thresholds);
err events_end_step(struct events *); /* writes nothing if nothing was added */

err events_graph(struct events *, double wall_s, const struct graph_def *);
enum session_status { SESSION_START = 1, SESSION_STOP = 2, SESSION_CHECKPOINT = 3 };
/* path: of the checkpoint, or NULL */
err events_session(struct events *, double wall_s, uint64_t step, enum session_status,
                   const char *path);
err events_flush(struct events *); /* to the operating system, so that readers see it */

#endif
