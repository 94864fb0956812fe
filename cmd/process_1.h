/* process_1.h - the duties of process 1 (init) in a container.
 *
 * Orphaned processes (of `docker exec`, of a hook's command) become children of process 1, which
 * has to reap them: otherwise they remain as zombies.
 */
#ifndef CMD_PROCESS_1_H
#define CMD_PROCESS_1_H

/* If this is process 1, forks: the call returns in the child, which runs the program, while process
 * 1 forwards signals, reaps children, and exits with the child's exit code. In any other process,
 * or if fork fails, it just returns. To be called before threads are started. */
void process_1_leave(void);

#endif
