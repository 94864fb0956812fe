/* process_1.h - what the first process of a container owes to others.
 *
 * The kernel gives process 1 every process whose parent has ended (of `docker exec`, of a command
 * of a hook), and keeps what is left of it until process 1 asks. Nobody else asks for it.
 */
#ifndef CMD_PROCESS_1_H
#define CMD_PROCESS_1_H

/* As process 1: returns in a new process, in which the program runs. Process 1 itself passes on
 * what it is sent, reaps whoever ends, and ends with the new process, by its code; it never
 * returns. Any other process returns at once, and so does one that cannot fork. Before there are
 * threads. */
void process_1_leave(void);

#endif
