/* page.h - what / of --http answers: a page without anything from outside, made of page.html. */
#ifndef CMD_RUN_PAGE_H
#define CMD_RUN_PAGE_H

#include <stddef.h>

extern const char page_html[]; /* not terminated */
extern const size_t page_bytes;

#endif
