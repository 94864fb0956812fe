/* note.h - messages for the user about which library a device uses, or why none. */
#ifndef KERNELS_NOTE_H
#define KERNELS_NOTE_H

#include "kernels/device.h"

/* The message since the last call; "": none, as always for a CPU. Owned by the device and valid
 * until the next call. */
const char *device_note(struct device *);

#endif
