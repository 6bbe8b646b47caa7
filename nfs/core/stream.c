#include "core/stream.h"

#include <errno.h>

#include "core/memory.h"

#define MOST_TRIED 64     /* streams considered to be given up for another one */
#define LOST_WORDS 8      /* of bits of a set for each stream that is followed, before rounding */
#define LOST_BITS 4       /* bits of a lost one in a word; a set has as many as words at most */
#define SOURCE_BITS 10

static_assert(sizeof(struct stream) == sizeof(struct flow_entry), "a stream is an entry");

static uint32_t lost_words(uint32_t most)
{
	return rte_align32pow2(LOST_WORDS * most);
}

int streams_create(struct streams *streams, const char *name, uint32_t most)
{
	const size_t words = (size_t)STREAM_LOST_SETS * lost_words(most);

	if (flow_index_create(&streams->index, most) == 0 &&
	    (streams->lost_bits = nf_zalloc(words * sizeof(*streams->lost_bits))) &&
	    (streams->bytes = nf_zalloc((size_t)most * STREAM_BYTES)))
		return 0;
	fprintf(stderr, "%s: no memory for %u streams of %d bytes\n", name, most, STREAM_BYTES);
	streams_destroy(streams);
	return -ENOMEM;
}

void streams_destroy(struct streams *streams)
{
	flow_index_destroy(&streams->index);
	nf_free(streams->lost_bits);
	nf_free(streams->bytes);
}

void streams_take_over(struct streams *streams, struct streams *from)
{
	const struct streams own = *streams;

	if (own.index.most != from->index.most)
		return;
	*streams = *from;
	streams->refuses = own.refuses;
	*from = own;
}

static struct stream *stream_at(const struct streams *streams, uint32_t place)
{
	return (struct stream *)&streams->index.entries[place];
}

void streams_forget(struct streams *streams, struct stream *stream)
{
	flow_index_remove(&streams->index,
			  (uint32_t)((struct flow_entry *)stream - streams->index.entries));
}

uint32_t stream_source(struct rte_mbuf *mbuf, const struct packet *packet)
{
	uint64_t network;

	if (packet->type != PACKET_IPV6)
		return packet_ipv4(mbuf, packet)->src_addr;
	memcpy(&network, packet_ipv6(mbuf, packet)->src_addr, sizeof(network));
	return (uint32_t)((network + packet_flow_secrets[0]) * (packet_flow_secrets[1] | 1) >> 32);
}

/* The bits of a key: a word of them, and its place. */
static uint64_t lost_bits(const struct streams *streams, const struct flow_key *key, uint32_t *word)
{
	const uint64_t *secrets = streams->index.secrets;
	const uint64_t hash = flow_hash((const uint64_t[]){secrets[1], secrets[0]}, key);
	uint64_t more = flow_index_hash(&streams->index, key) * 0x9e3779b97f4a7c15ull, bits = 0;

	*word = (uint32_t)hash & (lost_words(streams->index.most) - 1);
	for (int i = 0; i < LOST_BITS; i++, more >>= 6)
		bits |= 1ull << (more >> 40 & 63);
	return bits;
}

bool stream_is_refused(const struct streams *streams, const struct flow_key *key, bool opens,
		       uint64_t now_us)
{
	const uint64_t wait_us = opens ? STREAM_SYN_WAIT_US : STREAM_LOST_US;
	const uint32_t words = lost_words(streams->index.most);
	uint32_t word;
	uint64_t bits;

	if (likely(now_us >= streams->lost[streams->lost_now].last_us + wait_us ||
		   streams->lost[streams->lost_now].n == 0))
		return false;
	bits = lost_bits(streams, key, &word);
	for (uint32_t i = 0; i < STREAM_LOST_SETS; i++, word += words)
		if (now_us < streams->lost[i].last_us + wait_us &&
		    (streams->lost_bits[word] & bits) == bits)
			return true;
	return false;
}

/* Refuse a stream from now on; false if too many were lost within a minute. */
static bool refuse(struct streams *streams, const struct flow_key *key, uint64_t now_us)
{
	const uint32_t words = lost_words(streams->index.most);
	struct lost_streams *lost = &streams->lost[streams->lost_now];
	uint32_t word;
	const uint64_t bits = lost_bits(streams, key, &word);

	if (lost->n == 0 || now_us - lost->begin_us >= STREAM_SYN_WAIT_US) {
		streams->lost_now = (streams->lost_now + 1) % STREAM_LOST_SETS;
		lost = &streams->lost[streams->lost_now];
		*lost = (struct lost_streams){.begin_us = now_us};
		memset(streams->lost_bits + (size_t)words * streams->lost_now, 0,
		       words * sizeof(*streams->lost_bits));
	}
	if (lost->n == words)
		return false;
	streams->lost_bits[(size_t)words * streams->lost_now + word] |= bits;
	lost->n++;
	lost->last_us = now_us;
	return true;
}

