/* tls.c - see tls.h.
 *
 * OpenSSL reads and writes buffers of ours instead of the socket: so a record that was begun need
 * not be retried with the same bytes, and one system call moves several records.
 */
#include "net/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "net/would_block.h"

enum {
    RECORD_BYTES = 16384,                          /* of plain text, at most */
    RECORD_EXTRA = 256,                            /* added by encryption, at most */
    OUT_BYTES = 4 * (RECORD_BYTES + RECORD_EXTRA), /* of records not sent yet */
    IN_BYTES = OUT_BYTES,                          /* received, not read by OpenSSL yet */
    KEY_BYTES = 32,
    LOOK_MS = 1000, /* between two checks whether files have changed */
    TIME_TEXT_BYTES = 64,
};

enum { CERTIFICATE, PRIVATE_KEY, AUTHORITY, FILES };

static const char identity[] = "dtrain"; /* PSK identity, the same for all tasks */
/* A PSK is bound to one hash, which the cipher determines. */
static const char cipher_name[] = "TLS_AES_128_GCM_SHA256";
static const unsigned char cipher[2] = {0x13, 0x01};
static const char key_label[] = "dtrain key of a job, TLS 1.3";

/* Identifies the content of a file by its status. */
struct file_version {
    struct timespec changed;
    ino_t identity;
    off_t bytes;
};

struct tls_keys {
    SSL_CTX *context; /* guarded by the lock: replaced when files change */
    BIO_METHOD *memory;
    bool has_key; /* a shared key; else a certificate */
    unsigned char key[KEY_BYTES];

    pthread_mutex_t lock;
    char *files[FILES]; /* of a certificate, watched for changes; NULL with a shared key */
    struct file_version states[FILES];
    uint64_t looked_ms;
};

struct tls {
    struct tls_keys *keys;
    SSL *ssl;
    int fd;
    bool is_active, is_shaken;
    bool has_unread; /* the last read left bytes in OpenSSL */
    bool has_ended;  /* the peer has closed */
    enum right right;
    bool is_no_task; /* its certificate is not a task's, though this side has connected to a task */
    int reason;      /* errno of the socket; 0: none */
    size_t out_from, out_to, in_from, in_to;
    unsigned char out[OUT_BYTES], in[IN_BYTES];
};

/* Reports OpenSSL's first queued error, which is nearest to the cause, and clears the queue. */
static err fail_ssl(err kind, const char *what)
{
    const unsigned long code = ERR_peek_error();
    const char *why = ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code))
                      : code                 ? ERR_reason_error_string(code)
                                             : NULL;
    ERR_clear_error();
    return fail(kind, "%s: %s", what, why ? why : "TLS failed");
}

/* ---- between OpenSSL and the socket ---- */

/* Sends what the socket takes; false: it is broken. */
static bool push(struct tls *tls)
{
    while (tls->out_from < tls->out_to) {
        const ssize_t sent = send(tls->fd, tls->out + tls->out_from, tls->out_to - tls->out_from,
                                  MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && !would_block(errno)) tls->reason = errno;
        if (sent < 0) return tls->reason == 0;
        tls->out_from += (size_t)sent;
    }
    tls->out_from = tls->out_to = 0;
    return true;
}

static void pull(struct tls *tls)
{
    const ssize_t got = recv(tls->fd, tls->in, sizeof tls->in, MSG_DONTWAIT);
    tls->in_from = 0;
    tls->in_to = got > 0 ? (size_t)got : 0;
    if (got == 0) tls->has_ended = true;
    if (got < 0 && !would_block(errno)) tls->reason = errno;
}

static int memory_read(BIO *bio, char *to, size_t max, size_t *ret_bytes)
{
    struct tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (tls->in_from == tls->in_to && !tls->has_ended) pull(tls);
    const size_t there = tls->in_to - tls->in_from;
    *ret_bytes = there < max ? there : max;
    memcpy(to, tls->in + tls->in_from, *ret_bytes);
    tls->in_from += *ret_bytes;
    if (*ret_bytes == 0 && !tls->has_ended && !tls->reason) BIO_set_retry_read(bio);
    return *ret_bytes > 0;
}

