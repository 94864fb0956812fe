/* systems.h - file systems behind URLs. */
#ifndef NET_WEB_SYSTEMS_H
#define NET_WEB_SYSTEMS_H

/* Registers all of them, once, at start; none in a build without libcurl. */
void web_systems_register(void);

/* Of the libraries that they need, by `what`: "7.88.1"; "": it is not installed; NULL: not built
 * in. */
enum web_library { WEB_CURL, WEB_CRYPTO, WEB_EXPAT };
const char *web_library_version(enum web_library what);

#endif
