/* faults.h - the system call that fails, in which the process is killed, or before which it stands
 * still for long.
 *
 * A test that links this wraps (ld --wrap) what changes files: open, write, fsync, rename,
 * renameat2, link, unlink, unlinkat, mkdir, rmdir.
 */
#ifndef TESTS_CORE_TRAIN_CHECKPOINT_FAULTS_H
#define TESTS_CORE_TRAIN_CHECKPOINT_FAULTS_H

#include <stdbool.h>

/* The call number `call`, from 1, fails with that errno; 0: SIGKILL instead. */
void faults_arm(int call, int error);
/* Before that call, of those that give a file of a checkpoint its name, another process does
 * something, whose calls all succeed; then this one goes on, and is killed in the call
 * `killed_after` from there; 0: it is not. */
void faults_arm_other(int call, void (*other)(void), int killed_after);
/* No rename says whether something has the name already, as on NFS. Until it is said otherwise. */
void faults_rename_replaces(bool);
/* Was it reached? */
bool faults_disarm(void);

#endif
