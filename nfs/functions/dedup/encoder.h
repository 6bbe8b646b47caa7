/* The sending end: finds regions of payloads in its cache, and encodes payloads by them. */
#pragma once

#include "functions/dedup/fingerprints.h"
#include "functions/dedup/format.h"
#include "functions/dedup/siphash.h"
#include "functions/dedup/streams.h"

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