static int memory_write(BIO *bio, const char *from, size_t bytes, size_t *ret_bytes)
{
    struct tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    *ret_bytes = 0;
    if (bytes > OUT_BYTES - tls->out_to && !push(tls)) return 0;
    if (bytes > OUT_BYTES - tls->out_to) {
        BIO_set_retry_write(bio);
        return 0;
    }
    memcpy(tls->out + tls->out_to, from, bytes);
    tls->out_to += bytes;
    *ret_bytes = bytes;
    return 1;
}

static long memory_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *new_memory(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "dtrain");
    if (!method) return NULL;
    BIO_meth_set_read_ex(method, memory_read);
    BIO_meth_set_write_ex(method, memory_write);
    BIO_meth_set_ctrl(method, memory_control);
    return method;
}

/* ---- rights by certificate ---- */

/* ret_is_ours: the URI begins with "dtrain:". RIGHT_TO_NOTHING: it names no known right. */
static enum right right_of_uri(const ASN1_STRING *uri, bool *ret_is_ours)
{
    static const char prefix[] = "dtrain:";
    static const struct {
        const char *name;
        enum right right;
    } rights[] = {
        {"task", RIGHT_TO_TAKE_PART}, {"writer", RIGHT_TO_CHANGE}, {"reader", RIGHT_TO_LOOK}};
    const char *text = (const char *)ASN1_STRING_get0_data(uri);
    const size_t bytes = (size_t)ASN1_STRING_length(uri), begin = strlen(prefix);
    if (bytes < begin || memcmp(text, prefix, begin) != 0) return RIGHT_TO_NOTHING;
    *ret_is_ours = true;
    for (size_t i = 0; i < sizeof rights / sizeof *rights; i++)
        if (bytes - begin == strlen(rights[i].name) &&
            memcmp(text + begin, rights[i].name, bytes - begin) == 0)
            return rights[i].right;
    return RIGHT_TO_NOTHING;
}

static enum right right_of_names(const GENERAL_NAMES *names)
{
    enum right most = RIGHT_TO_NOTHING;
    bool are_ours = false;
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type != GEN_URI) continue;
        const enum right right = right_of_uri(name->d.uniformResourceIdentifier, &are_ours);
        if (right > most) most = right;
    }
    return are_ours ? most : RIGHT_TO_TAKE_PART;
}

static enum right right_of_certificate(const X509 *certificate)
{
    enum { ABSENT = -1 };
    int found = 0;
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, &found, NULL);
    if (!names) return found == ABSENT ? RIGHT_TO_TAKE_PART : RIGHT_TO_NOTHING;
    const enum right ret = right_of_names(names);
    GENERAL_NAMES_free(names);
    return ret;
}

/* Checks the right of the peer's own certificate, once its chain is valid. A visitor's certificate
 * is refused where this side has connected to a task. */
static int verify(int is_right, X509_STORE_CTX *store)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls *tls = SSL_get_app_data(ssl);
    if (!is_right || X509_STORE_CTX_get_error_depth(store) > 0) return is_right;
    tls->right = right_of_certificate(X509_STORE_CTX_get_current_cert(store));
    tls->is_no_task = tls->is_active && tls->right != RIGHT_TO_TAKE_PART;
    if (tls->is_no_task) X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return !tls->is_no_task;
}

/* ---- keys ---- */

const char *tls_version(void)
{
    return OpenSSL_version(OPENSSL_VERSION_STRING);
}

/* An OpenSSL session that holds the shared key. NULL: out of memory. */
static SSL_SESSION *session_of_key(SSL *ssl)
{
    const struct tls_keys *keys = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    SSL_SESSION *session = SSL_SESSION_new();
    if (session && SSL_SESSION_set1_master_key(session, keys->key, KEY_BYTES) &&
        SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, cipher)) &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) &&
        SSL_SESSION_set1_id_context(session, (const unsigned char *)identity, sizeof identity))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

