#include "functions/url_filter/request.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <rte_common.h>

#include "functions/url_filter/url.h"

#define LONGEST_METHOD 20

/* The line at `at` without its end, and where the next one begins; 0 if it does not end. */
static size_t next_line(const char *bytes, size_t length, size_t at, struct piece *line)
{
	const char *end = memchr(bytes + at, '\n', length - at);

	line->at = bytes + at;
	line->length = (size_t)((end ? end : bytes + length) - line->at);
	if (!end)
		return 0;
	if (line->length > 0 && line->at[line->length - 1] == '\r')
		line->length--;
	return (size_t)(end - bytes) + 1;
}

static struct piece trimmed(struct piece text)
{
	while (text.length > 0 && (text.at[0] == ' ' || text.at[0] == '\t')) {
		text.at++;
		text.length--;
	}
	while (text.length > 0 &&
	       (text.at[text.length - 1] == ' ' || text.at[text.length - 1] == '\t'))
		text.length--;
	return text;
}

/* The length of the method with which a line begins, which is in upper case; 0 if none does. */
static size_t method_of(const char *bytes, size_t length)
{
	size_t n = 0;

	while (n < length && n < LONGEST_METHOD && bytes[n] >= 'A' && bytes[n] <= 'Z')
		n++;
	return n < length && bytes[n] == ' ' ? n : 0;
}

/* Whether a method is one that HTTP itself has, so that a line without its end is taken for HTTP.
 */
static bool is_known(const char *method, size_t length)
{
	static const char *const known[] = {"GET",     "HEAD",    "POST",  "PUT",  "DELETE",
					    "CONNECT", "OPTIONS", "TRACE", "PATCH"};

	for (unsigned int i = 0; i < RTE_DIM(known); i++)
		if (strlen(known[i]) == length && memcmp(known[i], method, length) == 0)
			return true;
	return false;
}

/*
 * Read a target: an absolute URL and that of CONNECT begin with a host, which precedes that of the
 * Host field; a path and the asterisk of OPTIONS have none (RFC 9112, section 3.2).
 */
static void read_target(struct request *request, struct piece target)
{
	const size_t begin = url_authority(target.at, target.length);
	const bool asterisk = target.length == 1 && target.at[0] == '*';
	size_t end = begin;

	if (begin > 0 || (target.length > 0 && target.at[0] != '/' && !asterisk)) {
		while (end < target.length && target.at[end] != '/' && target.at[end] != '?')
			end++;
		request->hosts[request->n_hosts++] = (struct piece){target.at + begin, end - begin};
	}
	request->target = (struct piece){target.at + end, target.length - end};
}

/* Read the request line; false if it is not one of HTTP/1. */
static bool read_first_line(struct piece line, size_t method, struct request *request)
{
	static const char version[] = " HTTP/1.";
	const size_t end = sizeof(version) - 1 + 1; /* and one digit */

	if (line.length < method + 1 + end ||
	    memcmp(line.at + line.length - end, version, end - 1) != 0 ||
	    !isdigit((unsigned char)line.at[line.length - 1]))
		return false;
	read_target(request, trimmed((struct piece){line.at + method, line.length - end - method}));
	return true;
}

static bool has_name(struct piece line, const char *name)
{
	const size_t length = strlen(name);
	struct piece behind;

	if (line.length < length || strncasecmp(line.at, name, length) != 0)
		return false;
	behind = trimmed((struct piece){line.at + length, line.length - length});
	return behind.length > 0 && behind.at[0] == ':';
}

static void add_host(struct request *request, struct piece line)
{
	const char *colon = memchr(line.at, ':', line.length);

	if (request->n_hosts == REQUEST_MOST_HOSTS)
		return;
	request->hosts[request->n_hosts++] =
		trimmed((struct piece){colon + 1, line.length - (size_t)(colon + 1 - line.at)});
}

/* Read the fields up to the empty line; the request is incomplete without it. */
static void read_fields(const char *bytes, size_t length, size_t at, struct request *request)
{
	bool has_body = false;
	struct piece line;

	request->kind = REQUEST_INCOMPLETE;
	while (at > 0 && at < length) {
		at = next_line(bytes, length, at, &line);
		if (at == 0)
			return;
		if (line.length == 0) {
			request->kind = REQUEST_HTTP;
			request->end = has_body ? 0 : at;
			return;
		}
		if (has_name(line, "Host"))
			add_host(request, line);
		has_body = has_body || has_name(line, "Content-Length") ||
			   has_name(line, "Transfer-Encoding");
	}
}

static struct request read_http(const char *bytes, size_t length)
{
	struct request request = {.kind = REQUEST_NONE, .target = {"", 0}};
	struct piece line;
	size_t at = 0, method, next;

