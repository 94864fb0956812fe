/* key.c - see key.h. */
#include "cmd/launch/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files/local.h"
#include "core/base/files/own.h"

const char key_word[] = "--key_file=fd:9";

enum { RANDOM_BYTES = 32, LENGTH_BYTES = 4 /* in front of it, in hex */ };

static err read_given(const char *path, struct launch_key *key)
{
    FILE *file;
    const err e = local_open_text(path, &file);
    if (e) return fail_prefix(e, "--key_file");
    key->bytes = fread(key->text, 1, sizeof key->text, file);
    fclose(file);
    return OK;
}

static err draw(struct launch_key *key)
{
    unsigned char drawn[RANDOM_BYTES];
    if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn)
        return fail(ERR_IO, "cannot make a key: %s", strerror(errno));
    for (size_t i = 0; i < sizeof drawn; i++)
        key->bytes += (size_t)snprintf((char *)key->text + key->bytes,
                                       sizeof key->text - key->bytes, "%02x", drawn[i]);
    explicit_bzero(drawn, sizeof drawn);
    return OK;
}

static const char *private_folder(void)
{
    const char *const said[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR")};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i] && *said[i] && !access(said[i], W_OK)) return said[i];
    return "/tmp";
}

static err keep(struct launch_key *key)
{
    const mode_t before = umask(S_IRWXG | S_IRWXO);
    bool is_kept = snprintf(key->folder, sizeof key->folder, "%s/dtrain-XXXXXX", private_folder()) <
                       (int)sizeof key->folder - 16 &&
                   mkdtemp(key->folder);
    if (!is_kept) key->folder[0] = '\0';
    if (is_kept) snprintf(key->path, sizeof key->path, "%.*s/job.key", PATH_MAX - 16, key->folder);
    const int file = is_kept ? own_make(key->path) : -1;
    is_kept = file >= 0 && own_write(file, key->text, key->bytes);
    const int why = errno;
    umask(before);
    if (file >= 0) close(file);
    return is_kept
               ? OK
               : fail(ERR_IO, "%s: cannot keep a key there: %s", private_folder(), strerror(why));
}

err launch_key_open(const struct run *run, struct launch_key *ret)
{
    const struct cluster_flags *flags = &run->flags.cluster;
    *ret = (struct launch_key){0};
    if (!run->flags.ssh || flags->tls_cert) return OK;
    if (flags->key_file) return read_given(flags->key_file, ret);
    if (flags->insecure || !tls_version()) return OK;
    TRY(draw(ret));
    return keep(ret);
}

void launch_key_close(struct launch_key *key)
{
    if (key->path[0]) unlink(key->path);
    if (key->folder[0]) rmdir(key->folder);
    explicit_bzero(key, sizeof *key);
}

err launch_key_send(const struct launch_key *key, int pipe)
{
    char length[LENGTH_BYTES + 1];
    snprintf(length, sizeof length, "%04zx", key->bytes);
    if (own_write(pipe, length, LENGTH_BYTES) && own_write(pipe, key->text, key->bytes)) return OK;
    return fail(ERR_IO, "cannot hand the key on: %s", strerror(errno));
}

/* Blocks until all has come; false: the connection has ended. */
static bool read_whole(int pipe, void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = read(pipe, (char *)to + done, bytes - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

err launch_key_receive(int pipe, int *ret)
{
    char length[LENGTH_BYTES + 1] = "";
    unsigned char text[TLS_KEY_BYTES_MAX];
    unsigned bytes = 0;
    if (!read_whole(pipe, length, LENGTH_BYTES) || sscanf(length, "%4x", &bytes) != 1 ||
        bytes > sizeof text || !read_whole(pipe, text, bytes))
        return fail(ERR_PEER, "the launcher has not sent the key");
    *ret = memfd_create("dtrain-key", MFD_CLOEXEC);
    const bool is_kept =
        *ret >= 0 && !fchmod(*ret, S_IRUSR | S_IWUSR) && own_write(*ret, text, bytes);
    explicit_bzero(text, sizeof text);
    return is_kept ? OK : fail(ERR_IO, "cannot keep the key: %s", strerror(errno));
}