static int offer_key(SSL *ssl, const EVP_MD *hash, const unsigned char **ret_identity,
                     size_t *ret_bytes, SSL_SESSION **ret)
{
    *ret = NULL;
    if (hash && !EVP_MD_is_a(hash, "SHA256"))
        return 1; /* the peer wants another hash: no key for that */
    *ret_identity = (const unsigned char *)identity;
    *ret_bytes = strlen(identity);
    *ret = session_of_key(ssl);
    return *ret != NULL;
}

static int find_key(SSL *ssl, const unsigned char *name, size_t bytes, SSL_SESSION **ret)
{
    const bool is_ours = bytes == strlen(identity) && memcmp(name, identity, bytes) == 0;
    *ret = is_ours ? session_of_key(ssl) : NULL;
    return !is_ours || *ret;
}

/* "fd:7": a file inherited from the process that started this one, read from its beginning. */
static int open_path(const char *path)
{
    char inherited[64];
    int fd, end = 0;
    if (sscanf(path, "fd:%d%n", &fd, &end) == 1 && !path[end])
        snprintf(inherited, sizeof inherited, "/proc/self/fd/%d", fd);
    else
        end = 0;
    /* non-blocking: does not wait for the writer of a pipe */
    return open(end ? inherited : path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Nobody else may read it, since its readers can pose as tasks. A file of root may be readable for
 * a group that this process is in: Kubernetes and systemd provide secrets so. */
static bool is_private(const struct stat *status)
{
    const bool is_roots = status->st_uid == 0 && geteuid() != 0;
    return !(status->st_mode & (is_roots ? S_IWGRP | S_IRWXO : S_IRWXG | S_IRWXO));
}

/* Follows symbolic links: schedulers provide secrets so. */
static err open_secret(const char *path, int *ret)
{
    struct stat status;
    const int fd = open_path(path);
    if (fd < 0) return fail(ERR_INPUT, "%s: %s", path, strerror(errno));
    err e = OK;
    if (fstat(fd, &status) || !S_ISREG(status.st_mode))
        e = fail(ERR_INPUT, "%s: expected a file", path);
    else if (!is_private(&status))
        e = fail(ERR_INPUT, "%s: others may read or write it: chmod 600 %s", path, path);
    if (e) close(fd);
    *ret = e ? -1 : fd;
    return e;
}

/* Reads into this memory only, which its owner clears: stdio would keep a copy. */
static err read_key(const char *path, unsigned char *ret, size_t *ret_bytes)
{
    const size_t most = TLS_KEY_BYTES_MAX + 1;
    ssize_t got;
    int fd;
    TRY(open_secret(path, &fd));
    *ret_bytes = 0;
    do {
        got = read(fd, ret + *ret_bytes, most - *ret_bytes);
        if (got > 0) *ret_bytes += (size_t)got;
    } while ((got > 0 && *ret_bytes < most) ||
             (got < 0 && errno == EINTR)); /* ends with the file */
    const int reason = errno;
    close(fd);
    if (got < 0) return fail(ERR_INPUT, "%s: %s", path, strerror(reason));
    if (*ret_bytes < TLS_KEY_BYTES_MIN)
        return fail(ERR_INPUT,
                    "%s: %zu bytes are no key, %d are the least: openssl rand -hex 32 > %s", path,
                    *ret_bytes, TLS_KEY_BYTES_MIN, path);
    if (*ret_bytes > TLS_KEY_BYTES_MAX)
        return fail(ERR_INPUT, "%s: more than %d bytes are no key", path, TLS_KEY_BYTES_MAX);
    return OK;
}

/* Derives a key of the length that TLS needs, used for nothing else. */
static err derive_key(struct tls_keys *keys, const unsigned char *text, size_t bytes)
{
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    const bool is_made = digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) &&
                         EVP_DigestUpdate(digest, key_label, sizeof key_label) &&
                         EVP_DigestUpdate(digest, text, bytes) &&
                         EVP_DigestFinal_ex(digest, keys->key, NULL);
    EVP_MD_CTX_free(digest);
    return is_made ? OK : fail(ERR_MEMORY, "no memory for a key");
}

/* Replaces OpenSSL's password prompt, which would read the terminal or standard input. */
static int refuse_password(char *to, int max, int is_written, void *ret_was_asked)
{
    (void)to, (void)max, (void)is_written;
    if (ret_was_asked) *(bool *)ret_was_asked = true;
    return -1;
}

static err new_context(struct tls_keys *keys, SSL_CTX **ret)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    const bool is_made =
        context && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) &&
        SSL_CTX_set_num_tickets(context, 0) &&
        SSL_CTX_set_session_id_context(context, (const unsigned char *)identity, sizeof identity);
    if (!is_made) {
        SSL_CTX_free(context);
        return fail_ssl(ERR_MEMORY, "no memory for TLS");
    }
    SSL_CTX_set_app_data(context, keys);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_default_passwd_cb(context, refuse_password);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, verify);
    *ret = context;
    return OK;
}

