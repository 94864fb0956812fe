/* power.h - the disks that a power cut may leave.
 *
 * A test that links this wraps (ld --wrap) what changes files: open, write, pwrite, fsync,
 * fdatasync, rename, link, unlink, unlinkat, mkdir, rmdir. What is done below a folder is written
 * down, and before every such call a copy of the folder is made as each disk that could be found if
 * the power failed now:
 *
 * - bytes that were not synced are lost, or half of them, or are there;
 * - a name that was made, changed or removed is so for sure once its folder was synced. Until then
 *   each such change is there or not, whatever became of the others (a rename as a whole).
 *
 * Not all combinations of changes are tried: the first of them, each alone, all but each, and some
 * at random. A disk that was seen already is not shown again.
 */
#ifndef TESTS_CORE_TRAIN_CHECKPOINT_POWER_H
#define TESTS_CORE_TRAIN_CHECKPOINT_POWER_H

#include <stdint.h>

/* disk: a copy of the folder; it may be changed. */
typedef void power_look(void *context, const char *disk);

/* folder: empty, and there for sure. disk: a path that is free. Both are kept, not copied. */
void power_begin(const char *folder, const char *disk, power_look *, void *context);
/* What look does depends on more than the disk, and that has changed: all are new again. */
void power_forget(void);
/* Shows the disks of this moment, too. Returns how many there were since power_begin(). */
int64_t power_end(void);

#endif
