#include "accelerators/stream_scan.h"

#include <errno.h>

#include "core/memory.h"

#define MOST_PAYLOAD RTE_MBUF_DEFAULT_BUF_SIZE /* of a segment in one buffer */

int stream_scan_create(struct stream_scan *scan, const struct offload *offload, uint32_t most,
		       bool drops, uint64_t *counters)
{
	const struct nf *nf = offload->nf;
	uint32_t span;

	*scan = (struct stream_scan){.drops = drops, .counters = counters};
	if (most == 0)
		return 0;
	span = accelerator_span(nf->accelerators[ACCELERATOR_REGEX]);
	scan->around = (uint16_t)RTE_MIN(span - 1, (uint32_t)STREAM_SCAN_MOST_AROUND);
	scan->joined = nf_zalloc_for(nf->kind->name,
				     (offload->mask + 1) * (MOST_PAYLOAD + 2u * scan->around));
	if (!scan->joined)
		return -ENOMEM;
	if (streams_create(&scan->streams, nf->kind->name, most) < 0) {
		nf_free(scan->joined);
		return -ENOMEM;
	}
	scan->streams.kept = STREAM_SCAN_MOST_AROUND;
	scan->streams.refuses = drops;
	scan->follows = true;
	return 0;
}

void stream_scan_destroy(struct stream_scan *scan)
{
	if (!scan->follows)
		return;
	streams_destroy(&scan->streams);
	nf_free(scan->joined);
}

void stream_scan_take_over(struct stream_scan *scan, struct stream_scan *from)
{
	const struct flow_index *index = &scan->streams.index;

	streams_take_over(&scan->streams, &from->streams);
	scan->last = from->last;
	for (uint32_t place = 0; place < index->begun; place++)
		((struct stream *)&index->entries[place])->scan = 0;
}

static bool read_all(void *context, struct stream *stream)
{
	(void)context;
	stream->read = stream->have;
	return true;
}

/* Count a segment; whether it is scanned by itself, and not freed. */
static bool is_scanned_alone(struct stream_scan *scan, unsigned int counter)
{
	scan->counters[counter]++;
	return !scan->drops;
}

static struct stream *follow(struct stream_scan *scan, const struct offloaded *offloaded,
			     const struct flow_key *key, uint32_t begin, bool opens,
			     uint64_t now_us)
{
	const uint64_t before = scan->streams.given_up;
	const uint32_t source = stream_source(offloaded->packet, &offloaded->headers);
	struct stream *stream = streams_follow(&scan->streams, key, source, begin, opens, now_us);

	scan->counters[STREAM_SCAN_GIVEN_UP] += scan->streams.given_up - before;
	return stream;
}

/* The memory for a held packet's payload and what is around it. */
static uint8_t *joined_of(const struct stream_scan *scan, const struct offload *offload,
			  const struct offloaded *offloaded)
{
	return scan->joined +
	       (size_t)(offloaded - offload->held) * (MOST_PAYLOAD + 2u * scan->around);
}

/* Put what is before the last bytes of a stream, which are all of a segment, into its job. */
static void join_last(struct stream_scan *scan, const struct offload *offload,
		      struct stream *stream, struct offloaded *offloaded)
{
	struct accelerator_job *job = &offloaded->job;
	const uint16_t before = RTE_MIN((uint32_t)stream->have - job->length, scan->around);
	const uint32_t n = before + job->length;

	job->settled = stream->scan == STREAM_SCAN_SETTLED;
	offloaded->stream = stream;
	offloaded->scan = stream->scan = scan->last = (scan->last + 2) | 2; /* never 0 */
	if (before == 0)
		return;
	job->input = memcpy(joined_of(scan, offload, offloaded),
			    stream_bytes(&scan->streams, stream) + stream->have - n, n);
	job->length = n;
	job->before = before;
}