static err new_keys(struct tls_keys **ret)
{
    struct tls_keys *keys = calloc(1, sizeof *keys);
    if (!keys) return fail(ERR_MEMORY, "no memory for TLS");
    /* Keeps the key out of core dumps and from other processes of the same user (ptrace). */
    (void)prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L);
    pthread_mutex_init(&keys->lock, NULL);
    keys->memory = new_memory();
    const err e = keys->memory ? new_context(keys, &keys->context)
                               : fail_ssl(ERR_MEMORY, "no memory for TLS");
    if (e)
        tls_keys_close(keys);
    else
        *ret = keys;
    return e;
}

void tls_keys_close(struct tls_keys *keys)
{
    if (!keys) return;
    SSL_CTX_free(keys->context);
    BIO_meth_free(keys->memory);
    for (int i = 0; i < FILES; i++) free(keys->files[i]);
    pthread_mutex_destroy(&keys->lock);
    OPENSSL_cleanse(keys->key, sizeof keys->key);
    free(keys);
}

err tls_keys_of_file(const char *path, struct tls_keys **ret)
{
    unsigned char text[TLS_KEY_BYTES_MAX + 1];
    size_t bytes;
    struct tls_keys *keys = NULL;
    err e = read_key(path, text, &bytes);
    if (!e) e = new_keys(&keys);
    if (!e) e = derive_key(keys, text, bytes);
    OPENSSL_cleanse(text, sizeof text);
    if (e) {
        tls_keys_close(keys);
        return e;
    }
    if (SSL_CTX_set_ciphersuites(keys->context, cipher_name) != 1) {
        tls_keys_close(keys);
        return fail_ssl(ERR_MEMORY, path);
    }
    keys->has_key = true;
    SSL_CTX_set_psk_use_session_callback(keys->context, offer_key);
    SSL_CTX_set_psk_find_session_callback(keys->context, find_key);
    *ret = keys;
    return OK;
}

static err use_private_key(SSL_CTX *context, const char *path)
{
    bool was_asked = false;
    int fd; /* only checked: OpenSSL opens the file itself */
    TRY(open_secret(path, &fd));
    close(fd);
    SSL_CTX_set_default_passwd_cb_userdata(context, &was_asked);
    const bool is_used = SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) == 1;
    SSL_CTX_set_default_passwd_cb_userdata(context, NULL);
    if (is_used || !was_asked) return is_used ? OK : fail_ssl(ERR_INPUT, path);
    ERR_clear_error();
    return fail(ERR_INPUT,
                "%s: is encrypted with a password, which dtrain does not ask for; remove it: "
                "openssl pkey -in %s -out FILE; chmod 600 FILE",
                path, path);
}

/* ERR_INPUT: not yet valid, or expired. */
static err check_time(const char *path, const X509 *certificate)
{
    const ASN1_TIME *from = X509_get0_notBefore(certificate);
    const ASN1_TIME *until = X509_get0_notAfter(certificate);
    const bool is_over = X509_cmp_current_time(until) < 0;
    char text[TIME_TEXT_BYTES] = "";
    if (!is_over && X509_cmp_current_time(from) < 0) return OK;
    BIO *memory = BIO_new(BIO_s_mem());
    if (memory && ASN1_TIME_print(memory, is_over ? until : from))
        (void)BIO_gets(memory, text, sizeof text);
    BIO_free(memory);
    return fail(ERR_INPUT, "%s: the certificate %s %s, by the clock of this host", path,
                is_over ? "has expired on" : "is valid only from", text);
}

