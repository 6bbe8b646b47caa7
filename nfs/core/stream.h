/*
 * Follows TCP streams, each one direction of a connection, in bounded memory: a function reads the
 * bytes of segments in the order in which their receiver will, without gaps and once.
 *
 * Segments are sent on as they come, and not held: what matters is that bytes are read before the
 * last of them is sent on. A stream has a buffer of STREAM_BYTES with what is not read yet, what
 * was read before as long as there is room, and at most STREAM_PARTS parts that came ahead of
 * others. The first content of a byte counts: a segment that repeats it otherwise, whose first copy
 * its receiver might not have taken, is STREAM_DIFFERS, also a keepalive (RFC 1122, 4.2.3.6).
 *
 * Of a stream that is foreign to its reader, the first bytes are kept, up to those by which that
 * was seen, at most STREAM_FOREIGN_KEPT, and none behind them: who sends others in their place is
 * noticed.
 *
 * A stream is of FLOW_ENTRY bytes and its buffer. Where all are used, one that waits for nothing,
 * or whose first byte did not come, and that was not used for long is given up, or a silent one.
 * Where all wait, a source with many of them loses its oldest one to others, so that it keeps none
 * out; for its own further streams there is no room, nor while no source has many. What goes on of
 * a stream that waited cannot be read without it: it is lost, and its flow is refused for some
 * minutes, to a SYN for one or two. Lost flows are known by bits of a hash (Bloom, CACM 1970), a
 * set for each minute. Where eight times as many as are followed were lost within one, none that
 * waits is given up until the next one, so that few flows that were not lost are taken for ones.
 */
#pragma once

#include "core/flow_index.h"

#define STREAM_BYTES 8192
#define STREAM_PARTS 3
#define STREAM_FOREIGN_KEPT 4096 /* so that there is room for others */
#define STREAM_MOST_AHEAD                                                                          \
	(1u << 30) /* bytes behind the last one read, after which all is forgotten */
/*
 * How long a silent stream waits for what is missing where all are used, us: for some repetitions.
 * A longer time would let who opens many streams shut out all others.
 */
#define STREAM_WAIT_US 10000000ull
/* How long after a stream's last segment no SYN begins another one of its ports, us: as TIME_WAIT.
 */
#define STREAM_SYN_WAIT_US 60000000ull
/* How long after a set's last lost stream its flows are refused, us: few servers wait longer. */
#define STREAM_LOST_US 360000000ull
#define STREAM_LOST_SETS 8 /* of a minute each */

/* Bytes that came ahead, as offsets in the buffer. */
struct stream_part {
	uint16_t from, to;
};

/* A struct flow_entry. */
struct stream {
	struct flow_key key;
	uint64_t last_us;    /* when its last segment was sent on */
	uint32_t begin;      /* sequence number of the buffer's first byte */
	uint32_t skipped;    /* bytes that are not in the buffer, ... */
	uint16_t skipped_at; /* ... before this offset */
	uint16_t have;       /* bytes without a gap */
	uint16_t read;       /* of these, as the reader says */
	uint8_t n_parts : 4;
	bool used : 1;       /* since it was last considered to be given up */
	bool begun : 1;      /* from its first byte on, or from one that the reader knows */
	bool foreign : 1;    /* bytes from `skipped_at` on are not kept once they are read */
	bool unfinished : 1; /* as the reader says: more is wanted than is here, or left out */
	uint8_t mark;        /* for the function, initially 0 */
	union {
		uint32_t passed; /* of the bytes that are skipped, those that came, without a gap */
		uint32_t scan;   /* of a function that skips none: of the last segment, or 0 */
	};
	uint32_t origin;     /* the first sequence number of the last 2^30 bytes */
	struct stream_part parts[STREAM_PARTS]; /* in their order, behind `have` */
	uint32_t source;     /* the address that sends it; of IPv6 a hash of its first 64 bits */
} __rte_aligned(sizeof(struct flow_entry));

/* Lost streams of a minute. */
struct lost_streams {
	uint32_t n;
	uint64_t begin_us, last_us; /* when the first and the last one was lost */
};

struct streams {
	struct flow_index index;
	uint8_t *bytes; /* STREAM_BYTES for each */
	uint32_t hand;  /* the next one to be considered to be given up */
	uint16_t kept;  /* bytes that were read and are not forgotten, fewer than STREAM_BYTES */
	uint64_t given_up; /* streams, for others */
	struct lost_streams lost[STREAM_LOST_SETS]; /* that waited */
	uint64_t *lost_bits;                        /* of each set */
	uint32_t lost_now;                          /* the set to which is added */
	uint8_t refuses; /* lost streams: 0 none, 1 those whose first byte came, 2 all */
};

enum stream_result {
	STREAM_TAKEN,
	STREAM_STOPPED,  /* by the reader */
	STREAM_DIFFERS,  /* from bytes that came before */
	STREAM_OUTSIDE,  /* of the buffer, or more parts than there is room for */
	STREAM_OVERLONG, /* what is not read yet fills the buffer */
};

/* Bytes of a segment, of which the first one has this sequence number. */
struct stream_segment {
	uint32_t sequence, length;
	const uint8_t *bytes;
};

/*
 * Reads the bytes from `read` to `have`, and sets `read`; it may call stream_skip(). Returns false
 * to stop.
 */
typedef bool (*stream_reader)(void *context, struct stream *stream);

/* Room for `most` streams in zeros; 0, or -ENOMEM after printing why. */
int streams_create(struct streams *streams, const char *name, uint32_t most);
void streams_destroy(struct streams *streams);

/* Go on with the streams of another function, which gets the own ones, if it has room for as many. */
void streams_take_over(struct streams *streams, struct streams *from);

