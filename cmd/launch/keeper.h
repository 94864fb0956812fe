/* keeper.h - what stays with a task that ssh has started, on the task's host: `dtrain keep-task
 * FLAGS [SPEC.json]`.
 *
 * ssh passes on no signal, and what it has started continues when it ends. So the keeper reads
 * standard input, which reaches from the launcher through ssh to here: a letter is a signal for the
 * task, and the end of it is the launcher's, or the connection's, on which the task is killed.
 */
#ifndef CMD_LAUNCH_KEEPER_H
#define CMD_LAUNCH_KEEPER_H

extern const char keeper_command[]; /* "keep-task", which no help lists */

/* 0: this signal has none. */
char keeper_letter(int signo);

/* Starts the task, whose words stand behind the command; returns its exit code, 128 + N where
 * signal N killed it. */
int keeper_run(int argc, char **argv);

#endif