static err use_certificate(SSL_CTX *context, char *const *files)
{
    const char *certificate = files[CERTIFICATE], *key = files[PRIVATE_KEY],
               *authority = files[AUTHORITY];
    ERR_clear_error();
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return fail_ssl(ERR_INPUT, certificate);
    TRY(check_time(certificate, SSL_CTX_get0_certificate(context)));
    TRY(use_private_key(context, key));
    if (SSL_CTX_check_private_key(context) != 1) return fail_ssl(ERR_INPUT, key);
    if (SSL_CTX_load_verify_file(context, authority) != 1) return fail_ssl(ERR_INPUT, authority);
    return OK;
}

static void find_states(struct tls_keys *keys, struct file_version ret[FILES])
{
    struct stat found;
    memset(ret, 0, FILES * sizeof *ret);
    for (int i = 0; i < FILES; i++)
        if (!stat(keys->files[i], &found)) {
            ret[i].changed = found.st_mtim;
            ret[i].identity = found.st_ino;
            ret[i].bytes = found.st_size;
        }
}

err tls_keys_of_certificate(const char *certificate, const char *key, const char *authority,
                            struct tls_keys **ret)
{
    const char *const paths[FILES] = {certificate, key, authority};
    struct tls_keys *keys = NULL;
    TRY(new_keys(&keys));
    err e = OK;
    for (int i = 0; i < FILES && !e; i++)
        if (!(keys->files[i] = strdup(paths[i]))) e = fail(ERR_MEMORY, "no memory for TLS");
    if (!e) find_states(keys, keys->states);
    if (!e) e = use_certificate(keys->context, keys->files);
    keys->looked_ms = clock_ms();
    if (e)
        tls_keys_close(keys);
    else
        *ret = keys;
    return e;
}

static void renew(struct tls_keys *keys)
{
    SSL_CTX *context = NULL;
    err e = new_context(keys, &context);
    if (!e) e = use_certificate(context, keys->files);
    if (e) {
        log_line(LOG_WARNING, "%s; the previous certificate stays in use", error_text());
        SSL_CTX_free(context);
        return;
    }
    SSL_CTX_free(keys->context); /* connections hold references */
    keys->context = context;
    log_line(LOG_INFO, "%s has changed and was read again", keys->files[CERTIFICATE]);
}

/* On an error the old context stays: files are replaced one by one and may not match for a moment.
 */
static void renew_changed(struct tls_keys *keys)
{
    struct file_version now[FILES];
    if (keys->has_key || clock_ms() < keys->looked_ms + LOOK_MS) return;
    keys->looked_ms = clock_ms();
    find_states(keys, now);
    if (memcmp(now, keys->states, sizeof now) == 0) return;
    memcpy(keys->states, now, sizeof now);
    renew(keys);
}

/* Thread-safe. */
static SSL *new_ssl(struct tls_keys *keys)
{
    pthread_mutex_lock(&keys->lock);
    renew_changed(keys);
    SSL *ssl = SSL_new(keys->context);
    pthread_mutex_unlock(&keys->lock);
    return ssl;
}

/* ---- one socket ---- */

err tls_open(struct tls_keys *keys, int fd, bool is_active, struct tls **ret)
{
    struct tls *tls = calloc(1, sizeof *tls);
    BIO *memory = tls ? BIO_new(keys->memory) : NULL;
    if (memory) tls->ssl = new_ssl(keys);
    if (!memory || !tls->ssl) {
        BIO_free(memory);
        free(tls);
        return fail_ssl(ERR_MEMORY, "no memory for TLS");
    }
    tls->keys = keys;
    tls->fd = fd;
    tls->is_active = is_active;
    tls->right = keys->has_key ? RIGHT_TO_TAKE_PART : RIGHT_TO_NOTHING;
    SSL_set_app_data(tls->ssl, tls);
    BIO_set_data(memory, tls);
    BIO_set_init(memory, 1);
    SSL_set_bio(tls->ssl, memory, memory);
    if (is_active)
        SSL_set_connect_state(tls->ssl);
    else
        SSL_set_accept_state(tls->ssl);
    *ret = tls;
    return OK;
}

