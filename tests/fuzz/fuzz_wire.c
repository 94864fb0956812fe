/* Messages: headers, and what is said of them. */
#include "tests/fuzz/fuzz.h"

#include "net/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    unsigned char header[MESSAGE_HEADER_BYTES], again[MESSAGE_HEADER_BYTES];
    char text[MESSAGE_TEXT_MAX], breach[MESSAGE_BREACH_MAX];
    struct message m;
    fuzz_went_well(wire_check_begin(bytes, count));
    for (size_t at = 0; count - at >= sizeof header; at += sizeof header) {
        memcpy(header, bytes + at, sizeof header);
        if (!fuzz_went_well(wire_unpack(header, &m))) continue;
        fuzz_holds(m.body_bytes <= MESSAGE_BODY_MAX, "a body is no longer than it may be");
        for (unsigned sender = 0; sender < 16; sender++) message_fault(&m, sender);
        message_is_within(&m, &message_ends_of_all, breach);
        message_show(&m, text);
        message_urgency(&m);
        wire_pack(&m, again);
        fuzz_holds(!wire_unpack(again, &m), "what is written can be read");
        wire_pack(&m, header);
        fuzz_holds(memcmp(header, again, sizeof header) == 0, "and is the same");
    }
    return 0;
}
