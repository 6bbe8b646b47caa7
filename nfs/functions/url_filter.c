/*
 * UrlFilter: blocks requests to the domains and URLs of a list: HTTP/1 by host and path, TLS by the
 * server name of its ClientHello, at any TCP port. Other IP packets pass, except fragments of TCP;
 * frames that are not understood are dropped, unless `unknown`.
 *
 * Streams from inside and outside are followed from their SYN on (core/stream.h), or from a segment
 * that begins with a request which it does not end: requests are read as their server reads them,
 * whatever segments they are cut into. Of a stream that is not followed each segment is judged by
 * itself; so are those of one which is neither HTTP nor TLS, and all without `streams`. A request
 * whose host has not come yet is incomplete: it passes, or is blocked if so set. Requests over
 * HTTP/2 and QUIC, names that TLS encrypts, and the paths of requests in TLS are not seen.
 */
#include <errno.h>

#include "core/memory.h"
#include "core/nf.h"
#include "core/packet.h"
#include "core/stream.h"
#include "functions/url_filter/list.h"
#include "functions/url_filter/request.h"
#include "functions/url_filter/reset.h"

enum { LIST, URLS, SEED, BLOCK_INCOMPLETE, RESET, STREAMS, UNKNOWN };
static const struct nf_parameter parameters[] = {
	[LIST] = {"list", "file with the list; empty: a generated list", .text = ""},
	[URLS] = {"urls", "entries of a generated list", 0, 1000000, 1000},
	[SEED] = {"seed", "seed of a generated list", 0, 4294967295, 1},
	[BLOCK_INCOMPLETE] = {"block_incomplete", "1: incomplete requests are blocked", 0, 1, 0},
	[RESET] = {"reset", "1: both ends of a blocked connection get a TCP reset", 0, 1, 0},
	[STREAMS] = {"streams", "TCP streams that are followed; 0: each segment is judged by itself",
		     0, 1 << 20, 4096},
	NF_OTHER_PARAMETERS(UNKNOWN, "drop", "pass"),
};

enum {
	PASSED,
	BLOCKED,
	REQUESTS,
	HANDSHAKES,
	INCOMPLETE,
	UNCLEAR,
	DIFFERING,
	OUTSIDE,
	OVERLONG,
	UNFOLLOWED,
	FRAGMENTS,
	RESETS,
	UNBUFFERED,
	OTHER,
	MALFORMED = OTHER + 2,
};
static const struct nf_counter counters[] = {
	[PASSED] = {"passed", "IP packets sent on"},
	[BLOCKED] = {"blocked", "packets freed"},
	[REQUESTS] = {"requests", "HTTP requests with a host"},
	[HANDSHAKES] = {"handshakes", "TLS handshakes with a server name"},
	[INCOMPLETE] = {"incomplete", "packets with a request or handshake without a host so far"},
	[UNCLEAR] = {"unclear", "packets with a request whose end is ambiguous, among blocked"},
	[DIFFERING] = {"differing", "segments freed because they repeat bytes otherwise"},
	[OUTSIDE] = {"outside",
		     "segments freed that are too far from the bytes that are due, other SYNs, "
		     "urgent ones, and what has no ACK"},
	[OVERLONG] = {"overlong", "segments freed of a request of more than 8192 bytes"},
	[UNFOLLOWED] = {"unfollowed",
			"segments freed as there is no room for their stream, or it was lost"},
	[FRAGMENTS] = {"fragments", "fragments of TCP, or what may be TCP, freed"},
	[RESETS] = {"resets", "TCP resets sent"},
	[UNBUFFERED] = {"unbuffered", "TCP resets not sent without a buffer"},
	NF_OTHER_COUNTERS(OTHER),
};

struct url_filter {
	struct url_table *table;
	bool follows;
	struct streams streams;
};

static void destroy(struct nf *nf)
{
	struct url_filter *filter = nf->state;

	if (filter->follows)
		streams_destroy(&filter->streams);
	url_table_destroy(filter->table);
}