	/* empty lines may come before a request (RFC 9112, section 2.2) */
	while (at < length && (bytes[at] == '\r' || bytes[at] == '\n'))
		at++;
	method = method_of(bytes + at, length - at);
	if (method == 0)
		return request;
	next = next_line(bytes, length, at, &line);
	if (next == 0 && is_known(bytes + at, method))
		request.kind = REQUEST_INCOMPLETE;
	if (next > 0 && read_first_line(line, method, &request))
		read_fields(bytes, length, next, &request);
	return request;
}

/* Bytes of a handshake in the segment; `missing`: more were wanted. */
struct reader {
	const uint8_t *at;
	size_t here;
	bool missing;
};

static uint32_t take_number(struct reader *reader, size_t bytes)
{
	uint32_t number = 0;

	if (reader->here < bytes) {
		reader->missing = true;
		return 0;
	}
	for (size_t i = 0; i < bytes; i++)
		number = number << 8 | reader->at[i];
	reader->at += bytes;
	reader->here -= bytes;
	return number;
}

static void skip(struct reader *reader, size_t bytes)
{
	if (reader->here < bytes) {
		reader->missing = true;
		return;
	}
	reader->at += bytes;
	reader->here -= bytes;
}

/* Up to the extensions: versions, random, session, ciphers, compression (RFC 8446, 4.1.2). */
static uint32_t skip_to_extensions(struct reader *reader)
{
	skip(reader, 2 + 32);
	skip(reader, take_number(reader, 1));
	skip(reader, take_number(reader, 2));
	skip(reader, take_number(reader, 1));
	return take_number(reader, 2);
}

/* The host name in a server name extension (RFC 6066, section 3). */
static struct piece read_server_name(struct reader *reader)
{
	const struct piece none = {NULL, 0};
	uint32_t type, length;

	take_number(reader, 2); /* length of the list, which has one name */
	type = take_number(reader, 1);
	length = take_number(reader, 2);
	if (reader->missing || type != 0)
		return none;
	reader->missing = length > reader->here;
	return reader->missing ? none : (struct piece){(const char *)reader->at, length};
}

#define RECORD 5 /* bytes of a record's header */

/*
 * The handshake in a segment, `*n` bytes: a message may be cut into several records (RFC 8446,
 * section 5.1), which are joined in memory that the next call uses again.
 */
static const uint8_t *handshake_of(const char *segment, size_t length, size_t *n)
{
	static __thread uint8_t joined[UINT16_MAX];
	const uint8_t *bytes = (const uint8_t *)segment;
	size_t at = 0, records = 0;

	*n = 0;
	while (at + RECORD <= length && bytes[at] == 22 && bytes[at + 1] == 3) {
		const size_t size = (size_t)bytes[at + 3] << 8 | bytes[at + 4];
		const size_t here = RTE_MIN(size, length - at - RECORD);

		if (records == 0 && (here < size || at + RECORD + size == length)) {
			*n = here; /* nearly always: one record, as it is */
			return bytes + RECORD;
		}
		if (*n + here > sizeof(joined))
			break;
		memcpy(joined + *n, bytes + at + RECORD, here);
		*n += here;
		records++;
		at += RECORD + size;
	}
	return joined;
}

static struct request read_tls(const char *bytes, size_t length)
{
	struct request request = {.kind = REQUEST_NONE, .target = {"", 0}};
	struct reader reader = {0};
	uint32_t left;

	if (length > 1 && bytes[1] != 3)
		return request;
	reader.at = handshake_of(bytes, length, &reader.here);
	if (reader.here == 0) { /* a record that goes on, or has nothing */
		request.kind = REQUEST_INCOMPLETE;
		return request;
	}
	if (reader.at[0] != 1) /* no ClientHello */
		return request;
	skip(&reader, 4);
	left = skip_to_extensions(&reader);
	while (!reader.missing && left >= 4) {
		const uint32_t type = take_number(&reader, 2), size = take_number(&reader, 2);

		if (type == 0 && !reader.missing) {
			request.hosts[0] = read_server_name(&reader);
			request.n_hosts = request.hosts[0].at != NULL;
			break;
		}
		skip(&reader, size);
		left -= RTE_MIN(left, 4 + size);
	}
	if (request.n_hosts > 0)
		request.kind = REQUEST_TLS;
	else if (reader.missing)
		request.kind = REQUEST_INCOMPLETE;
	return request;
}

struct request request_read(const char *bytes, size_t length)
{
	if (length > 0 && bytes[0] == 22)
		return read_tls(bytes, length);
	return read_http(bytes, length);
}
