/* bench_net.c - what a link costs beside a bare socket, between two processes on this machine.
 *
 *     bench_net [SECONDS]
 *
 * Round trips: an empty message, and push + pull (a stretch each way) of the parameters of a
 * softmax model (31,400 bytes) and of a small MLP (2,678,824 bytes). "bare" is the same bytes over
 * a TCP socket with nothing around them: no header, no loop, a read that does not wait in a loop.
 * All are medians, taken in turns within one run; a ratio is against bare. Both sides spin.
 */
#include "core/base/clock.h"
#include "core/base/error.h"
#include "net/loop.h"
#include "net/transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WINDOW_BYTES = 2678824,
    SAMPLES_MAX = 200000,
    WARM_UP = 50,
    TURNS = 5,
    SPIN_US = 20000, /* both sides spin: no sleep is in these figures */
    SERVER_LIFE_S = 300,
};

static const size_t sizes[] = {0, 31400, WINDOW_BYTES};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void need(err e)
{
    if (!e) return;
    fprintf(stderr, "bench_net: %s\n", error_text());
    exit(1);
}

/* ---- our links ---- */

struct side {
    struct loop *loop;
    struct link *link;
    struct link_windows windows;
    int messages;
    bool is_open, is_shared, is_closed;
};

static void opened(void *context, struct link *link)
{
    struct side *side = context;
    side->link = link;
    side->is_open = true;
    const struct window expected = {.bytes = WINDOW_BYTES};
    link_expect(link, &(struct link_windows){expected, expected, {0}});
}

static void accepted(void *context, struct link *link)
{
    const struct side *side = context;
    need(link_share(link, &side->windows));
}

static void client_message(void *context, struct link *link, const struct message *message)
{
    ((struct side *)context)->messages++;
}

static void server_message(void *context, struct link *link, const struct message *message)
{
    need(link_send(link, &(struct message){.type = MESSAGE_VALUES, .length = message->length}));
}

static void shared(void *context, struct link *link, const struct link_windows *windows)
{
    ((struct side *)context)->is_shared = true;
}

static void closed(void *context, struct link *link, err why)
{
    ((struct side *)context)->is_closed = true;
}

static const struct link_events client_events = {
    .opened = opened, .message = client_message, .shared = shared, .closed = closed};
static const struct link_events server_events = {
    .accepted = accepted, .message = server_message, .closed = closed};

/* The child: says where it listens, then serves one link until it ends. */
static void serve_link(const struct transport *transport, int tell_fd)
{
    struct side server = {0};
    char address[ADDRESS_MAX] = "";
    struct listener *listener;
    need(loop_open(&server.loop));
    loop_set_spin(server.loop, SPIN_US);
    need(window_new(WINDOW_BYTES, &server.windows.values));
    need(window_new(WINDOW_BYTES, &server.windows.gradients));
    need(transport->listen(server.loop, transport == &transport_tcp ? "127.0.0.1:0" : "",
                           &server_events, &server, address, &listener));
    if (write(tell_fd, address, sizeof address) != (ssize_t)sizeof address) _exit(1);
    while (!server.is_closed) loop_poll(server.loop, 1000);
    _exit(0);
}

/* Ends with this process, and by itself if that does not help. */
static pid_t fork_server(void)
{
    const pid_t parent = getpid(), child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(SERVER_LIFE_S);
    if (getppid() != parent) _exit(1);
    return 0;
}

static pid_t start_link(const struct transport *transport, struct side *client)
{
    int ends[2];
    char address[ADDRESS_MAX];
    if (pipe(ends)) exit(1);
    const pid_t child = fork_server();
    if (child == 0) serve_link(transport, ends[1]);
    close(ends[1]);
    if (read(ends[0], address, sizeof address) != (ssize_t)sizeof address) exit(1);
    close(ends[0]);
    *client = (struct side){0};
    need(loop_open(&client->loop));
    loop_set_spin(client->loop, SPIN_US);
    need(transport->connect(client->loop, address, &client_events, client, &client->link));
    while (!client->is_shared && !client->is_closed) loop_poll(client->loop, 1000);
    if (client->is_closed) {
        fprintf(stderr, "bench_net: %s does not work here\n", transport->name);
        exit(1);
    }
    return child;
}

static void exchange_link(void *context, size_t bytes)
{
    struct side *client = context;
    const int wanted = client->messages + 1;
    need(link_send(client->link, &(struct message){.type = MESSAGE_PUSH, .length = bytes}));
    while (client->messages < wanted && !client->is_closed) loop_poll(client->loop, 1000);
}

/* ---- a bare socket ---- */

struct bare {
    int fd;
    char *bytes;
};

