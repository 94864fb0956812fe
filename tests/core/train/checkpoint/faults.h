/* faults.h - the system call that fails, or in which the process is killed.
 *
 * A test that links this wraps (ld --wrap) what changes files: open, write, fsync, rename, link,
 * unlink, unlinkat, mkdir, rmdir.
 */
#ifndef TESTS_CORE_TRAIN_CHECKPOINT_FAULTS_H
#define TESTS_CORE_TRAIN_CHECKPOINT_FAULTS_H

#include <stdbool.h>

/* The call number `call`, from 1, fails with that errno; 0: SIGKILL instead. */
void faults_arm(int call, int error);
/* Was it reached? */
bool faults_disarm(void);

#endif
