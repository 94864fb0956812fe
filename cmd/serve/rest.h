/* rest.h - TensorFlow Serving's REST interface, so that its clients need only another address.
 *
 *     GET  /v1/models/NAME[/versions/N]             lists versions
 *     GET  /v1/models/NAME[/versions/N]/metadata    inputs and outputs
 *     POST /v1/models/NAME[/versions/N]:predict     also :classify and :regress
 *          /v1/models/NAME/labels/LABEL...          the same for the version with this label
 *     GET  /healthz, /readyz, /metrics
 *
 * Errors are {"error": "..."}, with TensorFlow Serving's status codes.
 */
#ifndef CMD_SERVE_REST_H
#define CMD_SERVE_REST_H

#include <stdatomic.h>

#include "cmd/serve/models_file.h"
#include "cmd/serve/served.h"
#include "net/http_server.h"

enum { ANSWER_NUMBERS_MAX = 1 << 24 }; /* per request: rows times outputs per row */

struct rest {
    struct served *models[MODELS_MAX];
    int count;
    bool is_named; /* several models: counters have the name of theirs */
    int64_t rows_max;
    atomic_bool is_ending;
};

/* Handlers for http_server.h; rest: a struct rest */
void rest_handle(void *rest, const struct http_request *, struct http_reply *ret);
void rest_refuse(int status, const char *text, struct http_reply *ret);

#endif
