/* version.c - `dtrain version`: what this is made of, and which instructions it uses here. */
#include <zlib.h>

#include "cmd/cmd.h"
#include "kernels/kernels.h"

int cmd_version(int argc, char **argv)
{
    if (argc > 2)
        return report_error(fail(ERR_INPUT, "version: unexpected argument \"%.64s\"", argv[2]));
    cpu_environment_prepare(argv); /* so that the libraries choose as they do in training */
    printf("dtrain %s\n", DTRAIN_VERSION);
    printf("compiler: %s\n", DTRAIN_COMPILER);
    printf("arithmetic: %s\n", cpu_description());
    printf("libraries: jansson %s, zlib %s\n", jansson_version_str(), zlibVersion());
    return EXIT_DONE;
}
