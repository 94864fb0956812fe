/* page.h - the page that --http serves at /, made of page.html; it loads nothing from elsewhere. */
#ifndef CMD_RUN_PAGE_H
#define CMD_RUN_PAGE_H

#include <stddef.h>

extern const char page_html[]; /* not terminated */
extern const size_t page_bytes;

#endif
