/* The lists of a checkpoint folder: published.json, by which a server takes deltas, and the state
 * file, by which a run continues. Both are read of the same bytes.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "core/train/checkpoint/checkpoints_inside.h"
#include "core/train/checkpoint/publication.h"

static void hold(const struct published *p)
{
    fuzz_holds(memchr(p->name, '\0', sizeof p->name) != NULL, "a name has an end");
    fuzz_holds(p->name[0] && !strchr(p->name, '/'), "a name is one of the folder");
    fuzz_holds(p->step >= 0 && p->bytes >= 0, "numbers are some");
}

static void hold_delta(const struct publication *p, int i)
{
    const struct published *delta = &p->deltas[i], *before = i ? delta - 1 : &p->full;
    const size_t bytes = strlen(p->full.name);
    hold(delta);
    fuzz_holds(strncmp(delta->name, p->full.name, bytes) == 0 && delta->name[bytes] == '.',
               "a delta is of this checkpoint");
    fuzz_holds(strcmp(delta->name, before->name) > 0 && delta->step >= before->step,
               "it follows the one before it");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct publication p;
    struct checkpoint_state state = {0};
    memory_file("run/" PUBLICATION_NAME, (struct view){bytes, bytes + count});
    memory_file("run/checkpoint", (struct view){bytes, bytes + count});
    if (fuzz_went_well(publication_read("memory://run", &p))) {
        fuzz_holds(p.count >= 0 && p.count <= DELTAS_MAX, "there are no more deltas");
        if (p.full.name[0]) hold(&p.full);
        for (int i = 0; i < p.count; i++) hold_delta(&p, i);
    }
    if (fuzz_went_well(state_read("memory://run", &state)))
        for (int i = 0; i < state.count; i++)
            fuzz_holds(state.records[i].prefix[0], "a checkpoint has a name");
    state_fini(&state);
    memory_clear();
    return 0;
}
