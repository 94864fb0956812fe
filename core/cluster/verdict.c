/* verdict.c - see verdict.h. */
#include "core/cluster/verdict.h"

int exit_code_of(err e)
{
    switch (e) {
    case OK:
        return EXIT_DONE;
    case ERR_INPUT:
        return EXIT_INPUT;
    case ERR_NUMBER:
        return EXIT_NUMBER;
    case ERR_PEER:
    case ERR_PROTOCOL:
        return EXIT_LOST_PEER;
    case ERR_LOST:
        return EXIT_LOST_DEVICE;
    case ERR_TIMEOUT:
        return EXIT_TIMEOUT;
    case ERR_STOPPED:
        return EXIT_TERMINATED;
    case ERR_MEMORY:
    case ERR_IO:
    case ERR_DEVICE:
        break;
    }
    return EXIT_FAILED;
}