/* Requests that have come in part go on where they were. */
static void take_over(struct nf *nf, struct nf *from)
{
	struct url_filter *filter = nf->state, *before = from->state;

	streams_take_over(&filter->streams, &before->streams);
}

static int create(struct nf *nf)
{
	const uint32_t streams = (uint32_t)nf->settings[STREAMS];
	const char *file = nf->texts[LIST];
	struct url_filter *filter = nf->state;

	filter->table = file[0] ? url_list_read(nf->kind->name, file)
				: url_list_generate(nf->kind->name, (uint32_t)nf->settings[URLS],
						    (uint64_t)nf->settings[SEED]);
	if (!filter->table)
		return -EINVAL;
	filter->follows =
		streams > 0 && streams_create(&filter->streams, nf->kind->name, streams) == 0;
	filter->streams.refuses = 2;
	return streams == 0 || filter->follows ? 0 : -ENOMEM;
}

/* Whether a request is to be blocked: it is listed, or incomplete and so set. */
static bool is_blocked(struct nf *nf, const struct request *request)
{
	const struct url_filter *filter = nf->state;

	if (url_list_has(filter->table, request))
		return true;
	if (request->kind != REQUEST_INCOMPLETE || request->n_hosts > 0)
		return false;
	nf->counters[INCOMPLETE]++;
	return nf->settings[BLOCK_INCOMPLETE] == 1;
}

static void count_request(struct nf *nf, const struct request *request)
{
	if (request->n_hosts > 0)
		nf->counters[request->kind == REQUEST_TLS ? HANDSHAKES : REQUESTS]++;
}

/* Marks of a stream. */
enum {
	COUNTED = 1,  /* the request that is read */
	CHUNKS = 2,   /* a chunk's size is next */
	TRAILERS = 4, /* the lines behind the last chunk are next */
	STOPPED = 8,  /* a request is blocked: without its bytes nothing behind them is read */
	EARLY = 16,   /* records of early data may come before another ClientHello */
};

/* What reads a stream. */
struct stream_context {
	struct nf *nf;
	bool web; /* no other bytes than those of requests came */
};

/* Read a chunk's size or the trailers: false if ambiguous; `*waits` if they have not come. */
static bool read_chunks(struct nf *nf, struct stream *stream, const char *bytes, size_t n,
			bool *waits)
{
	struct url_filter *filter = nf->state;
	uint64_t size = 0;
	const size_t end = stream->mark & CHUNKS ? request_read_chunk(bytes, n, &size)
						 : request_skip_trailers(bytes, n);

	*waits = end == 0;
	if (end == SIZE_MAX) {
		nf->counters[UNCLEAR]++;
		return false;
	}
	stream->read += (uint16_t)end;
	if (*waits)
		return true;
	if (stream->mark & TRAILERS)
		stream->mark = 0;
	else if (size == 0)
		stream->mark = TRAILERS;
	else
		stream_skip(&filter->streams, stream, (uint32_t)size + 2); /* and the line's end */
	return true;
}

/* Go behind a whole request; false if servers do not agree where it ends. */
static bool pass_request(struct nf *nf, struct stream *stream, const struct request *request)
{
	struct url_filter *filter = nf->state;

	if (request->unclear || request->body > INT32_MAX / 2) {
		nf->counters[UNCLEAR]++;
		return false;
	}
	stream->read += (uint16_t)request->end;
	stream->mark = request->early ? EARLY : request->chunked ? CHUNKS : 0;
	if (!request->chunked)
		stream_skip(&filter->streams, stream, (uint32_t)request->body);
	return true;
}

