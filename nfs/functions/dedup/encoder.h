/* The sending end: finds regions of payloads in its cache, and encodes payloads by them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/packet.h"
#include "functions/dedup/cache.h"
#include "functions/dedup/format.h"
#include "functions/dedup/siphash.h"

/*
 * Fingerprints of payloads: where in the cache windows of 64 bytes occurred.
 *
 * Windows are sampled by their content, so that repeated bytes are found wherever they are in a
 * payload (Spring and Wetherall, SIGCOMM 2000; Anand et al., SIGCOMM 2008). Instead of Rabin's, the
 * fingerprint is a gear hash (Xia et al., FastCDC, USENIX ATC 2016): a shift and an addition per
 * byte, and what is older than 64 bytes has been shifted out. Behind a sample some bytes are
 * skipped, as in SAMPLEBYTE (Aggarwal et al., EndRE, NSDI 2010): else one byte in a row would make
 * a sample of every window.
 */

#define DEDUP_WINDOW 64
#define DEDUP_SAMPLE_BITS 4 /* one of 16 windows is sampled */
#define DEDUP_SPACING 16    /* bytes between the ends of samples, at least */
#define DEDUP_MOST_SAMPLES ((DEDUP_MOST - DEDUP_WINDOW) / DEDUP_SPACING + 1)

/* A sampled window, by the offset of its last byte. */
struct sample {
	uint64_t fingerprint;
	uint16_t end;
};

struct place {
	uint32_t number; /* of the cached payload */
	uint16_t end;
	uint16_t tag; /* a part of the fingerprint */
};

struct fingerprints {
	uint64_t gear[256];
	uint32_t shift; /* fingerprint to place */
	struct place *places;
};

/*
 * How far TCP streams have been sent, so that what is sent again is noticed. A table of the last
 * streams: one that another one displaced begins again.
 */

/* Most bytes that a sender goes back; farther back is another connection with the same ports. */
#define STREAMS_MOST_BACK (1u << 24)

struct stream {
	struct flow_key flow;
	uint32_t next; /* sequence number behind the last byte sent */
};

struct streams {
	uint32_t mask;
	struct siphash_key key;
	struct stream *streams;
};

/* Note that a segment is sent; returns whether it begins before the end of what was sent. */
static inline bool streams_sent_again(struct streams *streams, const struct flow_key *flow,
				      uint32_t sequence, uint16_t length)
{
	const uint64_t hash = siphash(&streams->key, (const uint8_t *)flow, sizeof(*flow));
	struct stream *stream = &streams->streams[hash & streams->mask];
	const uint32_t end = sequence + length;

	if (memcmp(&stream->flow, flow, sizeof(*flow)) != 0 ||
	    stream->next - sequence - 1 >= STREAMS_MOST_BACK) {
		stream->flow = *flow;
		stream->next = end;
		return false;
	}
	if (stream->next - end - 1 >= STREAMS_MOST_BACK) /* it has new bytes, too */
		stream->next = end;
	return true;
}

struct encoder {
	struct cache cache;
	struct fingerprints fingerprints;
	struct streams streams;
	struct siphash_key key;
	uint8_t depth; /* generations that may refer to one another */
};

/* Bytes that are copied from a cached payload. */
struct region {
	const struct cached *source;
	uint16_t offset, length, at;
};

/* How a payload can be encoded. */
struct plan {
	uint64_t hash;
	uint8_t generation; /* if it is encoded */
	uint8_t n_regions;
	uint16_t length; /* of the encoded payload */
	struct region regions[DEDUP_MOST_REGIONS];
	uint16_t n_samples;
	struct sample samples[DEDUP_MOST_SAMPLES];
};

/* As decoder_create(). */
int encoder_create(struct encoder *encoder, const char *name, uint32_t size, uint64_t seed,
		   uint8_t depth);
void encoder_destroy(struct encoder *encoder);

/*
 * Find the regions of a payload of at most DEDUP_MOST bytes. It has none if it is too short for the
 * cache, or is to be sent whole.
 */
void encoder_plan(const struct encoder *encoder, const uint8_t *payload, uint16_t length,
		  bool whole, struct plan *plan);

/* Write an encoded payload, `plan->length` bytes. */
void encoder_write(const struct plan *plan, const uint8_t *payload, uint16_t length, uint8_t *to);

/* Store a payload that was sent and is not too short. */
void encoder_store(struct encoder *encoder, const struct plan *plan, const uint8_t *payload,
		   uint16_t length, bool encoded);
