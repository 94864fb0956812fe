/* shared_memory.h - memory that two tasks map, sealed, behind windows and rings; and plain memory
 * in the same shape. */
#ifndef NET_SHARED_MEMORY_H
#define NET_SHARED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"
#include "net/transport.h"

size_t shared_memory_bytes(size_t bytes); /* whole pages, at least one */

/* A memfd that can neither shrink nor grow, mapped for reading and writing. ERR_IO, ERR_MEMORY: the
 * system has none; errno says why. */
err shared_memory_new(size_t bytes, int *ret_fd, void **ret_base);

/* Checks that a peer's descriptor is sealed like ours and of this size. ERR_PROTOCOL if not. */
err shared_memory_check(int fd, size_t bytes);
err shared_memory_map(int fd, size_t bytes, bool is_writable, void **ret);
void shared_memory_unmap(void *base, size_t bytes); /* NULL is fine */

err window_new_plain(size_t bytes, struct window *ret); /* never a memfd: fd -1 */

#endif