static bool is_waiting(const struct stream *stream)
{
	return stream_waits(stream) || stream->unfinished ||
	       (!stream->foreign && stream->have == stream->skipped_at &&
		stream->passed < stream->skipped);
}

/* Give up a stream; false if it is to be refused then, and cannot be. */
static bool lose(struct streams *streams, struct stream *stream, uint64_t now_us)
{
	if (is_waiting(stream) && streams->refuses > !stream->begun &&
	    !refuse(streams, &stream->key, now_us))
		return false;
	streams_forget(streams, stream);
	streams->given_up++;
	return true;
}

/* Few sources have the same bits. */
static uint32_t source_bits(const struct streams *streams, uint32_t source)
{
	return source * ((uint32_t)streams->index.secrets[0] | 1) >> (32 - SOURCE_BITS);
}

/*
 * Of streams that all wait, give up the oldest one of the source with the most of the next ones, an
 * eighth at least, for one of a source with fewer, or its own if none is refused; false if none is.
 */
static bool take_from_greediest(struct streams *streams, uint32_t source, uint64_t now_us)
{
	const uint32_t n = RTE_MIN((uint32_t)MOST_TRIED, streams->index.most);
	uint8_t counts[1 << SOURCE_BITS] = {0}, most = (uint8_t)RTE_MAX(n / 8, 2u);
	struct stream *of[MOST_TRIED], *oldest = NULL;
	bool own = false;

	for (uint32_t i = 0; i < n; i++) {
		of[i] = stream_at(streams, (streams->hand + i) % streams->index.most);
		most = RTE_MAX(most, ++counts[source_bits(streams, of[i]->source)]);
		own |= of[i]->source == source;
	}
	own = own && counts[source_bits(streams, source)] == most;
	for (uint32_t i = 0; i < n; i++)
		if (counts[source_bits(streams, of[i]->source)] == most &&
		    (!own || of[i]->source == source) &&
		    (!oldest || of[i]->last_us < oldest->last_us))
			oldest = of[i];
	return oldest && !(own && streams->refuses) && lose(streams, oldest, now_us);
}

/*
 * Give up a stream that waits for nothing, whose begin is not known, or that was silent for too
 * long, or one of a source with many, for one of this source; false if there is none.
 */
static bool give_up(struct streams *streams, uint32_t source, uint64_t now_us)
{
	for (uint32_t i = 0; i < MOST_TRIED; i++) {
		struct stream *stream = stream_at(streams, streams->hand);
		const bool silent = now_us - stream->last_us >= STREAM_WAIT_US;

		streams->hand = streams->hand + 1 < streams->index.most ? streams->hand + 1 : 0;
		if ((silent || (!stream->used && !(stream->begun && is_waiting(stream)))) &&
		    lose(streams, stream, now_us))
			return true;
		stream->used = false;
	}
	return take_from_greediest(streams, source, now_us);
}

struct stream *streams_follow(struct streams *streams, const struct flow_key *key, uint32_t source,
			      uint32_t begin, bool opens, uint64_t now_us)
{
	struct stream *stream = streams_find(streams, key);

	if (!stream) {
		const uint32_t hash = flow_index_hash(&streams->index, key);
		int32_t place;

		if (unlikely(stream_is_refused(streams, key, opens, now_us)))
			return NULL;
		place = flow_index_add(&streams->index, key, hash);
		if (unlikely(place < 0)) {
			if (!give_up(streams, source, now_us))
				return NULL;
			place = flow_index_add(&streams->index, key, hash);
		}
		stream = stream_at(streams, (uint32_t)place);
	}
	*stream = (struct stream){.key = *key,
				  .source = source,
				  .begin = begin,
				  .origin = begin,
				  .last_us = now_us,
				  .used = true,
				  .begun = opens};
	return stream;
}