static inline uint8_t *stream_bytes(const struct streams *streams, const struct stream *stream)
{
	return streams->bytes +
	       STREAM_BYTES * (size_t)((const struct flow_entry *)stream - streams->index.entries);
}

/* Whether bytes are missing before others, or were not read yet. */
static inline bool stream_waits(const struct stream *stream)
{
	return stream->read < stream->have || stream->n_parts > 0;
}

/* Whether nothing but the first bytes of a stream is kept. */
static inline bool stream_is_foreign(const struct stream *stream)
{
	return stream->foreign && !stream_waits(stream) && stream->have == stream->skipped_at;
}

/*
 * Whether the receiver of a stream may ignore a SYN whose first byte is `begin` (RFC 5961, 4), and go
 * on with what came before: soon after the last segment, or close to its bytes.
 */
static inline bool stream_ignores_syn(const struct stream *stream, uint32_t begin, uint64_t now_us)
{
	return begin != stream->origin &&
	       (now_us - stream->last_us < STREAM_SYN_WAIT_US ||
		begin - stream->begin + 2 * STREAM_BYTES <= 4 * STREAM_BYTES);
}

/* The stream of a key; NULL if it is not followed. */
static inline struct stream *streams_find(const struct streams *streams, const struct flow_key *key)
{
	const uint32_t hash = flow_index_hash(&streams->index, key);
	const int32_t place = flow_index_guess(&streams->index, hash);
	struct flow_entry *entry = &streams->index.entries[place];

	if (unlikely(!flow_entry_has(entry, key))) {
		const int32_t found = place < 0 ? -1 : flow_index_find(&streams->index, key, hash);

		return found < 0 ? NULL : (struct stream *)&streams->index.entries[found];
	}
	return (struct stream *)entry;
}

/*
 * Whether hosts take bytes with these flags (RFC 9293, 3.10.7): of resets, and without ACK in an
 * open connection, they do not, and of urgent ones some leave one out (RFC 6093, 3.2).
 */
static inline bool stream_has_bytes(uint8_t flags)
{
	return !(flags & (RTE_TCP_RST_FLAG | RTE_TCP_URG_FLAG)) &&
	       flags & (RTE_TCP_SYN_FLAG | RTE_TCP_ACK_FLAG);
}

uint32_t stream_source(struct rte_mbuf *mbuf, const struct packet *packet);

/* Whether a segment of a stream that is not followed is refused, as it was lost; one that `opens`
 * it for a time. */
bool stream_is_refused(const struct streams *streams, const struct flow_key *key, bool opens,
		       uint64_t now_us);

/*
 * Follow a stream, from now on if it is known; its next byte is `begin`, which `opens` it or not.
 * NULL, of one that is not known: refused, no room.
 */
struct stream *streams_follow(struct streams *streams, const struct flow_key *key, uint32_t source,
			      uint32_t begin, bool opens, uint64_t now_us);
void streams_forget(struct streams *streams, struct stream *stream);

/* Leave out `n` bytes behind what was read, for which the stream waits; a reader calls it. */
void stream_skip(struct streams *streams, struct stream *stream, uint32_t n);

/* What was read is foreign to the reader; a reader calls it. */
void stream_set_foreign(struct streams *streams, struct stream *stream);

/* Let what comes next of a foreign stream be at `sequence`; false if that is before kept bytes. */
bool stream_move(struct stream *stream, uint32_t sequence);

/* Whether some of a segment's bytes were sent on and are not kept, as the stream is foreign. */
static inline bool stream_has_passed(const struct stream *stream,
				     const struct stream_segment *segment)
{
	const uint32_t at = segment->sequence - stream->begin;

	return stream->foreign && at < stream->skipped_at + stream->skipped &&
	       at + segment->length > stream->skipped_at;
}

/* Cut off what of a segment is not behind the bytes that a foreign stream keeps. */
static inline void stream_cut_kept(const struct stream *stream, struct stream_segment *segment)
{
	const uint32_t kept = stream->begin + stream->skipped_at - segment->sequence;
	const uint32_t n = kept <= INT32_MAX ? RTE_MIN(kept, segment->length) : 0;

	segment->sequence += n;
	segment->bytes += n;
	segment->length -= n;
}

/* Pass over a segment that goes on where a foreign stream is. */
static inline bool stream_pass_foreign(struct stream *stream, const struct stream_segment *segment)
{
	if (!stream_is_foreign(stream) || stream->skipped > STREAM_MOST_AHEAD ||
	    segment->sequence - stream->begin != stream->have + stream->skipped)
		return false;
	stream->skipped += segment->length;
	return true;
}

/*
 * How many bytes are known without a gap right before a place in the buffer, and from it on. Nothing
 * may be left out of the stream.
 */
uint16_t stream_known_before(const struct stream *stream, uint32_t at);
uint16_t stream_known_from(const struct stream *stream, uint32_t at);

/*
 * Take a segment that goes on where its stream is, which waits for nothing, and has room; as nearly
 * all do. Its bytes count as read.
 */
static inline bool stream_append(const struct streams *streams, struct stream *stream,
				 const struct stream_segment *segment)
{
	const uint32_t at = segment->sequence - stream->begin;

	if (unlikely(at != stream->have || stream_waits(stream) || stream->skipped > 0 ||
		     at + segment->length > STREAM_BYTES))
		return false;
	memcpy(stream_bytes(streams, stream) + at, segment->bytes, segment->length);
	stream->have = stream->read = (uint16_t)(at + segment->length);
	return true;
}

/* Take the bytes of a segment that is then sent on, unless the result is another one. */
enum stream_result stream_take(struct streams *streams, struct stream *stream,
			       struct stream_segment segment, stream_reader reader, void *context);
