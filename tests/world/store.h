/* store.h - objects of a server that answers like Amazon's S3: one for all buckets. */
#ifndef TESTS_WORLD_STORE_H
#define TESTS_WORLD_STORE_H

#include "tests/world/machine.h"

enum { STORE_HOST = HOSTS_MAX - 1, STORE_PORT = 9000 }; /* as AWS_ENDPOINT_URL has it */
#define STORE_URL "http://10.0.0.16:9000"

void store_start(void);
void store_forget_uploads(void);
/* The name of object `index` below a prefix ("bucket/folder/"), without it; NULL: no more. */
const char *store_name(const char *prefix, int index);
const char *store_bytes(const char *name, size_t *ret_count); /* NULL: no such object */

#endif