/* Let all offsets be `n` less, but those of bytes that a foreign stream keeps. */
static void move_down(struct streams *streams, struct stream *stream, uint16_t n)
{
	const uint16_t end = stream->n_parts ? stream->parts[stream->n_parts - 1].to : stream->have;
	uint8_t *bytes = stream_bytes(streams, stream) + (stream->foreign ? stream->skipped_at : 0);

	memmove(bytes, bytes + n, stream_bytes(streams, stream) + end - (bytes + n));
	stream->have -= n;
	stream->read -= n;
	for (uint8_t i = 0; i < stream->n_parts; i++) {
		stream->parts[i].from -= n;
		stream->parts[i].to -= n;
	}
}

/* Let a stream begin `n` bytes later; numbers of more than the last 2^30 bytes may come round. */
static void begin_later(struct stream *stream, uint32_t n)
{
	stream->begin += n;
	if (stream->begin - stream->origin > STREAM_MOST_AHEAD)
		stream->origin = stream->begin - STREAM_MOST_AHEAD;
}

/* The first byte that may be forgotten once it is read. */
static uint16_t least_kept(const struct streams *streams, const struct stream *stream)
{
	return stream->foreign ? stream->skipped_at : streams->kept;
}

/* Forget the bytes that a foreign stream keeps, as numbers may come round, but not those behind. */
static void forget_first(struct streams *streams, struct stream *stream)
{
	const uint16_t n = stream->skipped_at;
	const uint32_t half = stream->skipped / 2;

	stream->skipped_at = 0;
	move_down(streams, stream, n);
	begin_later(stream, n + half);
	stream->skipped -= half;
}

/* Make room: forget the bytes that were read, but for those that are kept. */
static void forget_read(struct streams *streams, struct stream *stream)
{
	const uint16_t n = stream->read - least_kept(streams, stream);

	move_down(streams, stream, n);
	if (stream->foreign) {
		stream->skipped += n;
		if (stream->skipped > STREAM_MOST_AHEAD)
			forget_first(streams, stream);
	} else if (n > stream->skipped_at) {
		begin_later(stream, n + stream->skipped);
		stream->skipped = stream->skipped_at = 0;
	} else {
		begin_later(stream, n);
		stream->skipped_at -= n;
	}
}

void stream_set_foreign(struct streams *streams, struct stream *stream)
{
	stream->read = stream->have;
	stream->unfinished = false;
	if (!stream->foreign && stream->skipped > 0) {
		/* what is before the bytes left out is forgotten, not that by which the rest is
		 * foreign */
		const uint16_t n = stream->skipped_at;

		move_down(streams, stream, n);
		begin_later(stream, n + stream->skipped);
		stream->skipped = 0;
	}
	if (!stream->foreign)
		stream->skipped_at = RTE_MIN(stream->have, (uint16_t)STREAM_FOREIGN_KEPT);
	stream->foreign = true;
	forget_read(streams, stream);
}

bool stream_move(struct stream *stream, uint32_t sequence)
{
	const uint32_t skipped = sequence - stream->begin - stream->skipped_at;

	if (skipped > INT32_MAX)
		return false;
	stream->skipped = skipped;
	stream->have = stream->read = stream->skipped_at;
	stream->n_parts = 0;
	return true;
}

/* Join the parts that are no longer ahead. */
static void join(struct stream *stream)
{
	while (stream->n_parts > 0 && stream->parts[0].from <= stream->have) {
		stream->have = RTE_MAX(stream->have, stream->parts[0].to);
		stream->n_parts--;
		memmove(stream->parts, stream->parts + 1, stream->n_parts * sizeof(*stream->parts));
	}
}

void stream_skip(struct streams *streams, struct stream *stream, uint32_t n)
{
	const uint16_t here = (uint16_t)RTE_MIN(n, (uint32_t)(stream->have - stream->read));
	struct stream_part *to = stream->parts;
	uint8_t *bytes = stream_bytes(streams, stream);

	stream->read += here;
	n -= here;
	if (n == 0)
		return;
	if (stream->skipped > 0 || stream->foreign)
		forget_read(streams, stream);
	if (!stream->foreign) {
		stream->skipped = 0;
		stream->skipped_at = stream->have;
		stream->passed = 0;
	}
	stream->skipped += n;
	for (uint8_t i = 0; i < stream->n_parts; i++) {
		struct stream_part part = stream->parts[i];

		if (part.to <= stream->have + n)
			continue;
		part.from = (uint16_t)RTE_MAX((uint32_t)part.from, stream->have + n);
		memmove(bytes + part.from - n, bytes + part.from, part.to - part.from);
		*to++ = (struct stream_part){(uint16_t)(part.from - n), (uint16_t)(part.to - n)};
	}
	stream->n_parts = (uint8_t)(to - stream->parts);
	join(stream);
}