/* Put what is around a segment, of which bytes may be left out, into its job. */
static void join(const struct stream_scan *scan, const struct offload *offload,
		 const struct stream *stream, struct offloaded *offloaded,
		 const struct stream_segment *segment)
{
	struct accelerator_job *job = &offloaded->job;
	const uint8_t *bytes = stream_bytes(&scan->streams, stream);
	const uint32_t at = segment->sequence - stream->begin, end = at + segment->length;
	const uint16_t known = segment->bytes == job->input ? stream_known_before(stream, at) : 0;
	const uint16_t before = RTE_MIN(known, scan->around);
	const uint16_t behind = RTE_MIN(stream_known_from(stream, end), scan->around);
	uint8_t *joined = joined_of(scan, offload, offloaded);

	if (before + behind == 0)
		return;
	memcpy(joined, bytes + at - before, before);
	memcpy(joined + before, job->input, job->length);
	memcpy(joined + before + job->length, bytes + end, behind);
	job->input = joined;
	job->length += before + behind;
	job->before = before;
	job->behind = behind;
}

/* Leave out the bytes of a segment that are forgotten; whether they are of the stream. */
static bool cut(struct stream_scan *scan, const struct stream *stream,
		struct stream_segment *segment)
{
	const uint32_t before = stream->begin - segment->sequence;
	const uint32_t n = RTE_MIN(before, segment->length);

	/* one byte there asks whether the other end is there (RFC 1122, 4.2.3.6) */
	if (before > stream->begin - stream->origin && (before != 1 || segment->length != 1))
		return false;
	segment->sequence += n;
	segment->bytes += n;
	segment->length -= n;
	scan->counters[STREAM_SCAN_BEHIND] += segment->length == 0;
	return true;
}

bool stream_scan_take(struct stream_scan *scan, const struct offload *offload,
		      struct offloaded *offloaded)
{
	const struct packet *headers = &offloaded->headers;
	const struct rte_tcp_hdr *tcp =
		rte_pktmbuf_mtod_offset(offloaded->packet, const struct rte_tcp_hdr *, headers->l4);
	const bool opens = tcp->tcp_flags & RTE_TCP_SYN_FLAG;
	const struct flow_key key = packet_flow(offloaded->packet, headers);
	const uint64_t now_us = offload->nf->now_us;
	struct stream_segment segment = {rte_be_to_cpu_32(tcp->sent_seq) + opens,
					 offloaded->job.length, offloaded->job.input};
	struct stream *stream = streams_find(&scan->streams, &key);
	enum stream_result result = STREAM_OUTSIDE;

	if (unlikely(!stream_has_bytes(tcp->tcp_flags)))
		return tcp->tcp_flags & RTE_TCP_RST_FLAG ||
		       is_scanned_alone(scan, STREAM_SCAN_OUTSIDE);
	if (unlikely(segment.length > MOST_PAYLOAD ||
		     (opens && stream && stream_ignores_syn(stream, segment.sequence, now_us))))
		return is_scanned_alone(scan, STREAM_SCAN_OUTSIDE);
	if (unlikely(!stream || (opens && segment.sequence != stream->origin))) {
		stream = follow(scan, offloaded, &key, segment.sequence, opens, now_us);
		if (!stream)
			return is_scanned_alone(scan, STREAM_SCAN_UNFOLLOWED);
	}
	if (unlikely(opens))
		stream->begun = true;
	if (likely(stream_append(&scan->streams, stream, &segment))) {
		stream->last_us = now_us;
		stream->used = true;
		join_last(scan, offload, stream, offloaded);
		return true;
	}
	stream->scan = 0;
	if (likely(stream->begin - segment.sequence - 1 >= INT32_MAX) ||
	    cut(scan, stream, &segment))
		result = stream_take(&scan->streams, stream, segment, read_all, NULL);
	if (unlikely(result == STREAM_OUTSIDE)) {
		/* where its first byte is known, and it goes on, its receiver takes no such segment
		 */
		if (stream->begun && (scan->drops || now_us - stream->last_us < STREAM_SYN_WAIT_US))
			return is_scanned_alone(scan, STREAM_SCAN_OUTSIDE);
		scan->counters[STREAM_SCAN_OUTSIDE]++;
		stream = follow(scan, offloaded, &key, segment.sequence, false, now_us);
		if (unlikely(!stream))
			return is_scanned_alone(scan, STREAM_SCAN_UNFOLLOWED);
		stream_take(&scan->streams, stream, segment, read_all, NULL);
	} else if (unlikely(result == STREAM_DIFFERS) &&
		   !is_scanned_alone(scan, STREAM_SCAN_DIFFERING)) {
		return false;
	}
	stream->last_us = now_us;
	stream->used = true;
	if (likely(segment.length > 0))
		join(scan, offload, stream, offloaded, &segment);
	return true;
}
