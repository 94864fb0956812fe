/* s3_list.h - lists of objects as S3 writes them: XML, in pages. */
#ifndef NET_WEB_S3_LIST_H
#define NET_WEB_S3_LIST_H

#include "net/web/list.h"

web_list_taker s3_list_take;

#endif