uint16_t stream_known_before(const struct stream *stream, uint32_t at)
{
	if (at <= stream->have)
		return (uint16_t)at;
	for (uint8_t i = 0; i < stream->n_parts; i++)
		if (stream->parts[i].from < at && at <= stream->parts[i].to)
			return (uint16_t)(at - stream->parts[i].from);
	return 0;
}

uint16_t stream_known_from(const struct stream *stream, uint32_t at)
{
	if (at < stream->have)
		return (uint16_t)(stream->have - at);
	for (uint8_t i = 0; i < stream->n_parts; i++)
		if (stream->parts[i].from <= at && at < stream->parts[i].to)
			return (uint16_t)(stream->parts[i].to - at);
	return 0;
}

/* Note bytes that are ahead of others, from an offset to another one. */
static enum stream_result take_part(struct streams *streams, struct stream *stream, uint16_t from,
				    uint16_t to, const uint8_t *bytes)
{
	uint8_t *all = stream_bytes(streams, stream);
	struct stream_part parts[STREAM_PARTS + 1], added = {from, to};
	uint8_t n = 0, before = 0;

	for (uint8_t i = 0; i < stream->n_parts; i++) {
		const struct stream_part part = stream->parts[i];
		const uint16_t low = RTE_MAX(part.from, from), high = RTE_MIN(part.to, to);

		if (low < high && memcmp(all + low, bytes + low - from, high - low) != 0)
			return STREAM_DIFFERS;
		if (low > high) { /* neither overlaps nor touches */
			parts[n++] = part;
			before += part.to < from;
			continue;
		}
		added.from = RTE_MIN(added.from, part.from);
		added.to = RTE_MAX(added.to, part.to);
	}
	if (n == STREAM_PARTS)
		return STREAM_OUTSIDE;
	memmove(parts + before + 1, parts + before, (n - before) * sizeof(*parts));
	parts[before] = added;
	memcpy(stream->parts, parts, sizeof(stream->parts));
	stream->n_parts = n + 1;
	memcpy(all + from, bytes, to - from);
	return STREAM_TAKEN;
}

enum stream_result stream_take(struct streams *streams, struct stream *stream,
			       struct stream_segment segment, stream_reader reader, void *context)
{
	uint8_t *all = stream_bytes(streams, stream);

	while (segment.length > 0) {
		uint32_t at = segment.sequence - stream->begin, n = segment.length;
		enum stream_result result = STREAM_TAKEN;

		if (at > UINT32_MAX / 2)
			return STREAM_OUTSIDE;
		if (at >= stream->skipped_at && at - stream->skipped_at < stream->skipped) {
			at -= stream->skipped_at;
			n = RTE_MIN(n, stream->skipped - at);
			if (at <= stream->passed)
				stream->passed = RTE_MAX(stream->passed, at + n);
		} else {
			const bool before = at < stream->skipped_at;
			const uint16_t least = least_kept(streams, stream);

			at -= before ? 0 : stream->skipped;
			if (at + n > STREAM_BYTES && stream->read > least && at >= stream->read &&
			    (at <= stream->have ||
			     at + n <= STREAM_BYTES + (uint32_t)(stream->read - least))) {
				forget_read(streams, stream);
				continue;
			}
			if (at < stream->have) {
				n = RTE_MIN(n, (before && stream->skipped ? stream->skipped_at
									  : stream->have) - at);
				if (memcmp(all + at, segment.bytes, n) != 0)
					return STREAM_DIFFERS;
			} else if (at == stream->have) {
				const uint32_t room =
					stream->n_parts ? stream->parts[0].from : STREAM_BYTES;

				n = RTE_MIN(n, room - at);
				if (n == 0)
					return STREAM_OVERLONG;
				memcpy(all + at, segment.bytes, n);
				stream->have += (uint16_t)n;
				join(stream);
				if (!reader(context, stream))
					return STREAM_STOPPED;
			} else if (at + n > STREAM_BYTES) {
				return STREAM_OUTSIDE;
			} else {
				result = take_part(streams, stream, (uint16_t)at, (uint16_t)(at + n),
						   segment.bytes);
			}
		}
		if (result != STREAM_TAKEN)
			return result;
		segment.sequence += n;
		segment.bytes += n;
		segment.length -= n;
	}
	return STREAM_TAKEN;
}
