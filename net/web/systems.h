/* systems.h - file systems behind URLs. */
#ifndef NET_WEB_SYSTEMS_H
#define NET_WEB_SYSTEMS_H

/* Registers all of them; to be called once at start. Does nothing in a build without libcurl. */
void web_systems_register(void);

/* Version of the library `what`, which they need: "7.88.1"; "": not installed; NULL: built without.
 */
enum web_library { WEB_CURL, WEB_CRYPTO, WEB_EXPAT };
const char *web_library_version(enum web_library what);

#endif
