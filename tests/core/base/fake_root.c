/* fake_root.c - see fake_root.h. */
#include "tests/core/base/fake_root.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

char fake_root[] = "/tmp/dtrain-test-XXXXXX";

int fake_root_begin(void **state)
{
    strcpy(fake_root + strlen(fake_root) - 6, "XXXXXX");
    return !mkdtemp(fake_root);
}

int fake_root_end(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", fake_root);
    return system(command);
}

void fake_root_put(const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", fake_root, path);
    for (char *at = name + strlen(fake_root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(name, 0700);
        *at = '/';
    }
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}
