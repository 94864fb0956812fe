/* jpeg_none.c - if the program is built without libjpeg: see image.h. */
#include "core/data/images/image.h"

static const char *version(void)
{
    return NULL;
}

const struct picture_kind picture_jpeg = {"JPEG", "libjpeg", "libjpeg62-turbo-dev", NULL, version};
