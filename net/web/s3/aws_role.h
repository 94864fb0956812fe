/* aws_role.h - keys that Amazon lends for some hours to the role of a pod, a container or a
 * machine:
 *
 *     AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN
 *         of a service account of Kubernetes (IRSA): asked of STS (AWS_ENDPOINT_URL_STS, or the
 *         region's)
 *     AWS_CONTAINER_CREDENTIALS_FULL_URI, _RELATIVE_URI
 *         of ECS, and of EKS Pod Identity, with AWS_CONTAINER_AUTHORIZATION_TOKEN or its _FILE
 *     neither
 *         of an EC2 instance, by its metadata (version 2, at AWS_EC2_METADATA_SERVICE_ENDPOINT,
 *         unless AWS_EC2_METADATA_DISABLED is true)
 *
 * Kept by the process, and renewed AWS_ROLE_EARLY_S before they expire.
 */
#ifndef NET_WEB_S3_AWS_ROLE_H
#define NET_WEB_S3_AWS_ROLE_H

#include <stdbool.h>

#include "net/web/s3/aws_sign.h"

enum {
    AWS_ROLE_EARLY_S = 300,
    AWS_ROLE_MACHINE_S = 2, /* timeout for the metadata server, which exists only on EC2 */
};

bool aws_role_is_of_pod(void); /* the first case above */
/* Sets id, secret and token of `keys`, whose region is set; id "": no role. asks_machine: also try
 * the EC2 metadata. ERR_INPUT, ERR_IO: a named role gives no keys. */
err aws_role_keys(struct aws_keys *keys, bool asks_machine);
/* Why it gave no keys, for messages */
const char *aws_role_none(void);

#endif
