/* note.h - what a user is to hear of who does a device's work: which library, or why none. */
#ifndef KERNELS_NOTE_H
#define KERNELS_NOTE_H

#include "kernels/device.h"

/* Since it was last asked; "": nothing, as of every CPU. It is the device's until the next call. */
const char *device_note(struct device *);

#endif