/* Read the request with which unread bytes begin: false to stop; `*waits` if it has not come. */
static bool read_one(struct stream_context *reading, struct stream *stream, const char *bytes,
		     size_t n, bool *waits)
{
	struct nf *nf = reading->nf;
	struct url_filter *filter = nf->state;
	const struct request request = request_read(bytes, n, stream->begun && !stream->foreign);

	*waits = true;
	if (request.kind == REQUEST_NONE && stream->mark & EARLY && bytes[0] == REQUEST_TLS_DATA)
		return true;
	if (request.kind == REQUEST_NONE) { /* a request may begin with any segment behind it */
		reading->web = false;
		stream->mark = 0;
		stream_set_foreign(&filter->streams, stream);
		return true;
	}
	if (!(stream->mark & COUNTED))
		count_request(nf, &request);
	stream->mark = (stream->mark & EARLY) | (request.n_hosts > 0 ? COUNTED : 0);
	if (is_blocked(nf, &request))
		return false;
	*waits = request.kind == REQUEST_INCOMPLETE || request.end == 0;
	return *waits || pass_request(nf, stream, &request);
}

/* Read the requests of a stream: a stream_reader. */
static bool read_requests(void *context, struct stream *stream)
{
	struct stream_context *reading = context;
	struct nf *nf = reading->nf;
	struct url_filter *filter = nf->state;
	bool waits = false, goes_on = true;

	while (stream->read < stream->have && !waits && goes_on) {
		const char *bytes =
			(const char *)stream_bytes(&filter->streams, stream) + stream->read;
		const size_t n = stream->have - stream->read;

		if (stream->mark & (CHUNKS | TRAILERS))
			goes_on = read_chunks(nf, stream, bytes, n, &waits);
		else if (bytes[0] < ' ' && n >= REQUEST_TLS_RECORD &&
			 request_passes_over((const uint8_t *)bytes, stream->mark & EARLY))
			stream_skip(&filter->streams, stream,
				    REQUEST_TLS_RECORD + (uint8_t)bytes[3] * 256u + (uint8_t)bytes[4]);
		else
			goes_on = read_one(reading, stream, bytes, n, &waits);
	}
	stream->unfinished = stream->mark & (CHUNKS | TRAILERS);
	return goes_on;
}

/* A segment of TCP. */
struct segment {
	struct rte_mbuf *mbuf;
	const struct packet *packet;
	struct stream_segment bytes;
	bool opens; /* a SYN of the end that opens a connection */
};

static struct stream *follow(struct nf *nf, const struct segment *segment, uint32_t begin)
{
	struct url_filter *filter = nf->state;
	const struct flow_key key = packet_flow(segment->mbuf, segment->packet);

	return streams_follow(&filter->streams, &key, stream_source(segment->mbuf, segment->packet),
			      begin, segment->opens, nf->now_us);
}

/* Follow a stream, which may be known to be foreign, from a request on; returns its counter. */
static int follow_request(struct nf *nf, struct stream *stream, const struct segment *segment,
			  size_t at, const struct request *request)
{
	const struct url_filter *filter = nf->state;
	const uint16_t n = (uint16_t)(segment->bytes.length - at);
	const uint32_t begin = segment->bytes.sequence + (uint32_t)at;

	if (stream && stream->skipped_at + n > STREAM_BYTES)
		return OVERLONG;
	if (stream && !stream_move(stream, begin))
		return OUTSIDE;
	if (!stream)
		stream = follow(nf, segment, begin);
	if (!stream)
		return UNFOLLOWED;
	memcpy(stream_bytes(&filter->streams, stream) + stream->have, segment->bytes.bytes + at, n);
	stream->have += n;
	stream->mark = request->n_hosts > 0 ? COUNTED : 0;
	return PASSED;
}

/*
 * Judge a segment by itself, and follow its stream, if so set, from a request on that it does not
 * end; returns its counter. Empty lines before a handshake are those of what was before it.
 */
