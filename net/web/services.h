/* services.h - the inside of net/web: one constant per kind of server, in a file or room. */
#ifndef NET_WEB_SERVICES_H
#define NET_WEB_SERVICES_H

#include "net/web/web.h"

extern const struct web_service gs_service, hdfs_service, http_service, s3_service;

#endif
