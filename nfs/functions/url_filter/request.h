/* Reads HTTP/1 requests (RFC 9112) and TLS handshakes (RFC 8446), as far as their bytes are there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum request_kind {
	REQUEST_NONE,       /* something else */
	REQUEST_HTTP,       /* a whole HTTP request */
	REQUEST_TLS,        /* a ClientHello with a server name, or a whole one */
	REQUEST_INCOMPLETE, /* one of these, which goes on behind the last byte */
};

#define REQUEST_MOST_HOSTS 4
#define REQUEST_TLS_RECORD 5     /* bytes of a record's header */
#define REQUEST_TLS_HANDSHAKE 22 /* types of records */
#define REQUEST_TLS_DATA 23

/* A part of the bytes. */
struct piece {
	const char *at;
	size_t length;
};

struct request {
	enum request_kind kind;
	struct piece target; /* from the path on; empty in TLS */
	/* of an absolute target, and of Host fields; a sound request has one of each at most */
	struct piece hosts[REQUEST_MOST_HOSTS]; /* of more than these, the last one is there */
	uint8_t n_hosts;
	size_t end;    /* of the fields of a whole request, or of a whole handshake's records */
	uint64_t body; /* bytes behind the fields */
	bool chunked;  /* the body has chunks instead (RFC 9112, 7.1) */
	bool named;    /* the server name extension of a handshake has come */
	bool early;    /* records of early data may follow the handshake (RFC 8446, 4.2.10) */
	bool unclear;  /* servers do not agree where the next request begins (RFC 9112, 6.3) */
};

/* Whether a request or a handshake, or what may come before one, may begin with a byte. */
static inline bool request_may_begin(char byte)
{
	const uint64_t low = 1 << '\r' | 1 << '\n' | 7 << 20 | 1ULL << '-', at = (uint8_t)byte;
	const uint64_t capitals = 0x7fffffe | 1U << ('_' - 64);

	return at < 64 ? low >> at & 1 : at < 128 && capitals >> (at - 64) & 1;
}

/*
 * The request with which bytes begin. `begun`: it is known that a request begins here if it is HTTP
 * or TLS, so that bytes with which one may begin are incomplete; else they need to look like one.
 */
struct request request_read(const char *bytes, size_t length, bool begun);

/* Whether servers pass over a record before a handshake, or within: an alert, ciphers, early data.
 */
bool request_passes_over(const uint8_t *record, bool early);

/* Offset behind a chunk's size, which is read; 0: incomplete, SIZE_MAX: none (RFC 9112, 7.1). */
size_t request_read_chunk(const char *bytes, size_t length, uint64_t *size);

/* Offset behind trailer fields and the empty line; 0: incomplete (RFC 9112, 7.1.2). */
size_t request_skip_trailers(const char *bytes, size_t length);
