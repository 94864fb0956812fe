/* cudnn_version.c - what a library that calls itself cuDNN says of its version; FAKE_CUDNN_MAJOR is
 * the one it says it is of. */
#include <stdlib.h>

enum { SUCCESS = 0, OUT_OF_BOUND = 2005 };

int cudnnGetProperty(int property, int *ret);

int cudnnGetProperty(int property, int *ret)
{
    const char *major = getenv("FAKE_CUDNN_MAJOR");
    const int version[3] = {major ? atoi(major) : 9, 7, 3};
    if (property < 0 || property > 2) return OUT_OF_BOUND;
    *ret = version[property];
    return SUCCESS;
}
