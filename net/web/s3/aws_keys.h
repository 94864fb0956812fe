/* aws_keys.h - finds AWS credentials as Amazon's tools do: environment, files in ~/.aws, a role. */
#ifndef NET_WEB_S3_AWS_KEYS_H
#define NET_WEB_S3_AWS_KEYS_H

#include "net/web/s3/aws_sign.h"

/* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_DEFAULT_REGION,
 * AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL; what they do not say is looked for in the profile
 * AWS_PROFILE ("default") of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and AWS_CONFIG_FILE
 * (~/.aws/config), except in a pod with a role (aws_role.h), and then from the role of a container
 * or a machine. No keys: requests are not signed, as for public buckets. ERR_INPUT: only half of a
 * pair of keys, or AWS_PROFILE is not found; ERR_IO: a named role gives no keys. */
err aws_keys_find(struct aws_keys *ret);

#endif
