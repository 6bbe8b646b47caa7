/* Reads HTTP/1 requests (RFC 9112) and TLS handshakes (RFC 8446), as far as a segment has them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum request_kind {
	REQUEST_NONE,       /* something else */
	REQUEST_HTTP,       /* a whole HTTP request */
	REQUEST_TLS,        /* a ClientHello with a server name */
	REQUEST_INCOMPLETE, /* one of these, which goes on behind the segment's end */
};

#define REQUEST_MOST_HOSTS 4

/* A part of the segment. */
struct piece {
	const char *at;
	size_t length;
};

struct request {
	enum request_kind kind;
	struct piece target; /* from the path on; empty in TLS */
	/* of an absolute target, and of Host fields; a sound request has one of each at most */
	struct piece hosts[REQUEST_MOST_HOSTS];
	uint8_t n_hosts;
	size_t end; /* offset of the next request, if this one has no body; else 0 */
};

/* The request with which bytes of a segment begin. */
struct request request_read(const char *bytes, size_t length);
