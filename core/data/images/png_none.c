/* png_none.c - if the program is built without libpng: see image.h. */
#include "core/data/images/image.h"

static const char *version(void)
{
    return NULL;
}

const struct picture_kind picture_png = {"PNG", "libpng", "libpng-dev", NULL, version};
