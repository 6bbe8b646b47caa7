/* The receiving end: restores encoded payloads from its cache. */
#pragma once

#include <rte_hash.h>

#include "functions/dedup/cache.h"
#include "functions/dedup/format.h"
#include "functions/dedup/siphash.h"

struct decoder {
	struct cache cache;
	struct siphash_key key;
	struct rte_hash *places; /* hash of a payload to its place in the cache */
};

enum decoded {
	DECODED,
	DECODED_LOST,    /* it refers to a payload that the cache does not have */
	DECODED_DAMAGED, /* it is not what an encoder writes, or not the original */
};

/* 0, or a negative errno after printing why in the name of `name`; it is destroyed either way. */
int decoder_create(struct decoder *decoder, const char *name, uint32_t size, uint64_t seed);
void decoder_destroy(struct decoder *decoder);

/* The length of the original of an encoded payload; 0 if its header is damaged. */
uint16_t decoder_length(const uint8_t *encoded, uint16_t length);

/* Restore the original, as many bytes as decoder_length() said. */
enum decoded decoder_restore(const struct decoder *decoder, const uint8_t *encoded, uint16_t length,
			     uint8_t *to);

/* Store a payload that was received or restored. */
void decoder_store(struct decoder *decoder, const uint8_t *payload, uint16_t length);