void tls_close(struct tls *tls)
{
    if (!tls) return;
    if (tls->is_shaken && !tls->reason) {
        (void)SSL_shutdown(tls->ssl);
        (void)push(tls);
    }
    ERR_clear_error();
    SSL_free(tls->ssl);
    OPENSSL_cleanse(tls, sizeof *tls);
    free(tls);
}

/* OpenSSL sends nothing if the first bytes are not TLS; this alert tells a task without the key
 * (wire_check_begin recognises it). */
static err refuse_plain(struct tls *tls)
{
    static const char alert[] = {0x15, 3, 3, 0, 2, 2, 70}; /* fatal: protocol_version */
    (void)!send(tls->fd, alert, sizeof alert, MSG_DONTWAIT | MSG_NOSIGNAL);
    return fail(ERR_PEER, "does not speak TLS, as this task does: has it no %s?",
                tls->keys->has_key ? "--key_file" : "--tls_cert");
}

/* The peer's alert about the certificate of this task. */
static bool is_expired_alert(int reason)
{
    return reason == SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED;
}

/* Reports why the peer's certificate was refused, or else OpenSSL's error. */
static err fail_proof(const struct tls *tls, unsigned long code)
{
    const long found = SSL_get_verify_result(tls->ssl);
    const char *why = found != X509_V_OK ? X509_verify_cert_error_string(found)
                      : code             ? ERR_reason_error_string(code)
                                         : NULL;
    if (found == X509_V_ERR_CERT_HAS_EXPIRED || found == X509_V_ERR_CERT_NOT_YET_VALID)
        return fail(ERR_PEER, "does not prove that it belongs to the job: %s", why);
    return fail(ERR_PEER, "does not prove that it belongs to the job: is its %s another? (%s)",
                tls->keys->has_key ? "--key_file" : "--tls_ca", why ? why : "TLS failed");
}

static err fail_handshake(struct tls *tls)
{
    const unsigned long code = ERR_peek_last_error();
    const int reason = ERR_GET_REASON(code);
    ERR_clear_error();
    if (tls->is_no_task)
        return fail(ERR_PEER, "its certificate is not that of a task (URI:dtrain:task)");
    if (tls->reason)
        return fail(ERR_PEER, "lost while it proved who it is: %s", strerror(tls->reason));
    if (tls->has_ended && (!code || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING))
        return fail(ERR_PEER, "closed the connection instead of proving who it is");
    if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
        reason == SSL_R_PACKET_LENGTH_TOO_LONG)
        return refuse_plain(tls);
    if (is_expired_alert(reason))
        return fail(
            ERR_PEER,
            "does not take the certificate of this task: it or its authority's has expired");
    return fail_proof(tls, code);
}

enum right tls_right(const struct tls *tls)
{
    return tls->right;
}

/* With a shared key a peer with a certificate is refused, by SSL_VERIFY_PEER and again here. */
static bool is_proven(const struct tls *tls)
{
    return tls->keys->has_key ? SSL_session_reused(tls->ssl) == 1
                              : SSL_get_verify_result(tls->ssl) == X509_V_OK;
}

err tls_shake_hands(struct tls *tls, bool *ret_is_done)
{
    *ret_is_done = false;
    ERR_clear_error();
    const int done = SSL_do_handshake(tls->ssl);
    const int why = done == 1 ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, done);
    const bool is_sent = push(tls); /* an alert tells the peer why, too */
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return is_sent ? OK : fail_handshake(tls);
    if (done != 1 || !is_sent || !is_proven(tls)) return fail_handshake(tls);
    tls->is_shaken = *ret_is_done = tls->has_unread = true;
    return OK;
}

/* ---- traffic ---- */

/* The rest of an iovec array. */
struct unmoved_pieces {
    const struct iovec *at;
    int count;
    size_t done; /* bytes of the first piece that are done */
};

