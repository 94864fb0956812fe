/* keeper.h - the parent process of a task that ssh has started, on the task's host: `dtrain
 * keep-task FLAGS [SPEC.json]`.
 *
 * ssh does not forward signals, and remote processes survive it. So the keeper reads standard
 * input, which the launcher writes through ssh: each letter is a signal for the task; at its end,
 * because the launcher or the connection is gone, the task is killed.
 */
#ifndef CMD_LAUNCH_KEEPER_H
#define CMD_LAUNCH_KEEPER_H

extern const char keeper_command[]; /* "keep-task", not listed in help */

/* The letter of a signal; 0: none. */
char keeper_letter(int signo);

/* Starts the task, whose arguments follow the command; returns its exit code, or 128 + N if signal
 * N killed it. */
int keeper_run(int argc, char **argv);

#endif
