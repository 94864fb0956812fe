/* rest.h - the REST interface of TensorFlow Serving, so that its clients need only another address.
 *
 *     GET  /v1/models/NAME[/versions/N]             which versions there are
 *     GET  /v1/models/NAME[/versions/N]/metadata    inputs and outputs
 *     POST /v1/models/NAME[/versions/N]:predict     also :classify and :regress
 *          /v1/models/NAME/labels/LABEL...          the same of the version that has this label
 *     GET  /healthz, /readyz, /metrics
 *
 * What is wrong is {"error": "..."}, with the status that TensorFlow Serving gives it.
 */
#ifndef CMD_SERVE_REST_H
#define CMD_SERVE_REST_H

#include <stdatomic.h>

#include "cmd/serve/models_file.h"
#include "cmd/serve/served.h"
#include "net/http_server.h"

enum { ANSWER_NUMBERS_MAX = 1 << 24 }; /* of one request: rows times what heads say of each */

struct rest {
    struct served *models[MODELS_MAX];
    int count;
    bool is_named; /* there may be several: what is counted has the name of its model */
    int64_t rows_max;
    atomic_bool is_ending;
};

/* As http_server.h calls it; context: a struct rest */
void rest_handle(void *rest, const struct http_request *, struct http_reply *ret);
void rest_refuse(int status, const char *text, struct http_reply *ret);

#endif