static int judge_alone(struct nf *nf, struct stream *stream, const struct segment *segment,
		       bool follows)
{
	const char *bytes = (const char *)segment->bytes.bytes;
	const size_t length = segment->bytes.length;
	struct request request = {.kind = REQUEST_HTTP};
	size_t at = 0;

	while (at < length) {
		if (!request_may_begin(bytes[at]))
			return PASSED;
		request = request_read(bytes + at, length - at, false);
		if (request.kind == REQUEST_NONE) {
			if (bytes[at] != '\r' && bytes[at] != '\n')
				return PASSED;
			while (at < length && (bytes[at] == '\r' || bytes[at] == '\n'))
				at++;
			continue;
		}
		count_request(nf, &request);
		if (is_blocked(nf, &request))
			return BLOCKED;
		if (request.kind != REQUEST_HTTP || request.chunked || request.unclear)
			break;
		at += request.end;
		at += RTE_MIN(request.body, length - at);
	}
	if (!follows || request.kind != REQUEST_INCOMPLETE || length - at > STREAM_BYTES)
		return PASSED;
	return follow_request(nf, stream, segment, at, &request);
}

/* Follow the stream that a segment opens; NULL, and its counter, if it is freed. */
static struct stream *open_stream(struct nf *nf, struct stream *stream,
				  const struct segment *segment, int *counter)
{
	if (stream && stream->origin == segment->bytes.sequence)
		return stream; /* the same again */
	if (stream && stream_ignores_syn(stream, segment->bytes.sequence, nf->now_us)) {
		*counter = OUTSIDE;
		return NULL;
	}
	*counter = UNFOLLOWED;
	return follow(nf, segment, segment->bytes.sequence);
}

/* Whether what is unread of a stream is a request that may be blocked. */
static bool is_request(const struct url_filter *filter, const struct stream *stream)
{
	return stream->begun && !stream->foreign &&
	       !(stream->mark & COUNTED &&
		 stream_bytes(&filter->streams, stream)[stream->read] == REQUEST_TLS_HANDSHAKE);
}

/* Judge a segment of a followed stream; returns its counter. */
static int judge_followed(struct nf *nf, struct stream *stream, const struct segment *segment)
{
	struct url_filter *filter = nf->state;
	struct stream_context reading = {nf, true};
	const bool foreign = stream->foreign, passed = stream_has_passed(stream, &segment->bytes);
	struct segment rest;
	bool before, skips;
	enum stream_result result =
		stream_take(&filter->streams, stream, segment->bytes, read_requests, &reading);

	if (result == STREAM_OVERLONG && !is_request(filter, stream)) {
		stream->mark = 0;
		stream_set_foreign(&filter->streams, stream);
		result = stream_take(&filter->streams, stream, segment->bytes, read_requests,
				     &reading);
	}
	switch (result) {
	case STREAM_TAKEN:
		stream->last_us = nf->now_us;
		stream->used = true;
		if (reading.web && !passed)
			return PASSED;
		rest = *segment;
		if (foreign)
			stream_cut_kept(stream, &rest.bytes);
		return judge_alone(nf, stream, &rest, foreign && stream_is_foreign(stream));
	case STREAM_DIFFERS:
		return DIFFERING;
	case STREAM_STOPPED:
		stream->mark |= STOPPED;
		return BLOCKED;
	case STREAM_OUTSIDE:
		before = segment->bytes.sequence - stream->begin > INT32_MAX;
		if (stream->begun && (!stream->foreign || before))
			return OUTSIDE;
		/* what is known of other streams than those of requests may be wrong */
		skips = stream_is_foreign(stream) && !before &&
			nf->now_us - stream->last_us >= STREAM_WAIT_US;
		if (skips)
			stream_move(stream, segment->bytes.sequence + segment->bytes.length);
		return judge_alone(nf, stream, segment, skips);
	default:
		return OVERLONG;
	}
}

