/* A rig for UrlFilter: its list, and segments with requests. */
#pragma once

#include "tests/support.h"

#define MOST_TEXT 2000

/* Write a text to a file, which the caller removes; its path is written to `path`. */
void url_list_write(char path[64], const char *text);

/*
 * A filter with this list, and another setting unless its name is NULL; it follows no streams unless
 * that is `streams`.
 */
void url_filter_make(struct rig *rig, const char *text, const char *setting, double value);

/* A segment of TCP with these bytes. */
struct packet_spec url_segment(const void *payload, size_t length);

/* Whether a segment with these bytes passes. */
bool url_bytes_pass(struct rig *rig, const void *bytes, size_t length);
bool url_text_passes(struct rig *rig, const char *text);

/* Whether a request for a target at a host passes. */
bool url_request_passes(struct rig *rig, const char *host, const char *target);

/* A ClientHello of TLS 1.2 with session, ciphers, another extension and a server name. */
size_t client_hello(uint8_t *bytes, const char *name);