/* The next contiguous bytes, at most `max`, and where they begin; 0: none are left. */
static size_t next_bytes(struct unmoved_pieces *rest, size_t max, char **ret)
{
    while (rest->count > 0 && rest->at->iov_len == rest->done) {
        rest->at++;
        rest->count--;
        rest->done = 0;
    }
    if (rest->count == 0) return 0;
    const size_t left = rest->at->iov_len - rest->done;
    *ret = (char *)rest->at->iov_base + rest->done;
    return left < max ? left : max;
}

/* The plain text of the next record, in place or, if in small pieces, copied to `record`. */
static size_t gather(struct unmoved_pieces *rest, char *record, const char **ret_text)
{
    char *from = NULL;
    size_t bytes = next_bytes(rest, RECORD_BYTES, &from), all = 0;
    *ret_text = bytes == RECORD_BYTES ? from : record;
    if (bytes == RECORD_BYTES) {
        rest->done += bytes;
        return bytes;
    }
    for (; bytes > 0; bytes = next_bytes(rest, RECORD_BYTES - all, &from)) {
        memcpy(record + all, from, bytes);
        all += bytes;
        rest->done += bytes;
    }
    return all;
}

static bool has_room(const struct tls *tls)
{
    return OUT_BYTES - tls->out_to >= RECORD_BYTES + RECORD_EXTRA;
}

/* Encrypted bytes count as sent, even while they wait for room in the socket. */
ssize_t tls_send(struct tls *tls, const struct iovec *pieces, int count)
{
    struct unmoved_pieces rest = {pieces, count, 0};
    char record[RECORD_BYTES];
    const char *text;
    size_t taken = 0;
    bool is_whole = push(tls);
    while (is_whole && (has_room(tls) || (push(tls) && has_room(tls)))) {
        size_t written;
        const size_t bytes = gather(&rest, record, &text);
        if (bytes == 0) break;
        ERR_clear_error();
        is_whole = SSL_write_ex(tls->ssl, text, bytes, &written) == 1 && written == bytes;
        if (is_whole) taken += bytes;
    }
    if (is_whole) is_whole = push(tls);
    if (!is_whole && !tls->reason) tls->reason = EPROTO;
    if (taken > 0) return (ssize_t)taken;
    errno = is_whole ? EAGAIN : tls->reason;
    return -1;
}

/* Why SSL_read_ex() gave nothing: -1 with errno, or 0. */
static ssize_t explain_nothing(struct tls *tls)
{
    const int why = SSL_get_error(tls->ssl, 0);
    const bool is_expired = is_expired_alert(ERR_GET_REASON(ERR_peek_last_error()));
    ERR_clear_error();
    const bool is_empty = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
    if (!tls->reason && is_empty) return errno = EAGAIN, -1;
    if (!tls->reason && (why == SSL_ERROR_ZERO_RETURN || tls->has_ended)) return 0;
    if (!tls->reason) tls->reason = is_expired ? EKEYEXPIRED : EPROTO;
    return errno = tls->reason, -1;
}

/* As with a socket, a short count means that no more is there now, or the end, which the next call
 * reports. */
ssize_t tls_receive(struct tls *tls, const struct iovec *pieces, int count)
{
    struct unmoved_pieces rest = {pieces, count, 0};
    char *to;
    size_t max, bytes, got = 0;
    while ((max = next_bytes(&rest, SIZE_MAX, &to)) > 0) {
        ERR_clear_error();
        if (SSL_read_ex(tls->ssl, to, max, &bytes) != 1) {
            const ssize_t nothing = explain_nothing(tls);
            tls->has_unread = got > 0 && (nothing == 0 || errno != EAGAIN);
            return got > 0 ? (ssize_t)got : nothing;
        }
        rest.done += bytes;
        got += bytes;
    }
    tls->has_unread = true;
    return (ssize_t)got;
}

bool tls_has_unsent(const struct tls *tls)
{
    return tls->out_from < tls->out_to;
}

bool tls_has_unread(const struct tls *tls)
{
    return tls->has_unread;
}
