/* aws_keys.h - who asks, as the tools of Amazon find it: the environment, the files below
 * ~/.aws, a role. */
#ifndef NET_WEB_S3_AWS_KEYS_H
#define NET_WEB_S3_AWS_KEYS_H

#include "net/web/s3/aws_sign.h"

/* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_DEFAULT_REGION,
 * AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL; what they do not say is looked for in the profile
 * AWS_PROFILE ("default") of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and AWS_CONFIG_FILE
 * (~/.aws/config), but for a pod with a role (aws_role.h), and then the role of a container or a
 * machine. No keys: nothing is signed, as public buckets want it. ERR_INPUT: half of a pair
 * of keys, or a profile that was asked for is
 * nowhere; ERR_IO: a role that is named is not given. */
err aws_keys_find(struct aws_keys *ret);

#endif
