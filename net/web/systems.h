/* systems.h - file systems behind URLs. */
#ifndef NET_WEB_SYSTEMS_H
#define NET_WEB_SYSTEMS_H

/* Registers all of them, once, at start. In a build without libcurl they say so when they are
 * asked. */
void web_systems_register(void);

/* "libcurl/7.88.1 ..."; "": this build has none. */
const char *web_systems_version(void);

#endif
