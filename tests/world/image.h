/* image.h - the program as it is in memory before main(), several times. */
#ifndef TESTS_WORLD_IMAGE_H
#define TESTS_WORLD_IMAGE_H

#include <stddef.h>

enum { IMAGES_MAX = 24 };

struct process;

struct image {
    int (*start)(int argc, char **argv);
    const char *code, *code_end; /* all of it */
    char *data;                  /* what it may change */
    size_t data_bytes;
    char *fresh;
    char *tls; /* of the one thread of the system */
    size_t tls_bytes;
    struct process *owner; /* NULL: nobody is in it */
};

void images_load(const char *library, int count); /* ends the process where one cannot be had */
struct image *image_take(struct process *);       /* as fresh as it was; NULL: too many processes */

#endif
