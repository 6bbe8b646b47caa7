/* Brings hosts and paths to one form, in which equal ones have equal bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "functions/url_filter/table.h"

#define URL_LONGEST_PATH 4096

/*
 * A host in lower case, without user, port or a dot at its end. Returns its length; 0 if there is
 * none or it is longer than a host can be.
 */
size_t url_host(const char *authority, size_t length, char host[URL_LONGEST_HOST]);

/*
 * The path of a request's target, without its query: unreserved characters are not encoded, `.`,
 * `..` and empty segments are resolved (RFC 3986, section 6.2.2), and there is no slash at its end,
 * so the root is empty. False if it is too long.
 */
bool url_path(const char *target, size_t length, char path[URL_LONGEST_PATH], size_t *path_length);

/* Where the authority of an absolute URL begins, behind `http://` or `https://`; 0 if it is not. */
size_t url_authority(const char *url, size_t length);
