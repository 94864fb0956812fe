/* What servers of files, etcd and ZooKeeper answer: the first byte says who asks for what, and each
 * connection gets the next text of the input, up to a zero byte, before it is closed.
 */
#include "tests/fuzz/fuzz.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/files/file_system.h"
#include "net/coordinator/coordinator.h"
#include "net/web/systems.h"

enum { ASKED_MAX = 8192, ANSWER_MAX = 64 << 10, READ_MAX = 4096, ANSWERS_MAX = 64 };

/* ---- the server ---- */

static struct {
    int listening, port;
    pthread_mutex_t lock; /* guards what follows */
    struct view answers;
    bool is_one; /* ZooKeeper's, with zeros in it: all answers of a connection */
    int answered;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The request is not looked at, but its head must have come: a client may say it in pieces. */
static void hear(int connection)
{
    char asked[ASKED_MAX];
    size_t used = 0;
    for (ssize_t some; used < sizeof asked - 1; used += (size_t)some) {
        some = recv(connection, asked + used, sizeof asked - 1 - used, 0);
        if (some <= 0) return;
        asked[used + (size_t)some] = '\0';
        if (strstr(asked, "\r\n\r\n") || !asked[0]) return; /* ZooKeeper's begins with its length */
    }
}

/* Copied, as it is sent when the input may have gone. */
static size_t next_answer(uint8_t to[ANSWER_MAX])
{
    struct view answer = {0};
    pthread_mutex_lock(&server.lock);
    if (server.is_one)
        answer = fuzz_bytes(&server.answers, view_bytes(server.answers));
    else if (server.answered++ < ANSWERS_MAX)
        answer = fuzz_text(&server.answers);
    const size_t bytes = view_bytes(answer) < ANSWER_MAX ? view_bytes(answer) : ANSWER_MAX;
    if (bytes) memcpy(to, answer.at, bytes);
    pthread_mutex_unlock(&server.lock);
    return bytes;
}

static void *serve(void *context)
{
    static uint8_t answer[ANSWER_MAX];
    (void)context;
    for (;;) {
        const int connection = accept(server.listening, NULL, NULL);
        if (connection < 0) continue;
        hear(connection);
        const size_t bytes = next_answer(answer);
        if (bytes) send(connection, answer, bytes, MSG_NOSIGNAL);
        close(connection);
    }
    return NULL;
}

static void begin(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    pthread_t thread;
    char url[64];
    if (server.port) return;
    server.listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server.listening, (struct sockaddr *)&address, bytes) ||
        listen(server.listening, 64) ||
        getsockname(server.listening, (struct sockaddr *)&address, &bytes) ||
        pthread_create(&thread, NULL, serve, NULL))
        exit(2);
    server.port = ntohs(address.sin_port);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", server.port);
    setenv("AWS_ENDPOINT_URL", url, 1);
    setenv("AWS_ACCESS_KEY_ID", "id", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "a secret", 1);
    setenv("AWS_REGION", "here", 1);
    setenv("STORAGE_EMULATOR_HOST", url, 1);
    setenv("DTRAIN_URL_TRIES", "1", 1);
    setenv("DTRAIN_URL_TIMEOUT", "1", 1);
    web_systems_register();
}

/* ---- who asks ---- */

static err count_path(void *context, const char *path)
{
    fuzz_holds(path[0], "a path is one");
    ++*(int *)context;
    return OK;
}

static void read_file(const char *path)
{
    static uint8_t to[READ_MAX];
    struct file *file;
    size_t got;
    if (!fuzz_went_well(file_open(path, &file))) return;
    const uint64_t bytes = file->state.bytes, offsets[] = {0, 7, bytes / 2, bytes - !!bytes, bytes};
    for (int i = 0; i < 5; i++) {
        if (!fuzz_went_well(file_read_at(file, offsets[i], 0, to, sizeof to, &got))) break;
        fuzz_holds(got <= sizeof to && (!got || offsets[i] + got <= bytes),
                   "no more comes than is there");
    }
    file_close(file);
}

static void write_file(const char *path)
{
    struct file_writer *writer;
    if (!fuzz_went_well(file_create(path, &writer))) return;
    if (fuzz_went_well(file_append(writer, "some bytes", 10))) fuzz_went_well(file_finish(writer));
    file_drop(writer);
    fuzz_went_well(file_remove(path));
}

static void list_files(const char *pattern, const char *folder)
{
    int count = 0;
    fuzz_went_well(files_match(pattern, 0, count_path, &count));
    fuzz_went_well(files_visit(folder, count_path, &count));
}

static void coordinate(const char *scheme)
{
    struct coordinator *c;
    struct coordinator_entry *entries;
    struct arena arena = {0};
    char url[64];
    bool is = false;
    int count = 0;
    snprintf(url, sizeof url, "%s://127.0.0.1:%d/jobs", scheme, server.port);
    if (!fuzz_went_well(coordinator_open(url, &c))) return;
    fuzz_went_well(coordinator_claim(c, "small/ps/0", "10.0.0.7:1", &is));
    if (fuzz_went_well(coordinator_list(c, "small/ps", &arena, &entries, &count)))
        for (int i = 0; i < count; i++)
            fuzz_holds(entries[i].name && entries[i].value, "an entry has a name and a value");
    fuzz_went_well(coordinator_renew(c, &is));
    coordinator_close(c);
    arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const char *const services[] = {"http", "s3", "gs", "webhdfs"};
    struct view input = {bytes, bytes + count};
    const uint8_t which = fuzz_byte(&input);
    const char *scheme = services[which % 4];
    char host[64], path[128], pattern[128], folder[128];
    begin();
    pthread_mutex_lock(&server.lock);
    server.answers = input;
    server.answered = 0;
    server.is_one = which / 4 % 4 == 3 && which % 2;
    pthread_mutex_unlock(&server.lock);
    snprintf(host, sizeof host, "127.0.0.1:%d", server.port);
    if (which % 4 == 1 || which % 4 == 2) strcpy(host, "bucket");
    snprintf(path, sizeof path, "%s://%s/a/file", scheme, host);
    snprintf(pattern, sizeof pattern, "%s://%s/a/*", scheme, host);
    snprintf(folder, sizeof folder, "%s://%s/a", scheme, host);
    if (which / 4 % 4 == 0) read_file(path);
    if (which / 4 % 4 == 1) list_files(pattern, folder);
    if (which / 4 % 4 == 2) write_file(path);
    if (which / 4 % 4 == 3) coordinate(which % 2 ? "zookeeper" : "etcd");
    pthread_mutex_lock(&server.lock);
    server.answers = (struct view){0};
    pthread_mutex_unlock(&server.lock);
    return 0;
}
