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

/* Whether servers may take a byte between parts of a request line for a space (RFC 9112, 3). */
static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
}

static bool is_of_token(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

/*
 * The length of the method with which a line begins, a token that begins with a capital as all
 * registered ones do (RFC 9110, 5.6.2 and 16.1.1); 0 if none does.
 */
static size_t method_of(const char *bytes, size_t length, bool *ends)
{
	size_t n = 0;

	while (n < length && n < LONGEST_METHOD &&
	       ((bytes[n] >= 'A' && bytes[n] <= 'Z') || bytes[n] == '_' || bytes[n] == '-' ||
		(n > 0 && is_of_token(bytes[n]))))
		n++;
	*ends = n == length;
	return n < length && is_blank(bytes[n]) ? n : 0;
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
	static const char version[] = "HTTP/1.";
	const size_t end = sizeof(version) - 1 + 1; /* and one digit */
	struct piece target = {line.at + method, 0};
	const char *at;

	while (line.length > 0 && is_blank(line.at[line.length - 1]))
		line.length--;
	if (line.length < method + 1 + end)
		return false;
	at = line.at + line.length - end;
	if (!is_blank(at[-1]) || memcmp(at, version, end - 1) != 0 ||
	    !isdigit((unsigned char)at[end - 1]))
		return false;
	target.length = (size_t)(at - target.at);
	while (target.length > 0 && is_blank(target.at[0])) {
		target.at++;
		target.length--;
	}
	while (target.length > 0 && is_blank(target.at[target.length - 1]))
		target.length--;
	read_target(request, target);
	return true;
}

/* Whether a line is a field of this name; `*value` is then its value. */
static bool has_name(struct piece line, const char *name, struct piece *value)
{
	const size_t length = strlen(name);

	if (line.length < length || strncasecmp(line.at, name, length) != 0)
		return false;
	*value = trimmed((struct piece){line.at + length, line.length - length});
	if (value->length == 0 || value->at[0] != ':')
		return false;
	*value = trimmed((struct piece){value->at + 1, value->length - 1});
	return true;
}

static void add_host(struct request *request, struct piece host)
{
	if (request->n_hosts == REQUEST_MOST_HOSTS)
		request->n_hosts--;
	request->hosts[request->n_hosts++] = host;
}

/* Whether the last transfer coding is the one that says where a body ends. */
static bool ends_chunked(struct piece value)
{
	static const char chunked[] = "chunked";
	const size_t n = sizeof(chunked) - 1;
	const char *at = value.at + value.length - n;

	return value.length >= n && strncasecmp(at, chunked, n) == 0 &&
	       (value.length == n || at[-1] == ',' || is_blank(at[-1]));
}

/* Note a Content-Length; other ones than a number, or two that differ, are unclear. */
static void add_length(struct request *request, struct piece value, bool *has_length)
{
	uint64_t number = 0;

	request->unclear |= value.length == 0 || value.length > 18;
	for (size_t i = 0; i < value.length && i < 18; i++) {
		request->unclear |= !isdigit((unsigned char)value.at[i]);
		number = number * 10 + (uint64_t)(value.at[i] - '0');
	}
	request->unclear |= request->chunked || (*has_length && number != request->body);
	request->body = number;
	*has_length = true;
}

/*
 * Read the fields up to the empty line; the request is incomplete without it. A line that begins
 * with a blank goes on with the value of the one before it (RFC 9112, 5.2).
 */
static void read_fields(const char *bytes, size_t length, size_t at, struct request *request)
{
	bool has_length = false, is_host = false;
	struct piece line, value;

	request->kind = REQUEST_INCOMPLETE;
	while (at > 0 && at < length) {
		at = next_line(bytes, length, at, &line);
		if (at == 0)
			return;
		if (line.length == 0) {
			request->kind = REQUEST_HTTP;
			request->end = at;
			return;
		}
		if (line.at[0] == ' ' || line.at[0] == '\t') {
			if (is_host)
				add_host(request, trimmed(line));
			continue;
		}
		is_host = false;
		switch (line.at[0] | 32) { /* few lines are compared */
		case 'h':
			is_host = has_name(line, "Host", &value);
			if (is_host)
				add_host(request, value);
			break;
		case 'c':
			if (has_name(line, "Content-Length", &value))
				add_length(request, value, &has_length);
			break;
		case 't':
			if (has_name(line, "Transfer-Encoding", &value)) {
				request->unclear |= has_length || request->chunked ||
						    !ends_chunked(value);
				request->chunked = true;
			}
		}
	}
}

size_t request_read_chunk(const char *bytes, size_t length, uint64_t *size)
{
	struct piece line;
	const size_t next = next_line(bytes, length, 0, &line);
	size_t digits = 0;

	*size = 0;
	while (digits < line.length && isxdigit((unsigned char)line.at[digits])) {
		const char c = line.at[digits++];

		*size = *size << 4 | (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
	}
	if (digits > 7 || (digits < line.length && line.at[digits] != ';' && !is_blank(line.at[digits])))
		return SIZE_MAX;
	return next > 0 && digits == 0 ? SIZE_MAX : next;
}

size_t request_skip_trailers(const char *bytes, size_t length)
{
	struct piece line = {bytes, 1};
	size_t at = 0;

	while (at < length && line.length > 0) {
		at = next_line(bytes, length, at, &line);
		if (at == 0)
			return 0;
	}
	return line.length == 0 ? at : 0;
}

static struct request read_http(const char *bytes, size_t length, bool begun)
{
	struct request request = {.kind = REQUEST_NONE, .target = {"", 0}};
	struct piece line;
	size_t at = 0, method, next;
	bool ends;

	/* empty lines may come before a request (RFC 9112, section 2.2) */
	while (at < length && (bytes[at] == '\r' || bytes[at] == '\n'))
		at++;
	method = method_of(bytes + at, length - at, &ends);
	if (method == 0) {
		request.kind = begun && ends ? REQUEST_INCOMPLETE : REQUEST_NONE;
		return request;
	}
	next = next_line(bytes, length, at, &line);
	if (next == 0 && (begun || is_known(bytes + at, method)))
		request.kind = REQUEST_INCOMPLETE;
	if (next > 0 && read_first_line(line, method, &request)) {
		read_fields(bytes, length, next, &request);
		/* its content has no meaning (RFC 9110, 9.3.6): what follows may be a tunnel's */
		if ((request.body > 0 || request.chunked) && method == 7 &&
		    memcmp(bytes + at, "CONNECT", 7) == 0)
			request.unclear = true;
	}
	return request;
}

/* Bytes of a handshake; `missing`: more were wanted. */
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

/*
 * Up to the extensions: version, random, session, ciphers, compression (RFC 8446, 4.1.2). Some servers
 * look neither at the version, where an extension has others, nor at the session's length.
 */
static uint32_t skip_to_extensions(struct reader *reader)
{
	skip(reader, 2 + 32);
	skip(reader, take_number(reader, 1));
	skip(reader, take_number(reader, 2));
	skip(reader, take_number(reader, 1));
	return take_number(reader, 2);
}

/* The host names of a server name extension (RFC 6066, section 3): servers pass over other types. */
static void read_server_names(struct reader *reader, struct request *request)
{
	uint32_t left = take_number(reader, 2);

	while (!reader->missing && left >= 3) {
		const uint32_t type = take_number(reader, 1), length = take_number(reader, 2);
		const char *name = (const char *)reader->at;

		if (reader->missing || (type != 0 && 3 + length >= left))
			return;
		skip(reader, length);
		if (type == 0 && !reader->missing)
			add_host(request, (struct piece){name, length});
		left -= RTE_MIN(left, 3 + length);
	}
}

/* Read the extensions; whether early data may follow. Servers pass over ones they do not know. */
static bool read_extensions(struct reader *reader, struct request *request)
{
	uint32_t left = skip_to_extensions(reader);
	bool early = false;

	while (!reader->missing && left >= 4) {
		const uint32_t type = take_number(reader, 2), size = take_number(reader, 2);
		struct reader names = *reader;

		if (type == 0 && !reader->missing) {
			read_server_names(&names, request);
			reader->missing |= names.missing;
			request->named |= !names.missing;
		}
		early |= type == 42;
		skip(reader, size);
		left -= RTE_MIN(left, 4 + size);
	}
	return early;
}

bool request_passes_over(const uint8_t *record, bool early)
{
	return (record[3] == 0 &&
		((record[0] == 20 && record[4] == 1) || (record[0] == 21 && record[4] == 2))) ||
	       (early && record[0] == REQUEST_TLS_DATA);
}

/*
 * The handshake in bytes of a stream, `*n` bytes: a message may be cut into several records (RFC
 * 8446, section 5.1), which are joined in memory that the next call uses again. Servers do not look
 * at the version of the first one. `*end` is behind the last record, 0 if that goes on.
 */
static const uint8_t *handshake_of(const char *segment, size_t length, size_t *n, size_t *end)
{
	static __thread uint8_t joined[UINT16_MAX];
	const uint8_t *bytes = (const uint8_t *)segment;
	size_t at = 0;
	bool first = true;

	*n = 0;
	while (at + REQUEST_TLS_RECORD <= length &&
	       (bytes[at] == REQUEST_TLS_HANDSHAKE || request_passes_over(bytes + at, false))) {
		const size_t size = (size_t)bytes[at + 3] << 8 | bytes[at + 4];
		const size_t left = length - at - REQUEST_TLS_RECORD;
		const size_t here = bytes[at] == REQUEST_TLS_HANDSHAKE ? RTE_MIN(size, left) : 0;

		*end = size <= left ? at + REQUEST_TLS_RECORD + size : 0;
		if (first && bytes[at] == REQUEST_TLS_HANDSHAKE && size >= left) {
			*n = here; /* nearly always: one record, as it is */
			return bytes + REQUEST_TLS_RECORD;
		}
		if (*n + here > sizeof(joined))
			break;
		memcpy(joined + *n, bytes + at + REQUEST_TLS_RECORD, here);
		*n += here;
		first = false;
		at += REQUEST_TLS_RECORD + size;
	}
	return joined;
}

/* Read a handshake: nearly always one message, a ClientHello, behind which another one may follow.
 */
static struct request read_tls(const char *bytes, size_t length, bool begun)
{
	struct request request = {.kind = REQUEST_NONE, .target = {"", 0}};
	size_t n, end = 0, at = 0;
	const uint8_t *message = handshake_of(bytes, length, &n, &end);
	struct reader reader = {.missing = n == 0}; /* a record that goes on, or has nothing */

	while (at < n && !reader.missing) {
		reader = (struct reader){.at = message + at, .here = n - at};
		if (reader.at[0] != 1 || (reader.here > 1 && reader.at[1] > 2)) {
			if (at == 0)
				return request; /* none that servers take */
			break;
		}
		skip(&reader, 1);
		at += 4 + take_number(&reader, 3);
		request.early |= read_extensions(&reader, &request);
	}
	if (at > n || reader.missing)
		end = 0;
	request.end = end;
	if (request.n_hosts > 0 || request.named || end > 0)
		request.kind = REQUEST_TLS;
	else if (n > 0 || bytes[0] == REQUEST_TLS_HANDSHAKE)
		request.kind = REQUEST_INCOMPLETE;
	else if (begun) /* of no handshake so far, of which more is wanted */
		request.kind = REQUEST_TLS;
	return request;
}

struct request request_read(const char *bytes, size_t length, bool begun)
{
	if (length > 0 && (bytes[0] == REQUEST_TLS_HANDSHAKE || bytes[0] == 20 || bytes[0] == 21) &&
	    (bytes[0] == REQUEST_TLS_HANDSHAKE ||
	     (length < REQUEST_TLS_RECORD ? begun
					  : request_passes_over((const uint8_t *)bytes, false))))
		return read_tls(bytes, length, begun);
	return read_http(bytes, length, begun);
}
