/* pinned.c - see pinned.h. */
#include "core/train/session/pinned.h"

#include "core/base/log.h"

bool pinned_open(struct device *d, void *host, size_t bytes, bool is_written, const char *what)
{
    const struct async *async = d->kernels->async;
    if (!async || !bytes || !host) return false;
    if (async->pin(d, host, bytes, is_written)) return true;
    log_line(LOG_INFO, "%s: %.3f MB cannot be pinned, and are copied once more in every step", what,
             (double)bytes / 1e6);
    return false;
}

void pinned_close(struct device *d, void *host, bool is_pinned)
{
    if (is_pinned) d->kernels->async->unpin(d, host);
}

void pinned_upload(struct device *d, bool is_pinned, void *to, const void *host, size_t bytes)
{
    if (is_pinned)
        d->kernels->async->upload_pinned(d, to, host, bytes);
    else
        d->kernels->upload(d, to, host, bytes);
}

void pinned_download(struct device *d, bool is_pinned, void *host, const void *from, size_t bytes)
{
    if (is_pinned)
        d->kernels->async->download_pinned(d, host, from, bytes);
    else
        d->kernels->download(d, host, from, bytes);
}