static void move(int fd, char *bytes, size_t size, bool is_sending)
{
    for (size_t done = 0; done < size;) {
        const ssize_t step = is_sending
                                 ? send(fd, bytes + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL)
                                 : recv(fd, bytes + done, size - done, MSG_DONTWAIT);
        if (step > 0)
            done += (size_t)step;
        else if (step == 0 || (errno != EAGAIN && errno != EINTR))
            _exit(0);
    }
}

/* The server learns the size from the first 8 bytes, as a protocol would. */
static void exchange_bare(void *context, size_t bytes)
{
    struct bare *bare = context;
    const size_t size = bytes < sizeof size ? sizeof size : bytes;
    memcpy(bare->bytes, &size, sizeof size);
    move(bare->fd, bare->bytes, size, true);
    move(bare->fd, bare->bytes, size, false);
}

static void serve_bare(const struct bare *bare)
{
    while (true) {
        size_t size;
        move(bare->fd, bare->bytes, sizeof size, false);
        memcpy(&size, bare->bytes, sizeof size);
        move(bare->fd, bare->bytes + sizeof size, size - sizeof size, false);
        move(bare->fd, bare->bytes, size, true);
    }
}

static void tune(int fd)
{
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

static pid_t start_bare(struct bare *client)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    client->fd = socket(AF_INET, SOCK_STREAM, 0);
    client->bytes = calloc(1, WINDOW_BYTES);
    if (bind(listening, (struct sockaddr *)&at, bytes) || listen(listening, 1) ||
        getsockname(listening, (struct sockaddr *)&at, &bytes) ||
        connect(client->fd, (struct sockaddr *)&at, bytes))
        exit(1);
    const int served = accept(listening, NULL, NULL);
    tune(client->fd);
    tune(served);
    const pid_t child = fork_server();
    if (child == 0) {
        close(client->fd);
        serve_bare(&(struct bare){served, client->bytes});
    }
    close(served);
    close(listening);
    return child;
}

/* ---- measuring ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct subject {
    const char *name;
    void (*exchange)(void *context, size_t bytes);
    void *context;
    pid_t server; /* stopped while others are measured: it spins */
    double *samples_us;
    int count;
};

static void sample(struct subject *subject, size_t bytes, double seconds)
{
    kill(subject->server, SIGCONT);
    for (int i = 0; i < WARM_UP; i++) subject->exchange(subject->context, bytes);
    const uint64_t until_ns = clock_ns() + (uint64_t)(seconds * 1e9);
    for (uint64_t before = clock_ns(); before < until_ns && subject->count < SAMPLES_MAX;) {
        subject->exchange(subject->context, bytes);
        const uint64_t after = clock_ns();
        subject->samples_us[subject->count++] = (double)(after - before) / 1e3;
        before = after;
    }
    kill(subject->server, SIGSTOP);
}

static double at_part(const struct subject *subject, double part)
{
    return subject->samples_us[(int)(part * (subject->count - 1))];
}

static void measure(struct subject *subjects, int count, size_t bytes, double seconds)
{
    for (int i = 0; i < count; i++) subjects[i].count = 0;
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < count; i++) sample(&subjects[i], bytes, seconds / TURNS);
    for (int i = 0; i < count; i++) {
        struct subject *subject = &subjects[i];
        qsort(subject->samples_us, (size_t)subject->count, sizeof(double), compare);
        printf("%8zu B each way  %-5s p50 %8.2f us  p10 %8.2f  p90 %8.2f  ratio to bare %.2f\n",
               bytes, subject->name, at_part(subject, 0.5), at_part(subject, 0.1),
               at_part(subject, 0.9), at_part(subject, 0.5) / at_part(&subjects[0], 0.5));
    }
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 1.0;
    struct bare bare;
    struct side tcp, shm;
    struct subject subjects[] = {{.name = "bare", .exchange = exchange_bare, .context = &bare},
                                 {.name = "tcp", .exchange = exchange_link, .context = &tcp},
                                 {.name = "shm", .exchange = exchange_link, .context = &shm}};
    subjects[0].server = start_bare(&bare);
    subjects[1].server = start_link(&transport_tcp, &tcp);
    subjects[2].server = start_link(&transport_shm, &shm);
    for (int i = 0; i < 3; i++) kill(subjects[i].server, SIGSTOP);
    for (int i = 0; i < 3; i++) subjects[i].samples_us = malloc(SAMPLES_MAX * sizeof(double));
    for (int i = 0; i < SIZES; i++) measure(subjects, 3, sizes[i], seconds);
    loop_close(tcp.loop);
    loop_close(shm.loop);
    close(bare.fd);
    for (int i = 0; i < 3; i++) {
        kill(subjects[i].server, SIGKILL);
        waitpid(subjects[i].server, NULL, 0);
        free(subjects[i].samples_us);
    }
    free(bare.bytes);
    return 0;
}