/* Judge a segment of a stream, if it is followed; returns its counter. */
static int judge_stream(struct nf *nf, const struct segment *segment)
{
	struct url_filter *filter = nf->state;
	const struct flow_key key = packet_flow(segment->mbuf, segment->packet);
	struct stream *stream = streams_find(&filter->streams, &key);
	bool begins;
	int counter;

	if (unlikely(segment->opens)) {
		stream = open_stream(nf, stream, segment, &counter);
		if (!stream)
			return counter;
	}
	if (unlikely(!stream))
		return stream_is_refused(&filter->streams, &key, false, nf->now_us)
			       ? UNFOLLOWED
			       : judge_alone(nf, NULL, segment, true);
	if (unlikely(stream->mark & STOPPED))
		return BLOCKED;
	begins = segment->bytes.length == 0 || request_may_begin((char)segment->bytes.bytes[0]);
	if ((!begins || stream->skipped_at + segment->bytes.length > STREAM_BYTES) &&
	    stream_pass_foreign(stream, &segment->bytes)) {
		stream->last_us = nf->now_us;
		stream->used = true;
		return begins ? judge_alone(nf, NULL, segment, false) : PASSED;
	}
	return judge_followed(nf, stream, segment);
}

/* Judge a packet; returns its counter. */
static int judge(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet)
{
	static __thread uint8_t bytes[UINT16_MAX]; /* of a payload in several segments */
	const struct url_filter *filter = nf->state;
	const struct rte_tcp_hdr *tcp;
	struct segment segment; /* not in zeros: these take time */
	uint8_t flags;

	if (unlikely(packet->fragment)) /* a later one may be of TCP behind an extension header */
		return packet->protocol == IPPROTO_UDP || packet->protocol == IPPROTO_ICMP ||
				       packet->protocol == IPPROTO_ICMPV6
			       ? PASSED
			       : FRAGMENTS;
	if (packet->protocol != IPPROTO_TCP)
		return PASSED;
	tcp = rte_pktmbuf_mtod_offset(mbuf, const struct rte_tcp_hdr *, packet->l4);
	flags = tcp->tcp_flags;
	segment.mbuf = mbuf;
	segment.packet = packet;
	segment.bytes.length = packet->payload_length;
	segment.opens = (flags & (RTE_TCP_SYN_FLAG | RTE_TCP_ACK_FLAG)) == RTE_TCP_SYN_FLAG;
	if (segment.bytes.length == 0 && !segment.opens)
		return PASSED;
	segment.bytes.bytes =
		rte_pktmbuf_read(mbuf, packet->payload, segment.bytes.length, bytes);
	segment.bytes.sequence =
		rte_be_to_cpu_32(tcp->sent_seq) + ((flags & RTE_TCP_SYN_FLAG) != 0);
	if (!filter->follows || flags & RTE_TCP_RST_FLAG)
		return judge_alone(nf, NULL, &segment, false);
	return stream_has_bytes(flags) ? judge_stream(nf, &segment) : OUTSIDE;
}

static void block(struct nf *nf, struct rte_mbuf *mbuf, const struct packet *packet,
		  struct nf_out *out)
{
	for (int back = 0; back < 2 && nf->settings[RESET] == 1; back++) {
		struct rte_mbuf *reset = tcp_reset(nf->spare, mbuf, packet, back == 1);

		nf->counters[reset ? RESETS : UNBUFFERED]++;
		if (reset)
			nf_send(out, reset);
	}
	nf_drop(nf, mbuf, BLOCKED);
}

static void process(struct nf *nf, struct rte_mbuf **packets, uint16_t n, struct nf_out *out)
{
	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *mbuf = packets[i];
		const struct packet packet = packet_ip_headers(mbuf);

		if (unlikely(!packet_has_flow(&packet) || packet_is_opaque(&packet))) {
			nf_other(nf, mbuf, packet.type, OTHER, out);
		} else {
			const int counter = judge(nf, mbuf, &packet);

			if (likely(counter == PASSED)) {
				nf->counters[PASSED]++;
				nf_send(out, mbuf);
			} else if (counter == BLOCKED) {
				block(nf, mbuf, &packet, out);
			} else {
				nf_drop(nf, mbuf, (unsigned int)counter);
			}
		}
	}
}

NF_KIND("UrlFilter", "blocks HTTP requests and TLS handshakes by a list of domains and URLs",
	.reads_payloads = true, .state_bytes = sizeof(struct url_filter), .create = create,
	.process = process, .take_over = take_over, .destroy = destroy)
