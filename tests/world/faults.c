/* faults.c - see faults.h. */
#include "tests/world/faults.h"

#include "tests/world/files.h"
#include "tests/world/machine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { ALL_HOSTS = HOSTS_MAX };

static struct trouble {
    uint64_t until_ns;
    int share;
} troubles[HOSTS_MAX + 1][DISK_FAULTS];

void disk_fail(enum disk_fault fault, int host, int share, uint64_t until_ns)
{
    struct trouble *trouble = &troubles[host < 0 ? ALL_HOSTS : host][fault];
    *trouble = (struct trouble){until_ns, share};
}

static uint64_t lacks_until_ns[HOSTS_MAX];

static struct {
    char words[FILE_NAME_BYTES];
    int left; /* calls; 0: none is watched */
    void (*tell)(struct process *);
} watched;

void disks_heal(void)
{
    memset(troubles, 0, sizeof troubles);
    memset(lacks_until_ns, 0, sizeof lacks_until_ns);
    watched.left = 0;
}

/* Beside the draws: of whatever else befalls the seed */
bool disk_always_replaces(void)
{
    return machine.seed / 16 % 2;
}

void data_lack(int host, uint64_t until_ns)
{
    lacks_until_ns[host] = until_ns;
}

bool data_is_lacking(const char *path)
{
    return machine.now_ns < lacks_until_ns[process_now()->host] && strstr(path, ".csv");
}

void names_watch(const char *words, int nth, void (*tell)(struct process *))
{
    snprintf(watched.words, sizeof watched.words, "%s", words);
    watched.left = nth;
    watched.tell = tell;
}

void names_note(const char *path)
{
    if (watched.left && strstr(path, watched.words) && --watched.left == 0)
        watched.tell(process_now());
}

static bool has(enum disk_fault fault)
{
    const int places[] = {ALL_HOSTS, process_now()->host};
    for (int i = 0; i < 2; i++) {
        const struct trouble *trouble = &troubles[places[i]][fault];
        if (machine.now_ns < trouble->until_ns && draw_chance(trouble->share)) return true;
    }
    return false;
}

/* Others have their turn meanwhile; who is killed waits no longer. */
static void hang(void)
{
    const uint64_t a = troubles[ALL_HOSTS][DISK_HANGS].until_ns,
                   b = troubles[process_now()->host][DISK_HANGS].until_ns;
    if (has(DISK_HANGS)) fiber_wait(NULL, a > b ? a : b);
}

int disk_fault(enum disk_use use)
{
    const bool changes = use == USE_NAME || use == USE_CREATE || use == USE_WRITE;
    hang();
    if (has(DISK_BROKEN)) return EIO;
    if (changes && has(DISK_READ_ONLY)) return EROFS;
    if ((use == USE_OPEN || use == USE_NAME || use == USE_CREATE) && has(DISK_DENIED))
        return EACCES;
    if (use == USE_CREATE && has(DISK_FULL)) return ENOSPC;
    if (use == USE_SYNC && has(DISK_UNSYNCED)) return EIO;
    return 0;
}

uint64_t disk_room(uint64_t count)
{
    if (!has(DISK_FULL)) return count;
    return count > 1 ? draw_below(count) : 0;
}
